"""What a build is made from decides where it is cached; a finished one is found, an unfinished one is not."""

import re
from pathlib import Path

import pytest

from local import binaries, outside
from local.binaries import ACTIONLINT, ALL, COREDNS, KUBERNETES, VALE, Cache, content_key, linker_flags, parse_go_version, pinned_version
from local.commands import LocalError


@pytest.mark.parametrize("module", [*ALL, ACTIONLINT, VALE], ids=lambda module: module.name)
def test_every_module_pins_its_version_and_names_its_tools(module: binaries.Module) -> None:
    go_mod = (module.folder / "go.mod").read_text()
    assert pinned_version(module, go_mod).startswith("v")
    if module.main.exists():
        assert re.search(rf"^module \S+/{module.programs[0]}$", go_mod, re.MULTILINE)
        return
    tools = [line.split("/")[-1] for line in re.split(r"^tool\b", go_mod, flags=re.MULTILINE)[1].split(")")[0].splitlines()]
    assert set(module.programs) <= set(tools)


def test_coredns_has_the_plugins_that_its_corefile_names_and_no_others() -> None:
    manifest = (binaries.MODULES.parent / "manifests" / "coredns.yaml").read_text()
    corefile = manifest.partition("Corefile: |\n")[2].partition("\n---")[0]
    corefile = corefile.replace("${FORWARD}", outside.render_forward(["192.0.2.1"])) + outside.render_forward([]).replace("\n    ", "\n")
    named = set(re.findall(r"^(?: {8})?([a-z]+) ?.*$", corefile, re.MULTILINE)) - {"rcode"}
    assert set(re.findall(r'_ "github.com/coredns/coredns/plugin/(\w+)"', COREDNS.main.read_text())) == named


def test_missing_requirement_is_a_clear_error() -> None:
    with pytest.raises(LocalError, match=r"requires no k8s\.io/kubernetes"):
        pinned_version(KUBERNETES, "module x\n")


def test_kubernetes_learns_its_version_from_the_linker() -> None:
    flags = linker_flags(KUBERNETES, "v1.35.4")
    assert "gitVersion=v1.35.4" in flags
    assert "gitMajor=1 " in flags
    assert flags.endswith("gitMinor=35")
    assert linker_flags(COREDNS, "v1.15.0") == "-s -w"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("go version go1.26.8 linux/amd64", (1, 26, 8), id="release"),
        pytest.param("go version go1.27 linux/arm64", (1, 27, 0), id="without patch"),
        pytest.param("go version go1.27rc1 linux/amd64", None, id="release candidate"),
        pytest.param("go version devel go1.28-abcdef linux/amd64", None, id="development"),
        pytest.param("gccgo (Debian 14) 14.2", None, id="another compiler"),
    ],
)
def test_go_version_is_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_go_version(text) == version


def test_key_depends_on_every_input_and_on_nothing_else() -> None:
    inputs = ["mod", "sum", "go1.26.8 linux/amd64", "-s -w", "main"]
    keys = {content_key(*inputs)}
    for position in range(5):
        keys.add(content_key(*[text + "x" * (index == position) for index, text in enumerate(inputs)]))
    assert len(keys) == 6
    assert content_key(*inputs) == content_key(*inputs)


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` on PATH that notes its builds and writes what is asked for, or fails when told so."""
    folder = tmp_path / "path"
    folder.mkdir()
    go = folder / "go"
    go.write_text(f"""#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.26.8 linux/amd64"; exit; fi
echo "$2" >>{tmp_path}/builds
for last; do previous=$out; out=$last; done
for name in {" ".join(name for module in ALL for name in module.programs)}; do echo program >"$previous$name"; done
[ ! -e {tmp_path}/fail ] || {{ echo "compile error"; exit 1; }}
""")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tmp_path


def builds(folder: Path) -> int:
    log = folder / "builds"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_finished_build_is_never_repeated(fake_go: Path) -> None:
    cache = Cache(fake_go / "cache")
    said: list[str] = []
    assert cache.find() is None
    programs = cache.build(said.append)
    assert all(path.exists() for path in programs.values())
    assert len(said) == builds(fake_go) == len(ALL)
    assert Cache(fake_go / "cache").build(said.append) == programs == cache.find()
    assert builds(fake_go) == len(ALL)


def test_interrupted_build_is_not_taken_for_finished(fake_go: Path) -> None:
    cache = Cache(fake_go / "cache")
    (fake_go / "fail").touch()
    with pytest.raises(LocalError, match="compile error"):
        cache.build(lambda _: None)
    assert cache.find() is None
    (fake_go / "fail").unlink()
    assert cache.build(lambda _: None) == cache.find()
