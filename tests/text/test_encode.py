import numpy as np
import pytest

from headtohead.spec import Mistake
from headtohead.text import corpus, encode
from headtohead.text.cache import prepare
from headtohead.text.tokenizer import BytePairs, Characters, Words

from .conftest import Given

LINES = "The first line, é.\n\nAnother one with more words\nx\n" * 40
SHORT = Given((LINES, "a short one", LINES[::-1], "\n\nb\n\n", *(f"number {n}\n" for n in range(99))), (LINES + "end",))
LONG = Given((LINES * 900, "one more", *(f"document {n} of many" for n in range(9000)), LINES[::-1] * 500), ("é",))
COLUMNS = ("ids", "bytes", "characters", "documents", "lines")


def same(one, other):
    for side in ("train", "validation"):
        for name in COLUMNS:
            assert np.array_equal(getattr(getattr(one, side), name), getattr(getattr(other, side), name)), name
    return one.fingerprint == other.fingerprint


@pytest.mark.parametrize("tokenizer", [Characters(), Characters(bare=True), BytePairs(400)])
def test_the_size_of_pages_changes_nothing(tmp_path, monkeypatch, tokenizer):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "whole"))
    whole = prepare(SHORT, tokenizer)
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "paged"))
    monkeypatch.setattr(corpus, "PAGE", 200)
    assert same(whole, prepare(SHORT, tokenizer))


@pytest.mark.parametrize("tokenizer", [Characters(), Words(1), BytePairs(400)])
def test_the_number_of_processes_changes_nothing(tmp_path, monkeypatch, tokenizer):
    monkeypatch.setattr(encode, "PAGES", 10**9)
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "alone"))
    alone = prepare(LONG, tokenizer)
    monkeypatch.setattr(encode, "PAGES", 1)
    monkeypatch.setattr(encode.os, "sched_getaffinity", lambda pid: range(3))
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "spread"))
    assert same(alone, prepare(LONG, tokenizer))
    assert not [path for path in (tmp_path / "spread").rglob("*") if path.name in ("job.json", "train.0")]


def test_what_fails_in_another_process_is_told_here(tmp_path, monkeypatch):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    monkeypatch.setattr(encode, "PAGES", 1)
    whole = LONG.train
    with pytest.raises(Mistake, match=r"^the character 'é' .* does not occur in training"):
        prepare(Given(tuple(text.replace("é", "e") for text in whole), whole), Characters(bare=True))
    assert not list((tmp_path / "text").glob("*.partial"))


def test_an_error_of_the_disk_keeps_its_number():
    failure = encode._failure(1, "Traceback\nOSError 28 No space left on device\n")
    assert isinstance(failure, OSError) and failure.errno == 28
