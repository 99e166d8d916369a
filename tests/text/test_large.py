"""Texts too large for memory: what is read, split and encoded stays within bounds. Minutes long, gigabytes of disk."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = """
import resource, sys
from headtohead.text.cache import prepare
from headtohead.text.file import File
from headtohead.text.tokenizer import Characters
tokens = prepare(File(sys.argv[1]), Characters())
# VmHWM is this program's own peak; ru_maxrss would have that of the process that started it, too
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
# the sum comes after: it reads mapped arrays, and mapped pages count
print(int(tokens.train.characters.sum(dtype="i8") + tokens.validation.characters.sum(dtype="i8")), own, workers)
"""


@pytest.mark.slow
@pytest.mark.parametrize("blanks", [True, False])
def test_one_line_of_500_megabytes(tmp_path, blanks):
    """All of it is encoded, and neither the process nor a worker of it holds as much as the line itself."""
    if shutil.disk_usage(tmp_path).free < 8 << 30:
        pytest.skip("less than 8 GB of disk are free")
    letters = random.Random(0).choices("abcdefghij " if blanks else "abcdefghij", k=1 << 20)
    with open(tmp_path / "line.txt", "w") as file:
        for _ in range(500):
            file.write("".join(letters))
    package = str(Path(__file__).parents[2])
    environment = os.environ | {"H2H_CACHE": str(tmp_path / "cache"), "PYTHONPATH": package}
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "line.txt")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    shutil.rmtree(tmp_path)
    assert done.returncode == 0, done.stderr
    characters, own, workers = map(int, done.stdout.split())
    print(f"peak {own / 1024:.0f} MB in the process, {workers / 1024:.0f} MB in a worker")
    assert characters == 500 << 20 and own < 500 << 10 and workers < 500 << 10
