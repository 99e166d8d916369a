"""How fast a text becomes tokens, beside `datasets.map`, in one interleaved run; the memory it takes; batches from its cache.

    python benchmarks/tokenize.py --megabytes 100 --rounds 3         # both, one after the other, in turns
    python benchmarks/tokenize.py --megabytes 1000 --rounds 1 --ours # memory and batches at another size

The text is real: lines of shared/data (or of the Python documentation, where that is not here), shuffled anew for every
document, so that no two documents are equal. Both sides use one byte-level tokenizer of 8,192 tokens. Peak memory is the
system's own figure, of the process and of one worker.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = ("shakespeare/shakespeare.txt", "esperanto/esperanto.txt", "hebrew/hebrew.txt")
LINES = 80  # a document


def source_lines() -> list[list[str]]:
    """The lines of each real text."""
    found = [path.read_text(encoding="utf-8").splitlines() for name in FILES if (path := DATA / name).is_file()]
    if not found:
        from headtohead.text.documentation import gathered, library

        found = [[line for text in gathered(library()) for line in text.splitlines()]]
    return [[line for line in lines if line.strip()] for lines in found]


def make_text(path: Path, size: int) -> None:
    """About `size` bytes of JSON Lines with a field `text`."""
    draw, languages, written = random.Random(0), source_lines(), 0
    with open(path, "w", encoding="utf-8") as file:
        while written < size:
            document = "\n".join(draw.choices(draw.choice(languages), k=LINES))
            file.write(json.dumps({"text": document}, ensure_ascii=False) + "\n")
            written += len(document.encode())


def make_tokenizer(path: Path) -> None:
    """8,192 byte pairs of some of the real lines."""
    from headtohead.text.tokenizer import BytePairs

    BytePairs(8192).train([line + "\n" for lines in source_lines() for line in lines[:20_000]]).save(path)


OURS = """
import json, resource, statistics, sys, time
from pathlib import Path
from headtohead.text import cache
from headtohead.text.cache import prepare
from headtohead.text.corpus import open_corpus
from headtohead.text.examples import Lines, Stream
from headtohead.text.file import File
from headtohead.text.split import Split
from headtohead.text.tokenizer import Tokenizer
from headtohead.text.vocabulary import load_vocabulary

class Ready(Tokenizer):
    def train(self, documents):
        return load_vocabulary(Path(sys.argv[2]))

text, split = File(sys.argv[1], border=sys.argv[4]), Split(twins=True)
start = time.perf_counter()
corpus = open_corpus(text, split)
read = time.perf_counter() - start
tokens = prepare(text, Ready(), split)
whole = time.perf_counter() - start
kilobytes = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]

def seconds(examples):
    taken = []  # by a batch of 32 rows of 128
    for i in range(300):
        start = time.perf_counter()
        examples.rows(tokens, 129, 32, 0, i)
        taken.append(time.perf_counter() - start)
    return {"first": taken[0], "median": statistics.median(taken[10:])}

batches = {type(examples).__name__: seconds(examples) for examples in (Stream(), Lines())}
size = int(corpus.train.sizes.sum() + corpus.validation.sizes.sum())
number = len(tokens.train.ids) + len(tokens.validation.ids)
print(json.dumps({"read": read, "encode": whole - read, "bytes": size, "tokens": number, "batches": batches,
                  "megabytes_self": kilobytes[0] / 1024, "megabytes_worker": kilobytes[1] / 1024}))
"""

THEIRS = """
import json, resource, sys, time
from pathlib import Path
import datasets
from transformers import PreTrainedTokenizerFast
from headtohead.text.vocabulary import load_vocabulary

datasets.disable_progress_bars()
fast = PreTrainedTokenizerFast(tokenizer_object=load_vocabulary(Path(sys.argv[2])).tokenizer)

def encode(rows):
    return {"input_ids": fast(rows["text"], return_attention_mask=False, return_token_type_ids=False)["input_ids"]}

start = time.perf_counter()
rows = datasets.load_dataset("json", data_files=sys.argv[1], split="train", cache_dir=sys.argv[3])
read = time.perf_counter() - start
done = rows.map(encode, batched=True, num_proc=2, remove_columns=["text"])
whole = time.perf_counter() - start
kilobytes = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
tokens = sum(len(batch["input_ids"].combine_chunks().flatten()) for batch in done.with_format("arrow").iter(1000))
print(json.dumps({"read": read, "encode": whole - read, "tokens": tokens,
                  "megabytes_self": kilobytes[0] / 1024, "megabytes_worker": kilobytes[1] / 1024}))
"""


def timed(code: str, text: Path, tokenizer: Path, border: str) -> dict[str, Any]:
    """One measurement in a process of its own with a cache of its own."""
    with tempfile.TemporaryDirectory(dir=text.parent) as cache:
        places = {"H2H_CACHE": cache, "HF_HOME": cache, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        package = {"PYTHONPATH": str(Path(__file__).parents[1])}
        command = [sys.executable, "-c", code, str(text), str(tokenizer), cache, border]
        told = subprocess.run(command, env=os.environ | places | package, capture_output=True, text=True, check=False)
        if told.returncode:
            sys.exit(told.stderr)
        return json.loads(told.stdout.strip().splitlines()[-1])


def main() -> None:
    """Measure, and print a line a round and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--border", default="file", help="of headtohead's documents: file (a row of the text) or line")
    parser.add_argument("--ours", action="store_true", help="leave datasets out")
    asked = parser.parse_args()
    sides = {"headtohead": OURS} if asked.ours else {"headtohead": OURS, "datasets.map": THEIRS}
    with tempfile.TemporaryDirectory() as folder:
        text, tokenizer = Path(folder, "text.jsonl"), Path(folder, "tokenizer.json")
        make_text(text, asked.megabytes * 10**6)
        make_tokenizer(tokenizer)
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
        for _ in range(asked.rounds):
            for name, code in sides.items():
                start = time.perf_counter()
                results[name].append(timed(code, text, tokenizer, asked.border))
                print(f"{name:<13}{time.perf_counter() - start:8.1f} s", results[name][-1], flush=True)
    size = results["headtohead"][0]["bytes"] / 1e6
    for name, rounds in results.items():
        encode = statistics.median(size / one["encode"] for one in rounds)
        whole = statistics.median(size / (one["read"] + one["encode"]) for one in rounds)
        print(f"{name}: {encode:.2f} MB/s to encode, {whole:.2f} MB/s from file to tokens (medians of {len(rounds)})")


if __name__ == "__main__":
    main()
