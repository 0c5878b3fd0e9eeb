"""What a user may call an image, and what the job's stderr says of one that cannot be had."""

import hashlib
import json

import pytest

from images.slurm.containers.cache import explain_answer
from images.slurm.containers.metadata import choose_manifest, read_environment, read_squashed, sum_layers
from images.slurm.containers.references import Reference, parse_reference
from images.slurm.containers.refusals import Outage, Refused, explain

HOST = "registry.example.com:5000"
DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "source"),
    [
        pytest.param(f"docker://{HOST}/team/a:1", f"docker://{HOST}/team/a:1", id="skopeo's way"),
        pytest.param(f"{HOST}/team/a", f"docker://{HOST}/team/a:latest", id="without a tag"),
        pytest.param(f"docker://me@{HOST}#team/a:1", f"docker://{HOST}/team/a:1", id="enroot's way"),
        pytest.param(f"{HOST}/a@{DIGEST}", f"docker://{HOST}/a@{DIGEST}", id="a digest"),
        pytest.param(f"{HOST}/a:1@{DIGEST}", f"docker://{HOST}/a@{DIGEST}", id="a digest beside a tag"),
        pytest.param("localhost/a:1", "docker://localhost/a:1", id="this machine"),
        pytest.param("team/a:1", "docker://default.example.com/x/team/a:1", id="the default registry"),
        pytest.param("oci-archive:/a/b.tar:1", "oci-archive:/a/b.tar:1", id="an archive"),
        pytest.param("/a/../b.sqsh", "file:/b.sqsh", id="a file"),
    ],
)
def test_reference_is_read(text: str, source: str) -> None:
    assert parse_reference(text, "default.example.com/x").source == source


@pytest.mark.parametrize("text", ["ubuntu:24.04", "team/ubuntu", f"{HOST}/", f"{HOST}/a@sha256:12", "docker://"])
def test_name_that_is_no_image_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_reference(text, "")


def test_manifest_is_that_of_the_nodes_architecture() -> None:
    single = b'{"layers": []}'
    offered = [{"digest": f"sha256:{name}", "platform": {"architecture": name}} for name in ("amd64", "arm64", "unknown")]
    index = json.dumps({"manifests": offered}).encode()
    assert choose_manifest(single, "amd64") == f"sha256:{hashlib.sha256(single).hexdigest()}"
    assert choose_manifest(index, "arm64") == "sha256:arm64"
    with pytest.raises(Refused, match="is for amd64, arm64, and this node is riscv64"):
        choose_manifest(index, "riscv64")


def test_room_is_for_layers_and_what_is_in_them() -> None:
    layers = [{"size": 10, "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"}, {"size": 5, "mediaType": "layer.v1.tar"}]
    assert sum_layers(json.dumps({"layers": layers}).encode()) == 15 + 25


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        pytest.param("write /x: no space left on device", Refused, "does not fit", id="disk"),
        pytest.param("unauthorized: authentication required", Refused, "needs a login", id="login"),
        pytest.param("open /x/auth.json: permission denied", Refused, "permission denied", id="another denial is told as it is"),
        pytest.param("manifest unknown: manifest unknown", Refused, "there is no image", id="missing"),
        pytest.param("dial tcp 198.18.0.1:5000: connect: connection refused", Outage, "does not answer", id="refused"),
        pytest.param("dial tcp: lookup x: no such host", Outage, "does not answer", id="no such host"),
        pytest.param("received unexpected HTTP status: 503 Service Unavailable", Outage, "does not answer", id="a server's error"),
        pytest.param("unexpected digest sha256:404500eof", Refused, "img: unexpected digest", id="numbers in a digest are no status"),
        pytest.param("x509: certificate signed by unknown authority", Refused, "cannot be trusted", id="certificate"),
        pytest.param('time="x" level=fatal msg="something else"', Refused, "img: something else", id="anything else"),
    ],
)
def test_failure_is_told_in_a_line(said: str, kind: type[Refused], words: str) -> None:
    found = explain(f"first line\n{said}\n", "img", HOST)
    assert type(found) is kind
    assert words in str(found)
    assert "\n" not in str(found)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        pytest.param("cache 60 100", "this node's cache of images is full: 60 of 100 MiB are used by running jobs", id="images in use"),
        pytest.param("disk 7", "this node's disk for containers has 7 MiB free", id="disk"),
    ],
)
def test_lack_of_room_is_told_in_a_line(answer: str, line: str) -> None:
    assert f"img needs about 50 MiB, and {line}" in str(explain_answer(answer, "img", 50))


@pytest.mark.parametrize("answer", ["room", "unknown", ""])
def test_pull_begins_where_nothing_speaks_against_it(answer: str) -> None:
    assert explain_answer(answer, "img", 50) is None


def test_environment_and_folder_are_the_images() -> None:
    config = {"config": {"Env": ["A=1", "B=x=y", "bad", "C=\0"], "WorkingDir": "/w"}}
    assert read_environment(config) == (b"A=1\0B=x=y\0", "/w")
    assert read_environment({}) == (b"", "")
    text = "# comment\nA=1\nB='two words'\n"
    assert read_squashed(text, 'mkdir -p "/w" 2> /dev/null\ncd "/w" && unset OLDPWD || exit 1\n') == (b"A=1\0B=two words\0", "/w")


def test_source_of_a_file_names_its_transport() -> None:
    assert Reference("docker-archive", "/a.tar", "x:1").source == "docker-archive:/a.tar:x:1"
