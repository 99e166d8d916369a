"""From documents to columns of numbers on disk, page by page, on as many cores as there are.

`python -m headtohead.text.encode JOB FIRST LAST` does some of the pages in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headtohead.files import read_json, write_json
from headtohead.spec import Mistake
from headtohead.text.columns import Column, pieces
from headtohead.text.corpus import Documents, Page, mapped
from headtohead.text.vocabulary import Encoded, Vocabulary, load_vocabulary

COLUMNS = ("ids", "bytes", "characters", "documents", "lines")
BETWEEN = re.compile(r"(\n(?:[^\S\n]*\n)*)")  # the end of a line and the blank lines after it
PAGES = 8  # a process of its own costs half a second: it has to have this many to do


class Counts(NamedTuple):
    """What is counted while encoding."""

    plain: int = 0  # tokens that are not special
    unknown: int = 0
    bytes: int = 0
    unknown_bytes: int = 0


def encode(corpus: Path, side: str, vocabulary: Vocabulary, folder: Path) -> Counts:
    """Write the columns of one side into a folder: each <side>.<column>.npy."""
    documents = mapped(corpus, side)
    total = sum(1 for _ in documents.spans())
    own = type(vocabulary).__module__.startswith("headtohead.")  # another's class is known to this process alone
    workers = max(1, min(len(os.sched_getaffinity(0)), total // PAGES)) if own else 1
    borders = [total * n // workers for n in range(workers + 1)]
    jobs = [Job(folder / f"{side}.{n}", n == 0, *borders[n : n + 2]) for n in range(workers)]
    alone = workers == 1
    counts = [_pages(documents, vocabulary, jobs[0])] if alone else _spread(corpus, side, vocabulary, folder, jobs)
    _merge(jobs, folder, side)
    return Counts(*map(sum, zip(*counts, strict=True)))


class Job(NamedTuple):
    """Some of the pages: a range, and the folder for their columns; the first one opens the stream."""

    folder: Path
    opens: bool
    first: int
    last: int


def _spread(corpus: Path, side: str, vocabulary: Vocabulary, folder: Path, jobs: list[Job]) -> list[Counts]:
    """All jobs at once, each in its process; the first that fails is told."""
    vocabulary.save(folder / "vocabulary.json")
    write_json(
        folder / "job.json", {"corpus": str(corpus), "side": side, "vocabulary": str(folder / "vocabulary.json")}
    )
    command = [sys.executable, "-P", "-m", "headtohead.text.encode", str(folder / "job.json")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    with ExitStack() as stack:
        processes = []
        for job in jobs:
            words = [*command, str(job.folder), str(int(job.opens)), str(job.first), str(job.last)]
            process = subprocess.Popen(
                words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        told = [process.communicate() for process in processes]
        for process, (_, error) in zip(processes, told, strict=True):
            if process.returncode:
                raise _failure(process.returncode, error)
    (folder / "job.json").unlink()
    (folder / "vocabulary.json").unlink()
    return [Counts(**json.loads(out)) for out, _ in told]


def _failure(code: int, error: str) -> Exception:
    """What another process ran into, as if it had happened here."""
    last = error.strip().splitlines()[-1] if error.strip() else ""
    if last.startswith("OSError "):
        number, _, reason = last.removeprefix("OSError ").partition(" ")
        return OSError(int(number), reason)
    if last.startswith("Mistake "):
        return Mistake(last.removeprefix("Mistake "))
    return RuntimeError(f"encoding ended with code {code}: {error.strip()[-2000:]}")


def _pages(documents: Documents, vocabulary: Vocabulary, job: Job) -> Counts:
    """Encode a range of pages into the job's folder."""
    job.folder.mkdir()
    mark = np.array([] if vocabulary.separator is None else [vocabulary.separator], dtype=np.int64)
    counts, tokens = Counts(), 0
    with ExitStack() as stack:
        column = {name: stack.enter_context(Column(job.folder / f"{name}.npy")) for name in COLUMNS}
        if job.opens:
            tokens = len(mark)
            for name, first in (("ids", mark), ("bytes", mark * 0), ("characters", mark * 0), ("documents", [tokens])):
                column[name].append(np.array(first))
        for spans in islice(documents.spans(), job.first, job.last):
            page = documents.page(spans)
            encoded, ends, lines = _encoded(page, vocabulary, mark)
            for name, numbers in zip(("ids", "bytes", "characters"), encoded, strict=True):
                column[name].append(numbers)
            column["documents"].append(tokens + ends)
            column["lines"].append((tokens + lines).reshape(-1))
            counts = Counts(*map(sum, zip(counts, _counted(encoded, vocabulary), strict=True)))
            tokens += len(encoded.ids)
    return counts


def _encoded(page: Page, vocabulary: Vocabulary, mark: np.ndarray) -> tuple[Encoded, np.ndarray, np.ndarray]:
    """A page's tokens with the separators, where its documents end, and its lines."""
    own = np.empty(0, dtype=bool)
    texts, closed, own = (page.texts, page.ends, own) if vocabulary.shows_lines else _by_line(page)
    encoded, sizes = vocabulary.encode_all(texts)
    stops = np.cumsum(sizes)
    last = np.array(closed, dtype=bool)
    if len(mark):
        covered = np.zeros(int(last.sum()), dtype=np.int64)
        ids, size, letters = (
            np.insert(c, stops[last], v) for c, v in zip(encoded, (mark[0], covered, covered), strict=True)
        )
        encoded = Encoded(ids, size, letters)
        stops = stops + np.cumsum(last)
    if vocabulary.shows_lines:
        plain = ~np.isin(encoded.ids, vocabulary.specials)
        lines = _runs(plain & (encoded.ids != vocabulary.newline) if vocabulary.newline is not None else plain)
    else:
        ends = stops - last * len(mark)
        lines = np.stack([ends - sizes, ends], axis=1)[own & (sizes > 0)]
    return encoded, stops[last], lines


def _by_line(page: Page) -> tuple[list[str], list[bool], np.ndarray]:
    """The page in lines and what stands between them: line ends and blank lines. Those before a document's first line go
    to that line. Also whether a document ends with each of them, and which are lines."""
    texts: list[str] = []
    closed: list[bool] = []
    lines: list[bool] = []
    for text, last in zip(page.texts, page.ends, strict=True):
        pieces = BETWEEN.split(text)
        if len(pieces) > 1 and not pieces[0].strip():
            pieces[:3] = ["".join(pieces[:3])]
        if len(pieces) > 1 and not pieces[-1].strip():
            pieces[-2:] = ["".join(pieces[-2:])]
        texts += pieces
        closed += [False] * (len(pieces) - 1) + [last]
        lines += [place % 2 == 0 for place in range(len(pieces))]
    return texts, closed, np.array(lines, dtype=bool)


def _counted(encoded: Encoded, vocabulary: Vocabulary) -> Counts:
    plain = int((~np.isin(encoded.ids, vocabulary.specials)).sum())
    strange = encoded.ids == vocabulary.unknown if vocabulary.unknown is not None else np.zeros(0, dtype=bool)
    covered = int(encoded.bytes[strange].sum()) if strange.any() else 0
    return Counts(plain, int(strange.sum()), int(encoded.bytes.sum()), covered)


def _runs(content: np.ndarray) -> np.ndarray:
    """Start and end of each run of tokens that belong to a line."""
    edges = np.flatnonzero(np.diff(content, prepend=False, append=False))
    return edges.reshape(-1, 2).astype(np.int64)


def _merge(jobs: list[Job], folder: Path, side: str) -> None:
    """The jobs' columns one after another; what counts tokens counts on."""
    for name in COLUMNS:
        if len(jobs) == 1:
            (jobs[0].folder / f"{name}.npy").rename(folder / f"{side}.{name}.npy")
            continue
        with Column(folder / f"{side}.{name}.npy") as whole:
            before = 0
            for job in jobs:
                for piece in pieces(np.load(job.folder / f"{name}.npy", mmap_mode="r")):
                    whole.append(piece.astype(np.int64) + before if name in ("documents", "lines") else piece)
                before += len(np.load(job.folder / "ids.npy", mmap_mode="r"))
    for job in jobs:
        for left in job.folder.glob("*"):
            left.unlink()
        job.folder.rmdir()


def _main(job: str, folder: str, opens: str, first: str, last: str) -> dict[str, Any]:
    told = read_json(Path(job))
    vocabulary = load_vocabulary(Path(told["vocabulary"]))
    documents = mapped(Path(told["corpus"]), told["side"])
    return _pages(documents, vocabulary, Job(Path(folder), opens == "1", int(first), int(last)))._asdict()


if __name__ == "__main__":
    try:
        print(json.dumps(_main(*sys.argv[1:])))
    except OSError as failed:
        sys.exit(f"OSError {failed.errno} {failed.strerror}")
    except Mistake as mistake:
        sys.exit(f"Mistake {mistake}")
