"""What slurmctld's words say about the files, and what it needs to read them. tests/slurm/test_config_check.py has the real one say them."""

# ruff: noqa: E501 - Slurm's lines are as long as they are

import pytest

from programs.config_check.plan import (
    DATABASE_UP,
    UP,
    Line,
    Said,
    folders_of_slurmdbd,
    is_stuck,
    judge,
    needs_of,
    port_of_slurmdbd,
    throwaway_database,
)

FILES = ("slurm.conf", "gres.conf", "topology.conf", "cgroup.conf", "plugstack.conf", "job_submit.lua")
TIME = "[2026-11-23T03:16:00.123] "


def mistakes(*lines: tuple[str, str]) -> Said:
    return Said(mistakes=tuple(Line(file, text) for file, text in lines))


SAID = [
    pytest.param(["slurmctld version 26.05.5 started on cluster dev(0)", UP], Said(), id="no-complaint"),
    pytest.param(
        ['error: _find_node_record: lookup failure for node "a-9"', "build_part_bitmap: invalid node name a-9", "fatal: Invalid node names in partition x"],
        mistakes(("slurm.conf", '_find_node_record: lookup failure for node "a-9"'), ("slurm.conf", "Invalid node names in partition x")),
        id="unknown-node-of-a-partition",
    ),
    pytest.param(
        ['error: _find_node_record: lookup failure for node "a-9"', "warning: Invalid hostnames in switch configuration: a-9"],
        mistakes(("topology.conf", '_find_node_record: lookup failure for node "a-9"'), ("topology.conf", "Invalid hostnames in switch configuration: a-9")),
        id="unknown-node-of-a-switch",
    ),
    pytest.param(
        ["error: _parse_next_key: Parsing error at unrecognized key: X", "fatal: Could not open/read/parse cgroup.conf file /etc/slurm/cgroup.conf"],
        mistakes(("cgroup.conf", "_parse_next_key: Parsing error at unrecognized key: X"), ("cgroup.conf", "Could not open/read/parse cgroup.conf file /etc/slurm/cgroup.conf")),
        id="cause-is-of-the-file-that-follows",
    ),
    pytest.param(["error: MinJobAge value (soon) is not a valid number"], mistakes(("slurm.conf", "MinJobAge value (soon) is not a valid number")), id="no-hint"),
    pytest.param(["warning: Ignoring file-less GPU gpu:h100 from final GRES list"] * 2, mistakes(("gres.conf", "Ignoring file-less GPU gpu:h100 from final GRES list")), id="once-however-many-nodes"),
    pytest.param(["error: job_submit/lua: /etc/slurm/job_submit.lua:58: near 'x'"], mistakes(("job_submit.lua", "job_submit/lua: /etc/slurm/job_submit.lua:58: near 'x'")), id="file-by-its-path"),
    pytest.param(["warning: Blocks lack access to 4 nodes: a-[0-3]"], Said(notes=(Line("topology.conf", "Blocks lack access to 4 nodes: a-[0-3]"),)), id="warning-is-a-note"),
    pytest.param(["error: _get_group_members: Could not find configured group ml"], Said(notes=(Line("slurm.conf", "_get_group_members: Could not find configured group ml"),)), id="group-of-ldap-perhaps"),
    pytest.param(["error: accounts_list_build: No association for account ml", "error: Database settings not recommended values: innodb_lock_wait_timeout"], Said(), id="words-about-the-container"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "said"), SAID)
@pytest.mark.parametrize("head", ["", TIME, f"{TIME}[77] ", "slurmctld: "], ids=["bare", "time", "time-and-thread", "name"])
def test_lines_about_the_files_are_told_from_others(head: str, lines: list[str], said: Said) -> None:
    assert judge("".join(f"{head}{line}\n" for line in lines), FILES) == said


def test_line_is_never_about_a_file_that_is_not_there() -> None:
    assert judge("error: bad switch\n", ("slurm.conf",)).mistakes[0].file == "slurm.conf"
    assert judge("error: bad switch\n", ("slurmdbd.conf",), "slurmdbd.conf").mistakes[0].file == "slurmdbd.conf"


def test_slurmctld_that_waits_for_a_file_is_stuck() -> None:
    line = "error: s_p_parse_file: cannot stat file /etc/slurm/topology.conf: No such file or directory, retrying in 1sec up to 60sec"
    assert is_stuck(f"{TIME}{line}\n")
    assert not is_stuck(f"{TIME}{UP}\n")
    assert DATABASE_UP.search(f"{TIME}slurmdbd version 26.05.5 started\n")


CONF = """ClusterName=dev
slurmctldhost=dev-slurmctld-0(dev-slurmctld)
SlurmUser=slurm
AuthAltParameters=jwt_key=/etc/slipway/jwt/key,disable_token_creation
StateSaveLocation=/var/spool/slurmctld/state
SlurmctldPidFile=/run/slurm/slurmctld.pid
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=dev-slurmdbd
NodeName=DEFAULT CPUs=2
NodeName=gpu-[0-9999] State=CLOUD
NodeName=old-[1-2] State=DOWN
NodeName=far-[1-2] NodeAddr=10.0.0.[1-2]
nodename=named NodeAddr=named.example.com
NodeName=[[ CPUs=1
PartitionName=main Nodes=ALL AllowQos=normal,fast QOS=big
this is no line of Slurm's
"""


def test_what_a_slurm_conf_needs_is_read_from_it() -> None:
    needs = needs_of(CONF)
    assert needs.names == ("dev-slurmctld-0", "dev-slurmctld", "dev-slurmdbd", "old-1", "old-2", "named.example.com")
    assert (needs.user, needs.folders) == ("slurm", ("/var/spool/slurmctld/state", "/run/slurm"))
    assert (needs.jwt_key, needs.has_accounting, needs.qos) == ("/etc/slipway/jwt/key", True, ("big", "fast"))


def test_slurm_conf_that_says_nothing_needs_little() -> None:
    needs = needs_of("# ClusterName=x\n")
    assert (needs.names, needs.jwt_key, needs.has_accounting, needs.qos) == ((), "", False, ())


def test_slurmdbd_keeps_its_settings_and_gets_another_database() -> None:
    mine = "DbdHost=a\nStorageHost=db\nstorageparameters=SSL_CA=/x\nStoragePort=3307\nPidFile=/run/slurm/x.pid\nArchiveDir=/archive/dev\nPurgeJobAfter=3months\n"
    text = throwaway_database(mine, "here", "check", "secret")
    kept, own = (
        ("PidFile=/run/slurm/x.pid", "ArchiveDir=/archive/dev", "PurgeJobAfter=3months"),
        ("DbdHost=here", "StorageHost=127.0.0.1", "StoragePass=secret"),
    )
    assert set(text.splitlines()) >= {*kept, *own}
    assert not any(word in text for word in ("StorageHost=db", "SSL_CA", "3307", "DbdHost=a\n"))
    assert folders_of_slurmdbd(mine) == ("/run/slurm", "/archive/dev")


@pytest.mark.parametrize(
    ("conf", "port"),
    [
        pytest.param("DbdHost=a\nDbdPort=7000\n", 7000, id="given"),
        pytest.param("dbdport = 7001", 7001, id="in-other-letters"),
        pytest.param("#DbdPort=7002\nDbdHost=a\n", 6819, id="a-comment"),
        pytest.param("", 6819, id="Slurms-own"),
    ],
)
def test_slurmdbd_is_waited_for_on_its_port(conf: str, port: int) -> None:
    assert port_of_slurmdbd(conf) == port
