"""Who reads the future is found, and nobody else: our own variants and models of the user's, at three kinds of weights."""

import re

import numpy as np
import pytest
import torch
from small import batch_of, short_name, tiny
from torch import nn

from headtohead import (
    Alibi,
    Custom,
    Everyone,
    Learned,
    LearnedSink,
    MaskedLM,
    MinusInfinity,
    Nothing,
    RelativeBuckets,
    ReZero,
    Rotary,
    Sigmoid,
    SoftmaxN,
    Window,
    ZeroAfter,
    ZeroThenRenormalize,
)
from headtohead.audit.causality import audit, cuts, perturb, redrawn
from headtohead.run import audit_network, audit_start
from headtohead.spec import short
