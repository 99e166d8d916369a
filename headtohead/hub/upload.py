"""A run to the Hugging Face Hub, through huggingface_hub: what is there already is not sent again."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headtohead.hub.outgoing import send_out
from headtohead.spec import Mistake

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TOKENS = ("HF_TOKEN", "HUGGINGFACE_TOKEN")  # the second is what study 1's code asked for
USER = "HUGGINGFACE_USER"


def upload(run: Path, name: str, private: bool, study: Path | None = None, trust_study: bool = False) -> str:
    """Export the run and send what the repository lacks; weights go file by file, so that a stop loses one at most."""
    known = settings()
    token = next((known[key] for key in TOKENS if known.get(key)), None)
    if token is None:
        raise Mistake("there is no token for the Hub; set HF_TOKEN in the environment or write HF_TOKEN=… into ./.env")
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise Mistake("the Hub needs huggingface_hub; pip install 'headtohead[data]'") from None
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        send_out(run, folder, study, trust_study)
        with _told(token):
            repository = name if "/" in name else f"{known.get(USER) or api.whoami()['name']}/{name}"
            address = api.create_repo(repository, private=private, exist_ok=True)
            sent, there = send_missing(api, repository, folder)
    return f"{address}: {sent} files sent, {there} were there already"


def settings() -> dict[str, str]:
    """The environment, and below it what ./.env says."""
    found: dict[str, str] = {}
    if Path(".env").is_file():
        for line in Path(".env").read_text(encoding="utf-8").splitlines():
            key, equals, value = line.strip().removeprefix("export ").partition("=")
            if equals and not key.startswith("#"):
                found[key.strip()] = value.strip().strip("'\"")
    return found | {key: os.environ[key] for key in (*TOKENS, USER) if os.environ.get(key)}


def send_missing(api: HfApi, repository: str, folder: Path) -> tuple[int, int]:
    """How many files were sent and how many were there with the same content."""
    from huggingface_hub import CommitOperationAdd
    from huggingface_hub.hf_api import RepoFile

    entries = api.list_repo_tree(repository, recursive=True)
    there = {
        entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id for entry in entries if isinstance(entry, RepoFile)
    }
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    missing = [path for path in files if there.get(str(path.relative_to(folder))) not in hashes(path)]
    heavy = [[path] for path in missing if path.suffix == ".safetensors"]
    light = [path for path in missing if path.suffix != ".safetensors"]
    for batch in [*heavy, *([light] if light else [])]:
        operations = [CommitOperationAdd(str(path.relative_to(folder)), path) for path in batch]
        api.create_commit(
            repository, operations, commit_message=f"Upload {', '.join(path.name for path in batch)[:60]}"
        )
    return len(missing), len(files) - len(missing)


def hashes(path: Path) -> tuple[str, str]:
    """What the Hub knows a file by: SHA-256 where it is stored apart, else git's own of a blob."""
    content = path.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return hashlib.sha256(content).hexdigest(), blob.hexdigest()


@contextmanager
def _told(token: str) -> Iterator[None]:
    """What the Hub or the network says, in one line, and never the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError

    try:
        yield
    except HFValidationError as error:
        raise Mistake(f"the name cannot be one of a repository: {_line(error, token)}") from None
    except HfHubHTTPError as error:
        raise Mistake(f"the Hub refused: {_line(error, token)}; mend that, and the same command goes on") from None
    except (HTTPError, OSError, RuntimeError) as error:  # the last is what a broken upload comes as
        raise Mistake(
            f"the Hub cannot be reached ({_line(error, token)}); the same command goes on from here"
        ) from None


def _line(error: Exception, token: str) -> str:
    return " ".join(str(error).split()).replace(token, "***")[:300]
