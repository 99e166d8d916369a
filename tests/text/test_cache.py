import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headtohead.spec import Mistake
from headtohead.text import cache as module
from headtohead.text.cache import BLOCK, evaluated, prepare
from headtohead.text.corpus import open_corpus
from headtohead.text.file import File
from headtohead.text.source import Text
from headtohead.text.split import Split
from headtohead.text.tokenizer import BytePairs, Characters, Tokenizer, Words
from headtohead.text.vocabulary import Vocabulary

from .conftest import Given

PAIR = Given(("ab\ncd", "ba"), ("dc\n\nab",))
trained: list[int] = []


class Watched(Tokenizer):
    """Characters that tell when they are trained."""

    name: str

    def train(self, documents):
        trained.append(len(documents))
        return Characters().train(documents)


def test_a_stream_is_documents_between_separators():
    tokens = prepare(PAIR, Characters())
    assert tokens.vocabulary.characters == "\nabcd" and tokens.bordered and tokens.name == "given"
    assert tokens.train.ids.tolist() == [0, 3, 4, 2, 5, 6, 0, 4, 3, 0]
    assert tokens.train.documents.tolist() == [1, 7, 10] and tokens.train.bytes.tolist() == [
        0,
        1,
        1,
        1,
        1,
        1,
        0,
        1,
        1,
        0,
    ]
    assert tokens.train.lines.tolist() == [[1, 3], [4, 6], [7, 9]]
    assert tokens.validation.lines.tolist() == [[1, 3], [5, 7]]  # the blank line is none


def test_without_a_separator_documents_touch():
    bare, words = prepare(PAIR, Characters(bare=True)), prepare(PAIR, Words(1))
    assert bare.train.ids.tolist() == [1, 2, 0, 3, 4, 2, 1] and bare.train.documents.tolist() == [0, 5, 7]
    assert words.vocabulary.words == ("ab", "ba", "cd")
    assert words.train.ids.tolist() == [2, 4, 3, 2, 6, 3, 2, 5, 3] and words.train.documents.tolist() == [0, 6, 9]
    assert words.train.lines.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert words.validation.ids.tolist() == [2, 1, 3, 2, 4, 3]
    assert (words.validation.unknown_rate, words.validation.unknown_bytes) == (1 / 2, 2 / 6)
    assert words.train.unknown_rate == words.train.unknown_bytes == 0


def test_arrays_are_mapped_from_disk_and_small():
    tokens = prepare(PAIR, Characters())
    for split in (tokens.train, tokens.validation):
        for array in (split.ids, split.bytes, split.characters, split.documents, split.lines):
            assert isinstance(array, np.memmap) and not array.flags.writeable
    assert (tokens.train.ids.dtype, tokens.train.bytes.dtype) == (np.uint8, np.uint8)
    large = prepare(Given(("".join(map(chr, range(0x10000, 0x20000))),), ("x" * 300 + " yz",)), Characters())
    assert large.train.ids.dtype == np.uint32 and set(large.train.bytes[1:-1]) == {4}
    long = prepare(Given(("a a",), ("x" * 300 + " yz",)), Words(1))
    assert long.validation.bytes.dtype == np.uint16 and long.validation.bytes.tolist() == [0, 300, 3, 0]


@pytest.mark.parametrize("length", [10, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 5000])
def test_a_text_without_borders_is_evaluated_in_blocks(length):
    text = "".join(chr(0x61 + n % 26) for n in range(length))
    given = Given((text,), ("é" + text[1:],))
    tokens = prepare(given, Characters())
    assert len(tokens.validation.ids) == length + 2
    edges = tokens.validation.documents
    assert edges[0] == 1 and edges[-1] == length + 2
    assert len(edges) - 1 == max((length + 1) // BLOCK, 1) and set(np.diff(edges)[:-1]) <= {BLOCK}
    pieces = list(evaluated(open_corpus(given, Split()), tokens))
    assert "".join(pieces) == "é" + text[1:] and list(map(len, pieces[:-1])) == np.diff(edges)[:-1].tolist()


def test_documents_are_evaluated_as_they_are():
    assert list(evaluated(open_corpus(PAIR, Split()), prepare(PAIR, Words(1)))) == ["dc\n\nab"]


def test_only_training_documents_train_the_tokenizer_and_only_once():
    trained.clear()
    first, second = prepare(PAIR, Watched("once")), prepare(PAIR, Watched("once"))
    assert trained == [2] and first.fingerprint == second.fingerprint
    assert "z" not in prepare(Given(("ab",), ("z",)), Characters()).vocabulary.characters
    prepare(PAIR, Watched("another"))
    assert trained == [2, 2]


def test_a_changed_file_is_prepared_anew(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one two " * 10)
    stat, before = path.stat(), prepare(File(str(path)), Characters())
    path.write_text("one owt " * 10)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = prepare(File(str(path)), Characters())
    assert before.fingerprint != after.fingerprint and after.vocabulary.decode(after.train.ids).startswith("one owt ")
    path.write_text("one two " * 10)
    assert prepare(File(str(path)), Characters()).fingerprint == before.fingerprint


def test_hashes_say_what_is_equal(tmp_path, monkeypatch):
    here, words = prepare(PAIR, Characters()), prepare(PAIR, Words(1))
    assert here.validation.sha256 == words.validation.sha256 and here.fingerprint != words.fingerprint
    assert here.validation.sha256 == hashlib.sha256(b"6\ndc\n\nab").hexdigest()
    assert here.train.sha256 != prepare(Given(("ab\ncdba",), PAIR.validation), Characters()).train.sha256
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    assert prepare(PAIR, Characters()).fingerprint == here.fingerprint
    assert len(list((tmp_path / "text").glob("*/text.json"))) == 1


def test_the_cache_is_under_home_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("H2H_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    prepare(PAIR, Characters())
    assert len(list((tmp_path / ".cache/headtohead/text").glob("*/tokenizer.json"))) == 1


def test_edited_code_makes_a_new_entry(tmp_path, monkeypatch):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    prepare(PAIR, Characters())
    monkeypatch.setattr("headtohead.text.store.code", lambda thing: f"edited {thing.__name__}")
    prepare(PAIR, Characters())
    assert len(list((tmp_path / "text").glob("*/text.json"))) == 2


class Flickering(Text):
    """Another text every time it is asked."""

    def identity(self):
        trained.append(0)
        return str(len(trained))

    def documents(self, tally):
        return PAIR.documents(tally)

    def title(self):
        return "given"


def test_a_text_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    with pytest.raises(Mistake, match="given changed while it was read; run again"):
        prepare(Flickering(), Characters())
    assert not [path for path in (tmp_path / "text").iterdir() if path.is_dir()]


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("H2H_CACHE", str(tmp_path / "file"))
    with pytest.raises(Mistake, match=r"cannot write .*file.text \(Not a directory\); set H2H_CACHE"):
        prepare(PAIR, Characters())


def test_a_full_disk_is_told_and_an_error_of_ours_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.np, "save", full)
    with pytest.raises(Mistake, match=r"\(No space left on device\); set H2H_CACHE"):
        prepare(PAIR, Characters())
    monkeypatch.undo()
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "encode", lambda *arguments: (tmp_path / "never written").read_text())
    with pytest.raises(FileNotFoundError):
        prepare(PAIR, Characters())
    assert not list((tmp_path / "text").glob("*.partial"))


@pytest.mark.parametrize("damage", ["train.ids.npy", "validation.lines.npy", "tokenizer.json", "text.json"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_damaged_entry_is_told(tmp_path, monkeypatch, damage, how):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    prepare(PAIR, Characters())
    (folder,) = [path.parent for path in (tmp_path / "text").glob("*/text.json")]
    path = folder / damage
    path.write_bytes(path.read_bytes()[:-1]) if how == "cut" else path.unlink()
    if path.suffix == ".json" and how == "cut":
        path.write_text(path.read_text().rstrip()[:-1])
    with pytest.raises(Mistake, match="is damaged; delete that folder and run again"):
        prepare(PAIR, Characters())


class Own(Vocabulary):
    """A vocabulary that the package does not know: one number for everything."""

    bias: int = 0

    size = 1
    specials = ()

    def encode(self, text):
        return Characters(bare=True).train([text]).encode(text)._replace(ids=np.zeros(len(text), np.int32))


class Monotone(Tokenizer):
    """A tokenizer of the user's own."""

    def train(self, documents):
        return Own(7)


def test_a_tokenizer_of_the_users_own():
    tokens = prepare(PAIR, Monotone())
    assert tokens.vocabulary == Own(7) == prepare(PAIR, Monotone()).vocabulary
    assert tokens.train.ids.tolist() == [0] * 7 and tokens.train.unknown_rate == 0


STUDY = """
import os, sys, time
from pathlib import Path
from headtohead.text.cache import prepare
from headtohead.text.source import Document, Text
from headtohead.text.tokenizer import Characters, Tokenizer
log, dies = Path(sys.argv[1]), sys.argv[2] == "dies"
class Slow(Tokenizer):
    def train(self, documents):
        with open(log, "a") as file:
            file.write("trained\\n")
        if dies:
            os._exit(3)
        time.sleep(0.3)
        return Characters().train(documents)
class Here(Text):
    def identity(self):
        return "here"
    def documents(self, tally):
        return iter([Document("ab", side="train"), Document("ba", side="validation")])
print(prepare(Here(), Slow()).fingerprint)
"""


def run(tmp_path: Path, fate: str) -> subprocess.Popen:
    (tmp_path / "study.py").write_text(STUDY)
    package = str(Path(__file__).parents[2])
    environment = os.environ | {"H2H_CACHE": str(tmp_path / "cache"), "PYTHONPATH": package}
    command = [sys.executable, str(tmp_path / "study.py"), str(tmp_path / "log"), fate]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_one_works_and_the_other_waits(tmp_path):
    pair = [run(tmp_path, "lives") for _ in range(2)]
    said = {process.communicate()[0] for process in pair}
    assert [process.returncode for process in pair] == [0, 0] and len(said) == 1
    assert (tmp_path / "log").read_text() == "trained\n"


def test_a_dead_process_leaves_nothing_in_the_way(tmp_path):
    died = run(tmp_path, "dies")
    died.communicate()
    assert died.returncode == 3 and len(list((tmp_path / "cache/text").glob("*.partial"))) == 1
    after = run(tmp_path, "lives")
    assert len(after.communicate()[0].strip()) == 32 and after.returncode == 0
    assert not list((tmp_path / "cache/text").glob("*.partial"))


def test_without_locks_the_first_rename_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("H2H_CACHE", str(tmp_path))
    monkeypatch.setattr("headtohead.text.store.fcntl", None)
    original = module._write

    def overtaken(*arguments):
        *given, folder = arguments
        original(*given, folder)
        other = folder.parent / folder.name.split(".")[0]
        other.mkdir()
        original(*given, other)

    monkeypatch.setattr(module, "_write", overtaken)
    assert prepare(PAIR, Characters()).train.ids.tolist() == [0, 3, 4, 2, 5, 6, 0, 4, 3, 0]
    assert len(list((tmp_path / "text").glob("*/text.json"))) == 1 and not list((tmp_path / "text").glob("*.partial"))


LIMITED = """
import resource, sys
from pathlib import Path
from headtohead.spec import Mistake
from headtohead.text.cache import prepare
from headtohead.text.file import File
from headtohead.text.tokenizer import Characters, Words
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    print(prepare(File(sys.argv[1]), {"Characters": Characters(), "Words": Words(1)}[sys.argv[3]]).fingerprint)
except Mistake as mistake:
    print(mistake)
"""


def limited(path: Path, cache: Path, limit: int, tokenizer: str = "Characters") -> str:
    """A text prepared in a process that may write no file longer than `limit` bytes; 0 is no limit."""
    environment = os.environ | {"H2H_CACHE": str(cache), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", LIMITED, str(path), str(limit), tokenizer]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("read_before", [False, True])
def test_a_disk_that_fills_up_leaves_the_cache_valid(tmp_path, read_before):
    """Here by the system's own limit of a file's length: while the text is read, and while its tokens are written."""
    (tmp_path / "small.txt").write_text("a small text\n" * 100)
    (tmp_path / "large.txt").write_text("a larger text\n" * 5000)
    cache = tmp_path / "cache"
    before = limited(tmp_path / "small.txt", cache, 0)
    if read_before:
        limited(tmp_path / "large.txt", cache, 0, "Words")
    told = limited(tmp_path / "large.txt", cache, 50_000)
    assert "File too large); set H2H_CACHE to a folder that can hold it" in told
    assert not list((cache / "text").glob("*.partial"))
    assert limited(tmp_path / "small.txt", cache, 50_000) == before
    assert len(limited(tmp_path / "large.txt", cache, 0)) == 32


def test_a_real_full_disk(tmp_path):
    """The same on a file system of half a megabyte, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = (
        shutil.which("mount")
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("no file system can be mounted here")
    try:
        (tmp_path / "small.txt").write_text("a small text\n" * 100)
        (tmp_path / "large.txt").write_text("a larger text\n" * 20_000)
        before = limited(tmp_path / "small.txt", place, 0)
        assert "No space left on device); set H2H_CACHE" in limited(tmp_path / "large.txt", place, 0)
        assert limited(tmp_path / "small.txt", place, 0) == before and not list((place / "text").glob("*.partial"))
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
def test_a_cache_that_cannot_be_made_is_told(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("words " * 20)
    monkeypatch.setenv("H2H_CACHE", "/proc/nope")
    with pytest.raises(Mistake, match=r"cannot write /proc/nope/text \(No such file or directory\); set H2H_CACHE"):
        prepare(File(str(tmp_path / "a.txt")), Characters())


def test_a_changed_setting_of_the_source_is_prepared_anew(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ttwo\nthree\tfour\n" * 10)
    found = [
        prepare(File(str(path), **how), Words(1)).fingerprint for how in ({}, {"border": "line"}, {"after_tab": True})
    ]
    assert len(set(found)) == 3 and found[0] == prepare(File(str(path)), Words(1)).fingerprint


@pytest.mark.parametrize("tokenizer", [Characters(), Words(), BytePairs(512)])
@pytest.mark.parametrize("name", ["shakespeare", "hebrew"])
def test_real_texts_are_covered_to_the_byte(real, name, tokenizer):
    text = File(real(name))
    tokens, corpus = prepare(text, tokenizer), open_corpus(text, Split())
    for split, documents in ((tokens.train, corpus.train), (tokens.validation, corpus.validation)):
        document = documents[0]
        assert int(split.bytes.sum(dtype=np.int64)) == len(document.encode())
        assert int(split.characters.sum(dtype=np.int64)) == len(document)
        if tokenizer != Words() and not split.unknown_rate:
            assert tokens.vocabulary.decode(split.ids) == document
        lines = document.split("\n")
        assert len(split.lines) == sum(bool(line.split() if tokenizer == Words() else line) for line in lines)


@pytest.mark.parametrize("tokenizer", [Characters(), Words(1), BytePairs(300)])
def test_a_limit_in_bytes_keeps_whole_documents(tokenizer):
    texts = ("abc abc\nab", "é\nbcc", "a b c ab", "cc\n")
    tokens = prepare(Given(("abc é " * 9,), texts), tokenizer)
    whole, sizes = tokens.validation, np.cumsum([len(text.encode()) for text in texts])
    for limit in (1, *sizes - 1, *sizes, 10**6):
        cut = tokens.at_most(int(limit), 1).validation
        count = max(1, int((sizes <= limit).sum()))
        end = whole.documents[count]
        assert len(cut.documents) == count + 1 and len(cut.ids) == len(cut.characters) == end
        assert cut.bytes.sum() == sizes[count - 1] and np.array_equal(cut.ids, whole.ids[:end])
        assert cut.lines.tolist() == [line for line in whole.lines.tolist() if line[1] <= end]


def test_a_limit_keeps_enough_for_one_row():
    tokens = prepare(Given(("abc" * 9,), ("ab", "ba", "abcabc", "c")), Characters())
    assert len(tokens.at_most(1, 8).validation.documents) == 4
    assert tokens.at_most(1, 10**6).validation.documents[-1] == len(tokens.validation.ids)
