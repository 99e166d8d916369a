"""Datasets as the library `datasets` streams them: real local ones, and a stand-in for the Hub with the real signature."""

import inspect
import json
import sys
from collections import Counter

import pytest

from headtohead.spec import Mistake
from headtohead.text import huggingface
from headtohead.text.corpus import open_corpus
from headtohead.text.huggingface import HuggingFace, from_address
from headtohead.text.split import Split

from .conftest import both

datasets = pytest.importorskip("datasets", reason="the package datasets is not here")
huggingface_hub = pytest.importorskip("huggingface_hub", reason="the package huggingface_hub is not here")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = {"train": ["one two", "three four", "five"], "validation": ["six seven"], "test": ["eight"]}


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True, raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """A dataset on disk in the layout that `datasets` recognizes."""
    place = tmp_path / "books"
    place.mkdir()
    for split, texts in ROWS.items():
        lines = [json.dumps({"text": text, "id": n}) for n, text in enumerate(texts)]
        (place / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return place


class Hub:
    """What stands in for the Hub: splits by name, and the commit they are at."""

    def __init__(self, monkeypatch, splits):
        self.splits, self.commit, self.calls, self.reached = splits, COMMIT, [], True
        self.failure: Exception = ConnectionError("no route")
        real = inspect.signature(datasets.load_dataset)

        def load_dataset(*arguments, **named):
            self.calls.append(real.bind(*arguments, **named).arguments)
            rows = {name: datasets.Dataset.from_list(rows).to_iterable_dataset() for name, rows in self.splits.items()}
            return datasets.IterableDatasetDict(rows)

        def dataset_info(api, repo_id, revision=None):
            if not self.reached:
                raise self.failure
            return type("Info", (), {"sha": self.commit})

        monkeypatch.setattr("datasets.load_dataset", load_dataset)
        monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", dataset_info)


@pytest.fixture
def hub(monkeypatch):
    return Hub(monkeypatch, {split: [{"text": text} for text in texts] for split, texts in ROWS.items()})


def test_a_folder_is_read_with_its_own_validation_side(folder):
    assert both(HuggingFace(str(folder))) == (ROWS["train"], ROWS["validation"])


def test_a_named_split_is_all_there_is(folder):
    train, validation = both(HuggingFace(str(folder), split="train"))
    assert sorted(train + validation) == sorted(ROWS["train"]) and validation


def test_identity_follows_the_files(folder):
    text = HuggingFace(str(folder))
    before = text.identity()
    assert text.identity() == before
    (folder / "train.jsonl").write_text('{"text": "changed", "id": 1}\n')
    assert text.identity() != before


def test_the_hub_is_asked_for_one_commit_and_streamed(hub):
    corpus = open_corpus(HuggingFace("user/books", config="small"), Split())
    assert [corpus.train[n] for n in range(3)] == ROWS["train"] and corpus.validation[0] == ROWS["validation"][0]
    (call,) = hub.calls
    assert (call["path"], call["name"], call["revision"], call["streaming"]) == ("user/books", "small", COMMIT, True)
    assert corpus.name == "books-small" and COMMIT[:12] in corpus.note


def test_another_commit_is_another_text_and_an_old_one_serves_offline(hub):
    text = HuggingFace("user/books")
    before = open_corpus(text, Split()).folder
    hub.reached = False
    assert open_corpus(text, Split()).folder == before and len(hub.calls) == 1
    hub.reached, hub.commit = True, COMMIT[::-1]
    assert open_corpus(text, Split()).folder != before and len(hub.calls) == 2
    pinned = HuggingFace("user/books", revision=COMMIT)
    hub.reached = False
    assert pinned.identity() == HuggingFace("user/books", revision=COMMIT).identity()


def unreached():
    """What the Hub's client lets through of its HTTP library where there is no network."""
    transport = huggingface_hub.errors.HfHubHTTPError.__bases__[0]
    assert not issubclass(transport, OSError | ValueError | RuntimeError)
    return type("ConnectError", (transport,), {})("no name\nno service")


def test_without_a_network_the_commit_last_seen_serves_and_a_new_name_is_told(hub):
    before = HuggingFace("user/books").identity()
    hub.reached, hub.failure = False, unreached()
    assert HuggingFace("user/books").identity() == before
    with pytest.raises(Mistake, match=r"cannot read the dataset user/others \(no name no service\); check the name"):
        HuggingFace("user/others").identity()


def test_a_network_that_goes_between_two_rows_is_told(hub):
    def rows():
        yield {"text": "one"}
        raise unreached()

    found = HuggingFace("user/books")._values(rows(), Counter())
    assert next(found) == "one"
    with pytest.raises(Mistake, match="cannot read the dataset user/books"):
        next(found)


def test_no_more_is_read_than_is_asked_for(hub):
    read = []

    def rows():
        for number in range(1000):
            read.append(number)
            yield {"text": f"row {number}"}

    hub.splits = {}
    stream = datasets.IterableDataset.from_generator(rows)
    text = HuggingFace("user/books", first=5)
    assert list(text._values(stream, Counter())) == [f"row {n}" for n in range(5)] and len(read) < 10


def test_mistakes_are_told_with_the_fix(hub, monkeypatch):
    def said(text):
        with pytest.raises(Mistake) as caught:
            open_corpus(text, Split())
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "has no column 'texts'; did you mean 'text'" in said(HuggingFace("user/books", column="texts"))
    assert "no split 'dev'; choose one of train, validation, test" in said(HuggingFace("user/books", split="dev"))
    hub.reached = False
    assert "cannot read the dataset user/others (no route); check the name" in said(HuggingFace("user/others"))
    monkeypatch.setitem(sys.modules, "datasets", None)
    hub.reached = True
    assert 'needs the package datasets: pip install "headtohead[data]"' in said(HuggingFace("user/books"))


def test_rows_without_text_are_counted(hub):
    hub.splits = {"train": [{"text": text} for text in ("a b", None, "c", "d e f")]}
    corpus = open_corpus(HuggingFace("user/books"), Split())
    assert corpus.left_out == {"rows without 'text' left out": 1} and len(corpus.train) + len(corpus.validation) == 3


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("hf:user/books", HuggingFace("user/books")),
        ("hf:user/books:small", HuggingFace("user/books", "small")),
        ("hf:user/books::train", HuggingFace("user/books", split="train")),
        ("hf:user/books:small:test:body", HuggingFace("user/books", "small", "test", "body")),
    ],
)
def test_addresses(address, text):
    assert from_address(address) == text


@pytest.mark.parametrize("address", ["hf:", "hf::a", "hf:a:b:c:d:e"])
def test_addresses_that_name_nothing(address):
    with pytest.raises(Mistake, match="write hf:NAME"):
        from_address(address)


def test_the_library_is_loaded_only_when_it_is_needed():
    assert "datasets" not in vars(huggingface) and "huggingface_hub" not in vars(huggingface)
