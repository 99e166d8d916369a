"""transformers warns of its own doings through logging and warnings; neither is ours."""

import pytest


@pytest.fixture(autouse=True)
def quiet():
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
