"""Pushing to a stand-in of the Hub on this machine, with huggingface_hub's own client."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

import pytest
import released
import transformers

from headtohead.hub.incoming import bring_in
from headtohead.hub.upload import hashes, settings, upload
from headtohead.spec import Mistake

# the client's own way of sending, which its HTTP library has begun to warn of
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
TOKEN = "hf_a_secret_of_ours"


class Hub(BaseHTTPRequestHandler):
    """What of the Hub's interface an upload uses. `fail` names a request to be refused once."""

    def do_GET(self):
        path = urlparse(self.path).path
        if path == "/api/whoami-v2":
            return self.answer({"name": "somebody", "type": "user"})
        if "/tree/" in path:
            return self.answer([self.entry(name, *found) for name, found in self.server.files.items()])
        return self.answer({"error": path}, 404)

    def entry(self, name, kind, content):
        sha, blob = hashlib.sha256(content).hexdigest(), git(content)
        entry = {"type": "file", "path": name, "size": len(content), "oid": blob}
        return entry | ({"lfs": {"oid": sha, "size": len(content), "pointerSize": 1}} if kind == "lfs" else {})

    def do_POST(self):
        path, body = urlparse(self.path).path, self.rfile.read(int(self.headers["Content-Length"]))
        server, endpoint = self.server, f"http://localhost:{self.server.server_port}"
        server.seen.append((path, self.headers.get("Authorization")))
        if server.fail and server.fail in path:
            server.fail = None
            return self.answer({"error": "stopped"}, 400)
        if path == "/api/repos/create":
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self.answer({"error": "Invalid token " + self.headers.get("Authorization", "")}, 401)
            return self.answer({"url": f"{endpoint}/somebody/model"}, 409 if server.files else 200)
        if "/preupload/" in path:
            names = [file["path"] for file in json.loads(body)["files"]]
            mode = {name: "lfs" if name.endswith(".safetensors") else "regular" for name in names}
            return self.answer(
                {"files": [{"path": name, "uploadMode": mode[name], "shouldIgnore": False} for name in names]}
            )
        if path.endswith("/objects/batch"):
            upload = {"upload": {"href": f"{endpoint}/upload"}}
            objects = [
                one | ({} if one["oid"] in server.objects else {"actions": upload})
                for one in json.loads(body)["objects"]
            ]
            return self.answer({"transfer": "basic", "objects": objects})
        if "/commit/" in path:
            for line in body.decode().splitlines():
                item = json.loads(line)
                value = item["value"]
                if item["key"] == "file":
                    server.files[value["path"]] = ("regular", base64.b64decode(value["content"]))
                elif item["key"] == "lfsFile":
                    server.files[value["path"]] = ("lfs", server.objects[value["oid"]])
            return self.answer({"commitUrl": f"{endpoint}/somebody/model/commit/1", "commitOid": "1", "success": True})
        return self.answer({})

    def do_PUT(self):
        content = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.objects[hashlib.sha256(content).hexdigest()] = content
        self.server.sent.append(len(content))
        self.answer({})

    def answer(self, value, status=200):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


def git(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    server = ThreadingHTTPServer(("localhost", 0), Hub)
    server.files, server.objects, server.seen, server.sent, server.fail = {}, {}, [], [], None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://localhost:{server.server_port}")
    for name in ("HUGGINGFACE_TOKEN", "HUGGINGFACE_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # its storage has a server of its own
    monkeypatch.chdir(tmp_path)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(tmp_path):
    model = released.model_of("BertForMaskedLM", released.config_of("bert"))
    bring_in(released.save(model, tmp_path / "model"), tmp_path / "run")
    return tmp_path / "run"


def test_what_is_pushed_loads_again(hub, run, tmp_path, capfd):
    assert upload(run, "model", private=False).endswith("/somebody/model: 7 files sent, 0 were there already")
    for name, (_, content) in hub.files.items():
        (tmp_path / "down").mkdir(exist_ok=True)
        (tmp_path / "down" / name).write_bytes(content)
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "down")
    original = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "model")
    assert all((p == q).all() for p, q in zip(model.parameters(), original.parameters(), strict=True))
    out, err = capfd.readouterr()
    assert TOKEN not in out + err
    assert all(TOKEN.encode() not in content for _, content in hub.files.values())


def test_a_second_push_sends_what_is_missing(hub, run):
    """Stopped when the weights were sent and not yet committed: they are not sent again, and no file is sent twice."""
    hub.fail = "/commit/"
    with pytest.raises(Mistake, match=r"the Hub refused: .*; mend that, and the same command goes on"):
        upload(run, "somebody/model", private=True)
    assert len(hub.sent) == 1 and not hub.files
    assert "7 files sent, 0 were there" in upload(run, "somebody/model", private=True)
    assert len(hub.sent) == 1  # the object was there: only its commit was missing
    del hub.files["README.md"]
    assert "1 files sent, 6 were there" in upload(run, "somebody/model", private=True)
    commits = sum("/commit/" in path for path, _ in hub.seen)
    assert "0 files sent, 7 were there" in upload(run, "somebody/model", private=True)
    assert commits == sum("/commit/" in path for path, _ in hub.seen) and len(hub.sent) == 1


def test_the_token_comes_from_the_environment_or_a_file(hub, monkeypatch, tmp_path):
    assert settings()["HF_TOKEN"] == TOKEN
    (tmp_path / ".env").write_text(
        "# mine\nexport HUGGINGFACE_TOKEN='other'\nHF_TOKEN=third\nHUGGINGFACE_USER=\"me\"\n"
    )
    assert settings() == {"HUGGINGFACE_TOKEN": "other", "HF_TOKEN": TOKEN, "HUGGINGFACE_USER": "me"}
    monkeypatch.delenv("HF_TOKEN")
    assert settings()["HF_TOKEN"] == "third"


def test_no_token_is_told(hub, run, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(Mistake, match="set HF_TOKEN in the environment or write"):
        upload(run, "model", private=False)
    assert not hub.seen


def test_a_refused_token_is_told_and_not_shown(hub, run, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong_and_secret")
    with pytest.raises(Mistake, match="the Hub refused") as told:
        upload(run, "somebody/model", private=False)
    assert "hf_wrong" not in str(told.value) and "\n" not in str(told.value)


def test_a_hub_that_is_not_there_is_told(run, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:9")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(Mistake, match="the Hub cannot be reached"):
        upload(run, "somebody/model", private=False)


def test_a_name_that_cannot_be_is_told(hub, run):
    with pytest.raises(Mistake, match="cannot be one of a repository"):
        upload(run, "somebody/a b--c", private=False)


def test_hashes_are_those_of_git_and_sha256(tmp_path):
    """Of the empty file and of "hello\\n", as `git hash-object` and `sha256sum` print them."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert hashes(tmp_path / "empty")[1] == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert hashes(tmp_path / "hello")[1] == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert hashes(tmp_path / "empty")[0].startswith("e3b0c44298fc1c149afbf4c8996fb924")
