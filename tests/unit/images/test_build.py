"""What the build decides without a network: what it takes from the machine, what it keeps, what it says when it cannot."""

import os
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from configs.images import content_tag
from images import debian, store
from images.__main__ import app, main
from images.build import build, default_base, labels, scratch_folder
from images.steps import BuildError, run, step
from local import quickstart

SLURM = store.FOLDER / "slurm"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store.cache().mkdir(parents=True)
    return store.cache()


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nothing can be run, so that a build would fail at its first step."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_programs")
def test_unchanged_input_builds_nothing() -> None:
    store.archive("slurm").write_bytes(b"an image")
    assert build("slurm", Console(quiet=True)) == store.archive("slurm")


@pytest.mark.usefixtures("no_programs")
def test_failed_build_leaves_no_archive_and_no_scratch(own_cache: Path) -> None:
    with pytest.raises(BuildError):
        build("slurm", Console(quiet=True))
    assert [each.name for each in own_cache.iterdir() if each.suffix != ".log"] == ["lock"]


def test_cli_names_the_image_and_its_archive() -> None:
    runner = CliRunner()
    reference = runner.invoke(app, ["tag", "slurm"]).stdout.strip()
    assert reference == f"localhost/slipway/slurm:{content_tag(SLURM)}"
    missing = runner.invoke(app, ["archive", "slurm"])
    assert (missing.exit_code, missing.stdout) == (1, "")
    store.archive("slurm").write_bytes(b"an image")
    assert runner.invoke(app, ["archive", "slurm"]).stdout.strip() == str(store.archive("slurm"))


def test_cli_puts_the_archive_where_asked(tmp_path: Path) -> None:
    store.archive("slurm").write_bytes(b"an image")
    wanted = tmp_path / "deep" / "slurm.tar"
    said = CliRunner().invoke(app, ["build", "slurm", "--output", str(wanted)])
    assert said.exit_code == 0
    assert said.stdout.splitlines()[-1].startswith("localhost/slipway/slurm:")
    assert wanted.read_bytes() == b"an image"
    assert [each.name for each in wanted.parent.iterdir()] == ["slurm.tar"]


def test_cli_says_which_images_there_are() -> None:
    said = CliRunner().invoke(app, ["tag", "slurn"])
    assert said.exit_code == 2
    assert "there are: controllers, observability, root, slurm" in said.stderr.replace("\n", " ")


def test_only_the_newest_archives_are_kept(own_cache: Path) -> None:
    for age in range(store.KEPT + 2):
        file = own_cache / f"slurm-{age}.tar"
        file.write_bytes(b"")
        file.with_suffix(".log").write_text("")
        os.utime(file, (100 - age, 100 - age))
    (own_cache / "coredns-1.tar").write_bytes(b"another's")
    store.prune("slurm")
    assert sorted(each.name for each in own_cache.glob("*.tar")) == ["coredns-1.tar", *(f"slurm-{age}.tar" for age in range(store.KEPT))]
    assert len([*own_cache.glob("*.log")]) == store.KEPT


def test_scratch_of_a_killed_build_goes_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / ".build-dead"
    (left / "root").mkdir(parents=True)
    with scratch_folder(tmp_path) as folder:
        assert folder.is_dir()
        assert not left.exists()
    assert [*tmp_path.glob(".build-*")] == []


def test_bases_of_other_mirrors_or_settings_are_kept_apart() -> None:
    names = {store.base_archive(each).name for each in (["a", "b"], ["a"], ["ab"], ["a", "c"])}
    assert len(names) == 4
    assert not any(name.startswith(f"{image}-") for name in names for image in store.names())


def test_every_image_is_brought_to_the_local_cluster() -> None:
    assert sorted(quickstart.IMAGES) == store.names()


def test_mirror_is_the_machines_own_main_archive() -> None:
    lines = "Debian-Security main http://mirror.example/security/\nGoogle main http://other.example/\nDebian main http://mirror.example/debian/\n"
    assert debian.debian_mirror(lines) == "http://mirror.example/debian"


def test_machine_without_a_mirror_is_told_what_to_do() -> None:
    with pytest.raises(BuildError, match="--mirror"):
        debian.debian_mirror("Ubuntu main http://mirror.example/ubuntu\n")


def test_settings_that_reach_a_mirror_are_carried_and_no_others() -> None:
    dump = [
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Pipeline-Depth "0";',
        'Acquire::IndexTargets::deb::Packages::Optional "0";',
        'Acquire::AllowInsecureRepositories "0";',
        'Acquire::http "";',
        'APT::Install-Recommends "1";',
        'DPkg::Post-Invoke:: "/usr/bin/something";',
    ]
    assert debian.apt_settings("\n".join(dump)) == dump[:3]


def test_labels_record_what_was_installed() -> None:
    said = labels("slurm", "slurm=26.05.5-1\nmunge=0.5.18-1\n", "debian:forky-slim")
    assert said == {
        "org.opencontainers.image.version": "26.05.5-1",
        "org.opencontainers.image.base.name": "debian:forky-slim",
        "dev.slipway.version.slurm": "26.05.5-1",
        "dev.slipway.version.munge": "0.5.18-1",
    }


def test_image_without_an_entry_of_its_name_has_no_version() -> None:
    assert "org.opencontainers.image.version" not in labels("controllers", "python=3.14.7\n", "debian:forky-slim")


def test_default_base_is_debians_official_image() -> None:
    for name in store.names():
        assert default_base((store.FOLDER / name / "Dockerfile").read_text()) == "debian:forky-slim"
    with pytest.raises(BuildError, match="ARG BASE="):
        default_base("FROM debian\n")


def test_failed_program_is_reported_with_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run([sys.executable, "-c", "print('earlier')"], log)
    with pytest.raises(BuildError) as said:
        run([sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"], log)
    assert "ended with code 3" in str(said.value)
    assert "why" in str(said.value)
    assert "earlier" not in str(said.value)
    assert str(log) in str(said.value)


def test_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no-such-program is not installed"):
        run(["no-such-program"], tmp_path / "log")


def test_failed_step_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BuildError), step(Console(stderr=True), "base image"):
        raise BuildError("no")
    assert "✗ base image" in capsys.readouterr().err


def test_series_of_the_dockerfile_is_the_one_that_is_rendered_for() -> None:
    assert "ARG SLURM_SERIES=26.05\n" in (SLURM / "Dockerfile").read_text()


def test_file_that_vanishes_while_read_is_an_error_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def vanish(_name: str) -> Path:
        raise FileNotFoundError(2, "No such file or directory", "images/slurm/gone")

    monkeypatch.setattr(store, "archive", vanish)
    monkeypatch.setattr(sys, "argv", ["images", "archive"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert "'images/slurm/gone'" in said
    assert "Traceback" not in said
