"""Fixtures of the verdict's tests: a study's folder under tmp_path."""

from collections.abc import Callable
from pathlib import Path

import pytest
from study_folder import write_run, write_study


@pytest.fixture
def run() -> Callable[..., Path]:
    return write_run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    return lambda losses, **changes: write_study(tmp_path / "smaller", losses, **changes)
