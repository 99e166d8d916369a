"""What is told of a prepared text, against counts by hand."""

from pathlib import Path

import numpy as np
import pytest

from headtohead.spec import describe
from headtohead.text import survey as module
from headtohead.text.cache import manifest, prepare
from headtohead.text.examples import Examples, Lines, Stream
from headtohead.text.file import File
from headtohead.text.survey import survey
from headtohead.text.tokenizer import Characters, Words

from .conftest import Given, write

TEXT = Given(("ab\ncd", "ba", "abcdabcd"), ("dcz\n\nab",))


class Counting(Lines):
    """Lines that say what became of them."""

    def counts(self, tokens, width):
        return {"rows": 3, "dropped": 1}


@pytest.mark.parametrize("chunk", [2, 1 << 22])
def test_by_hand(monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    found = survey(prepare(TEXT, Characters()), Counting(), 4, 10)
    assert found["types"] == {"vocabulary": 7, "train": 5, "validation": 6, "unseen": 1, "unseen_share": 1 / 7}
    assert found["lengths"] == {
        "documents": [[2, 3, 1], [4, 7, 1], [8, 15, 1]],
        "lines": [[2, 3, 3], [4, 7, 0], [8, 15, 1]],
    }
    assert found["over"]["documents"] == {"count": 2, "share": 2 / 3, "tokens_beyond": 5 / 15}
    assert found["over"]["lines"] == {"count": 1, "share": 1 / 4, "tokens_beyond": 4 / 14}
    assert found["examples"]["counts"] == {"rows": 3, "dropped": 1} and found["examples"]["how"] == "Counting()"
    assert sorted(set(found["examples"]["rows"])) <= ["ab", "abcdabcd", "ba", "cd"]


def test_rows_that_cannot_be_made_are_told_why():
    found = survey(prepare(TEXT, Characters()), Stream(), 400, 401)
    assert found["examples"]["rows"] == [] and "smaller length or give more text" in found["examples"]["refused"]
    assert Examples().counts(prepare(TEXT, Characters()), 3) == {}


def test_a_manifest_says_what_was_made_from_what(tmp_path):
    text = File(
        str(write(tmp_path, {"a.jsonl": '{"text": "a a é"}\n{"text": null}\n{"text": "A  a É"}\n{"text": "b a a"}\n'}))
    )
    told, tokens = manifest(text, Words(1)), prepare(text, Words(1))
    assert told["source"] == text.identity() and told["settings"]["text"] == describe(text)
    assert told["settings"]["tokenizer"] == describe(Words(1))
    assert told["left_out"] == {"rows without 'text' left out": 1, "left out as equal to another": 1}
    sides = told["sides"]
    assert (sides["train"]["documents"], sides["validation"]["documents"]) == (1, 1)
    for side, name in ((tokens.train, "train"), (tokens.validation, "validation")):
        assert sides[name]["bytes"] == int(side.bytes.sum()) and sides[name]["characters"] == int(side.characters.sum())
        assert sides[name]["lines"] == len(side.lines) == 1 and sides[name]["tokens"] == 3
        assert sides[name]["unknown_rate"] == side.unknown_rate and sides[name]["sha256"] == side.sha256
    assert (
        sides["validation"]["unknown"]
        == round(3 * tokens.validation.unknown_rate)
        == int(np.sum(tokens.validation.ids == 1))
    )
    assert (Path(told["folder"]) / "text.json").is_file()


def test_another_setting_is_another_entry():
    one, other = manifest(TEXT, Words(1)), manifest(TEXT, Characters())
    assert one["folder"] != other["folder"] and one["vocabulary"] != other["vocabulary"]
    assert one["source"] == other["source"] and manifest(TEXT, Words(1)) == one
