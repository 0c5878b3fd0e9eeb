"""What a person reads in a status."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from cli.status.overview import Away, CheckRow, Overview, ProgramRow, QueueRow, SetRow
from cli.status.readings import Reading, Readings
from cli.status.screen import render, span

NOW = 1_800_000_000.0
READ = Readings(Reading(None, NOW), Reading((), NOW), Reading((), NOW))
FINE = Overview(
    sets=(SetRow("gpu", 2, 2, "Ready", "fine", {"idle": 1, "allocated": 1}),),
    programs=(ProgramRow("dev-slurmctld", 1, 1),),
    checks=(CheckRow("disk", False, True, NOW - 90, {"passed": 2}, NOW - 120),),
    backup=None,
    has_backups=False,
    files="",
    away=(),
    cpus=(3, 8),
    gpus=(1, 16),
    queue=(QueueRow("main", 1, 12, int(NOW) - 7200, (("Resources", 7), ("Priority", 3), ("Dependency", 1), ("BeginTime", 1))),),
)


def shown(overview: Overview, readings: Readings = READ, width: int = 160) -> str:
    written = io.StringIO()
    Console(file=written, width=width, highlight=False).print(render("slurm in local", overview, readings, NOW))
    return written.getvalue()


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_quiet_cluster_is_a_few_lines() -> None:
    said = shown(FINE)
    assert ["SET", "WANTED", "READY", "IDLE", "BUSY", "PHASE"] in lines(said)
    assert ["gpu", "2", "2", "1", "1", "Ready"] in lines(said)
    assert "In use: 3 of 8 CPUs, 1 of 16 GPUs" in said
    assert "No node is out of service." in said
    assert "All 1 programs are ready." in said
    assert "Read: Kubernetes 0 s ago, nodes 0 s ago, queue 0 s ago" in said


def test_queue_tells_who_waits_longest_and_why() -> None:
    said = shown(FINE)
    assert "main       1        12       2 h      7 Resources, 3 Priority, 1 Dependency" in said
    assert "BeginTime" not in said


def test_nodes_out_of_service_are_shown_with_reason_and_age() -> None:
    away = tuple(
        Away(f"gpu-{at}", "DOWN+CLOUD", at == 0, "its fan is loud", "ann", int(NOW) - 300, "worker-1", ("administrator", "cordon"))
        for at in range(23)
    )
    overview = replace(FINE, away=away, sets=(SetRow("gpu", 24, 1, "Degraded", "23 nodes are away", {"down": 23}),))
    said = shown(overview)
    assert "OUT OF SERVICE: 23 nodes" in said
    assert "gpu-0   DOWN+CLOUD  5 min  ann  worker-1  administrator, cordon  its fan is loud (may still run jobs)" in said
    assert "gpu-20 " not in said
    assert "... and 3 more; --json has them all" in said
    assert "gpu: 23 nodes are away" in said


def test_what_was_not_read_is_said_with_its_age_and_the_reason() -> None:
    readings = Readings(Reading(None, NOW), Reading((), NOW - 40, "slurmctld is not ready"), Reading((), None, "no Service"))
    overview = replace(FINE, queue=None, away=None, cpus=None)
    said = shown(overview, readings)
    assert "nodes 40 s ago (slurmctld is not ready), queue never (no Service)" in said
    assert "No node is out of service" not in said


def test_checks_backups_files_and_programs_that_are_late_are_told() -> None:
    disk = CheckRow("disk", False, True, NOW - 90, {"passed": 2, "failed": 1}, NOW - 7200)
    checks = (disk, CheckRow("gpu", True, True, None, {}, None), CheckRow("mounts", False, False, None, {"passed": 3}, NOW - 60))
    programs = (ProgramRow("dev-slurmctld", 0, 1), ProgramRow("dev-guard", 1, 1))
    said = shown(replace(FINE, checks=checks, programs=programs, has_backups=True, files="slurmctld runs with these files"))
    assert ["disk", "90", "s", "ago", "2", "1", "0", "2", "h", "ago"] in lines(said)
    assert ["gpu", "suspended", "0", "0", "0", "never"] in lines(said)
    assert ["mounts", "beside", "jobs", "3", "0", "0", "60", "s", "ago"] in lines(said)
    assert "dev-slurmctld: 0 of 1 ready" in said
    assert "dev-guard" not in said
    assert "Last backup: never" in said
    assert "Slurm's files: slurmctld runs with these files" in said


def test_narrow_terminal_loses_no_word() -> None:
    away = (Away("gpu-0", "IDLE+CLOUD+DRAIN", False, "slipway: check disk: /tmp has 12 MiB free", "slurm", int(NOW), "worker-1"),)
    said = shown(replace(FINE, away=away), width=80).split()
    assert {"IDLE+CLOUD+DRAIN", "worker-1", *["slipway:", "check", "disk:", "/tmp", "has", "12", "MiB", "free"]} <= set(said)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172_799, "47 h"), (172_800, "2 days")],
)
def test_ages_have_the_largest_unit_that_says_enough(seconds: float, words: str) -> None:
    assert span(seconds) == words
