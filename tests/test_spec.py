"""Parts and addresses: a diff is exactly what was changed, a description is the part again, a slip names its cure."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import typing

import pytest
from small import every, field_types, plain, settings, slots, tiny, variants

from headtohead import (
    Additive,
    AdamW,
    CharacterVocabulary,
    CosineDecay,
    Cosine,
    Embedding,
    File,
    LayerNorm,
    MultiHead,
    Normalizer,
    Part,
    PreNorm,
    Recipe,
    Residual,
    Rotary,
    Sinusoidal,
    Softmax,
    SoftmaxN,
    Transformer,
    at,
    diff,
)
