"""Names of images in a registry, and what is sent there."""

import hashlib
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from configs.images import reference
from images import registries, store
from images.__main__ import app
from images.steps import BuildError


def test_a_pushed_image_keeps_its_content_tag() -> None:
    local = reference("slurm", store.ROOT)
    assert registries.pushed_reference(local, "registry.example/team") == local.replace("localhost/", "registry.example/team/")


@pytest.mark.parametrize(
    "registry", ["registry.example", "registry.example:5000", "198.18.0.1:5000", "registry.example/a/b-c", "localhost:5000"]
)
def test_registries(registry: str) -> None:
    registries.check(registry)


@pytest.mark.parametrize("wrong", ["", "https://registry.example", "registry.example/team:tag", "registry.example/", "Registry/x", "a b"])
def test_what_is_no_registry_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(BuildError, match="without https:// or tag"):
        registries.check(wrong)


def test_only_plain_http_leaves_tls_out(tmp_path: Path) -> None:
    assert not [one for one in registries.push_command(tmp_path, "r/x:1", tmp_path, plain_http=False) if "tls" in one]
    assert "--dest-tls-verify=false" in registries.push_command(tmp_path, "r/x:1", tmp_path, plain_http=True)


MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}).encode()


class Registry(BaseHTTPRequestHandler):
    """A registry that has every manifest it is asked for, and takes nothing."""

    def do_GET(self) -> None:
        body = MANIFEST
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        """Says nothing."""


@pytest.fixture
def registry() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}/team"
        server.shutdown()


def test_push_prints_what_a_stack_file_says_and_sends_nothing_twice(registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store.cache().mkdir(parents=True)
    for name in store.names():
        store.archive(name).write_bytes(b"an image that no registry would take")
    record = tmp_path / "images.json"
    done = CliRunner().invoke(app, ["push", registry, "--plain-http", "--record", str(record)])
    assert done.exit_code == 0, done.output
    said = yaml.safe_load(done.stdout)
    assert said == {"images": {name: registries.pushed_reference(reference(name, store.ROOT), registry) for name in store.names()}}
    digest = hashlib.sha256(MANIFEST).hexdigest()
    assert json.loads(record.read_text()) == {name: f"{target}@sha256:{digest}" for name, target in said["images"].items()}


def test_a_registry_that_does_not_answer_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"")
    with pytest.raises(BuildError, match="skopeo ended with code"):
        registries.push(tmp_path / "x.tar", "127.0.0.1:9/slipway/x:1", Console(quiet=True), plain_http=True)


def test_record_in_a_missing_folder_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    record = tmp_path / "dist" / "images.json"
    done = CliRunner().invoke(app, ["push", "127.0.0.1:9/team", "--record", str(record)], terminal_width=400)
    assert done.exit_code == 1
    assert f"there is no folder {record.parent}" in done.stderr
