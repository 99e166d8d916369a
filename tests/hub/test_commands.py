"""h2h import, export, push, score and sample as a user types them."""

import json
import subprocess
import sys

import pytest
import released

from headtohead.cli import main
from headtohead.sentences import SENTENCES


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("HF_TOKEN", "HUGGINGFACE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    released.save(released.model_of("BertForMaskedLM", released.config_of("bert")), tmp_path / "model")
    gpt2 = released.config_of("gpt2", max_position_embeddings=20)
    released.save(released.model_of("GPT2LMHeadModel", gpt2), tmp_path / "gpt2", masked=False)
    return tmp_path


def h2h(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["h2h", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


def test_from_a_folder_to_a_score_and_back(monkeypatch, capsys):
    code, out, _ = h2h(monkeypatch, capsys, "import", "model")
    assert code == 0 and out.startswith("h2h-runs/imported/model: BertForMaskedLM of model, ")
    code, out, _ = h2h(monkeypatch, capsys, "score", "h2h-runs/imported/model", "--text", "the quick fox")
    assert code == 0 and "pseudo-perplexity" in out and "pseudo-log-likelihood -" in out
    code, out, _ = h2h(monkeypatch, capsys, "export", "h2h-runs/imported/model", "out")
    assert code == 0 and out == "out: BertForMaskedLM, of transformers, logits equal to the run's\n"


def test_sentences_come_from_a_file_or_are_our_own(place, monkeypatch, capsys):
    h2h(monkeypatch, capsys, "import", "gpt2", "--out", "run")
    (place / "lines.txt").write_text("the quick fox\n\n  over a dog\n")
    code, out, _ = h2h(monkeypatch, capsys, "score", "run", "--file", "lines.txt", "--json")
    found = json.loads(out)
    assert code == 0 and [one["text"] for one in found] == ["the quick fox", "over a dog"]
    assert all(one["bits_per_byte"] > 0 for one in found)
    code, out, _ = h2h(monkeypatch, capsys, "score", "run", "--json")
    assert [one["text"] for one in json.loads(out)] == list(SENTENCES)


def test_choices_and_the_contexts_end_are_said(monkeypatch, capsys):
    h2h(monkeypatch, capsys, "import", "gpt2", "--out", "run")
    words = ["sample", "run", "--prompt", "the quick", "--tokens", 30]
    greedy = h2h(monkeypatch, capsys, *words, "--greedy")
    assert greedy[0] == 0 and "the model sees 20 tokens at a time: beyond them it read the last 20 alone" in greedy[2]
    assert h2h(monkeypatch, capsys, *words, "--top-k", 1, "--seed", 7)[1] == greedy[1]
    assert h2h(monkeypatch, capsys, *words, "--top-p", "0.0001", "--seed", 8)[1] == greedy[1]
    assert h2h(monkeypatch, capsys, *words, "--temperature", 3)[1] != greedy[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["import", "absent"], "there is no folder absent; give a folder of transformers"),
        (["import", "model", "--out", "gpt2"], "--out gpt2 is not empty; name a new folder"),
        (["import", "model", "--set", "model.attention.normalizer=Softmax()"], "the model has that already"),
        (["export", "absent", "out"], "there is no folder absent; give one"),
        (["push", "absent", "name"], "there is no folder absent; give one"),
        (["score", "model"], "model is a folder of transformers; make a run of it: h2h import model"),
        (["score", "run", "--text", "a", "--file", "b"], "--text and --file each give the sentences; leave one out"),
        (["score", "run", "--file", "absent"], "--file absent cannot be read"),
        (["sample", "run", "--prompt", "a", "--greedy", "--temperature", "0.5"], "--greedy takes the likeliest token"),
        (["sample", "run", "--prompt", "a", "--top-p", "2"], "top-p = 2.0 must be above 0 and at most 1"),
        (["push", "run", "name"], "there is no token for the Hub; set HF_TOKEN"),
    ],
)
def test_a_mistake_is_one_line(monkeypatch, capsys, words, told):
    if "run" in words:
        h2h(monkeypatch, capsys, "import", "gpt2", "--out", "run")
    code, out, err = h2h(monkeypatch, capsys, *words)
    assert code == 2 and told in err and err.count("\n") == 1 and not out, err


def test_help_loads_no_transformers():
    """The command's first answer must not wait for what it does not need."""
    code = "import sys; from headtohead.cli import app; assert not {'torch', 'transformers', 'huggingface_hub'} & {*sys.modules}"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
