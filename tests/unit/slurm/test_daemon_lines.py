"""Lines of the daemons, as a deployed cluster wrote them, and what is read from each."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm import daemon_lines
from slurm.logs import CRITICAL, DEBUG, ERROR, INFO, WARNING
from slurm.pump import make_line

DAEMONS = (*daemon_lines.SLURM, "munged", "sshd", "mariadb", "nfs-ganesha", "root-switch", "worker")
MORNING = 1795573446.0
"""2026-11-25T02:24:06Z"""


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The containers' zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


GANESHA = "25/11/2026 02:24:06 : epoch 6926c0f6 : t-nfs-0 : nfs-ganesha-1[main]"
CASES = [
    ("slurmctld", "[2026-11-25T02:24:06.500] slurmctld version 26.05.5 started on cluster dev(0)", INFO, 0.5, "slurmctld version"),
    ("slurmctld", "[2026-11-25T02:24:06.315] error: Sending PersistInit msg: Connection refused", ERROR, 0.315, "Sending PersistInit"),
    ("slurmctld", "slurmctld: error: Sending PersistInit msg: Connection refused", ERROR, None, "Sending PersistInit"),
    ("slurmctld", "slurmctld: fatal: Unable to process configuration file", CRITICAL, None, "Unable to process"),
    (
        "slurmctld",
        "[2026-11-25T02:24:06.001] sched: Allocate JobId=1 NodeList=cpu-[0-1] #CPUs=2 Partition=main",
        INFO,
        0.001,
        "sched: Allo",
    ),
    ("slurmd", "[2026-11-25T02:24:06.468] warning: cgroup/v1 plugin is deprecated, please upgrade", WARNING, 0.468, "cgroup/v1 plugin"),
    ("slurmd", "[2026-11-25T02:24:06.468] debug2: hash table", DEBUG, 0.468, "hash table"),
    ("slurmd", "[2026-11-25T02:24:06.468] [12.batch] error: *** JOB 12 ON cpu-0 CANCELLED ***", ERROR, 0.468, "[12.batch] *** JOB 12"),
    ("slurmd", "[2026-11-25T02:24:06.468] [77] error: with a thread", ERROR, 0.468, "with a thread"),
    ("slurmd", "[2026-11-25T02:24:06] error: LogTimeFormat=iso8601", ERROR, 0.0, "LogTimeFormat"),
    ("slurmd", "[2026-11-25T03:24:06.250+01:00] error: LogTimeFormat=rfc5424_ms", ERROR, 0.25, "LogTimeFormat"),
    ("slurmd", "[2026-11-25T02:24:06.250Z] error: LogTimeFormat=rfc3339", ERROR, 0.25, "LogTimeFormat"),
    ("slurmd", "[Nov 25 02:24:06.250] error: LogTimeFormat=short", ERROR, None, "LogTimeFormat"),
    ("slurmd", "[12345] error: LogTimeFormat=clock", ERROR, None, "LogTimeFormat"),
    ("slurmd", "[2026-99-25T02:24:06.250] no month", INFO, None, "no month"),
    ("slurmdbd", "[2026-11-25T02:24:06.554] accounting_storage/as_mysql: _check_mysql_concat_is_sane", INFO, 0.554, "accounting_st"),
    (
        "slurmrestd",
        "[2026-11-25T02:24:06.660] operations_router: [198.18.129.9:6820(fd:9)] GET /slurm/v0.0.45/ping/",
        INFO,
        0.66,
        "operations",
    ),
    ("sackd", "[2026-11-25T02:24:06.909] reconfigure requested by slurmctld", INFO, 0.909, "reconfigure requested"),
    ("munged", "munged: Notice: Starting munge-0.5.18 daemon (pid 14)", INFO, None, "Starting munge"),
    ("munged", 'munged: Error: Failed to check keyfile "/etc/munge/munge.key"', ERROR, None, "Failed to check"),
    ("sshd", "Server listening on 0.0.0.0 port 22.", INFO, None, "Server listening"),
    ("sshd", "error: kex_exchange_identification: Connection closed by remote host", ERROR, None, "kex_exchange"),
    ("sshd", "fatal: Cannot bind any address.", CRITICAL, None, "Cannot bind"),
    ("mariadb", "2026-11-25  2:24:06 0 [Note] InnoDB: Using io_uring", INFO, 0.0, "InnoDB: Using"),
    ("mariadb", "2026-11-25 12:24:06 17 [Warning] Aborted connection 17 to db: 'slurm_acct_db'", WARNING, 36_000.0, "Aborted connection"),
    ("mariadb", "2026-11-25  2:24:06 0 [ERROR] Aborting", ERROR, 0.0, "Aborting"),
    ("mariadb", "Installing MariaDB/MySQL system tables in '/var/lib/mysql/data.partial' ...", INFO, None, "Installing"),
    ("mariadb", "mariadb.sh: making the data folder", INFO, None, "making the data folder"),
    ("nfs-ganesha", f"{GANESHA} main :MAIN :EVENT :nfs-ganesha Starting: Ganesha Version 9.14", INFO, 0.0, "main: nfs-ganesha Start"),
    ("nfs-ganesha", f"{GANESHA} nfs_set_param_from_conf :CONFIG :WARN :domainname will be deprecated", WARNING, 0.0, "nfs_set_param"),
    ("root-switch", "root-switch.sh: REFUSED: no shell runs in version 1", ERROR, None, "REFUSED: no shell"),
    ("worker", "Traceback (most recent call last):", ERROR, None, "Traceback"),
    ("worker", "mount: /dev/shm: permission denied.", INFO, None, "mount: /dev/shm"),
]


@pytest.mark.parametrize(
    ("daemon", "text", "level", "after", "message"), [pytest.param(*case, id=f"{case[0]}: {case[1][:60]}") for case in CASES]
)
def test_line_is_taken_apart(daemon: str, text: str, level: str, after: float | None, message: str) -> None:
    found = daemon_lines.read(daemon, text)
    assert (found.level, found.message.startswith(message)) == (level, True), found
    assert found.at == (None if after is None else pytest.approx(MORNING + after, abs=0.0005))


@given(st.sampled_from(DAEMONS), st.text())
def test_any_text_can_be_read_and_keeps_its_end(daemon: str, text: str) -> None:
    found = daemon_lines.read(daemon, text)
    assert text.strip().endswith(found.message.strip())


HEADS = [case[1][: len(case[1]) // 2] for case in CASES]


@given(st.sampled_from(DAEMONS), st.sampled_from(HEADS), st.text())
def test_broken_heads_are_read_too(daemon: str, head: str, text: str) -> None:
    assert daemon_lines.read(daemon, head + text).level in (DEBUG, INFO, WARNING, ERROR, CRITICAL)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[2026-11-25T01:02:03.004] error: hostlist_create on [" + "1" * 65_000, id="digits"),
        pytest.param("[Abc " + "00:00:00" * 8_000, id="clocks"),
        pytest.param("jobid [" * 9_000, id="jobs"),
        pytest.param("[12_" * 16_000, id="arrays"),
    ],
)
def test_words_of_a_user_hold_up_no_log(text: str) -> None:
    """slurmctld waits where its lines are not taken. A line like these took 20 s before."""
    began = time.process_time()
    make_line("slurmctld", text.encode())
    assert time.process_time() - began < 2
