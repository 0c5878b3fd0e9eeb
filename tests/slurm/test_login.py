"""Login nodes and ssh into workers, with the real sshd, PAM, Slurm and cgroups: who gets where, what ends with what, who disturbs whom."""

import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.pods import program_command
from names import paths
from tests.support.patience import patience
from tests.support.slurm.image_pods import PodError, wait_for
from tests.support.slurm.login_cluster import LOGIN_CONF, LOGINS, LoginCluster, Session, running

FOLDER = Path("/var/tmp/slipway-login-pods")


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[LoginCluster]:
    """Two login replicas, two workers, alice and bob."""
    with running(FOLDER, "swlo-", image_root) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def idle(cluster: LoginCluster) -> None:
    """Each test starts with idle workers, v1, and login settings that say nothing."""
    cluster.switch("v1")
    cluster.settings(LOGIN_CONF)
    cluster.settings_of_login()
    for user in ("alice", "bob"):
        cluster.slurm("scancel", f"--user={user}")  # what a failed test left
    wait_for("idle workers", cluster.ready, deadline_s=60)


def start_job(cluster: LoginCluster, *options: str, user: str = "alice", seconds: int = 600) -> str:
    """A job that sleeps on a worker; gives its number once it runs there."""
    job = cluster.session(
        f"sbatch --parsable --output=/dev/null {' '.join(options)} --wrap='touch begun.$SLURM_JOB_ID; sleep {seconds}'", user
    )
    wait_for("its start", lambda: cluster.session(f"ls begun.{job}", user))
    return job


def cgroups(said: str) -> set[str]:
    """The lines of /proc/self/cgroup that name a job, from there on."""
    return {line.partition("/job_")[2] for line in said.splitlines() if "/job_" in line}


def eat(mib: int) -> str:
    """A script whose child fills so much memory; says how that ended."""
    return f'exec 2>/dev/null; python3 -c "bytes([1]) * ({mib} << 20)"; echo $?'


# What Slurm says of them.


@pytest.mark.parametrize("pod", LOGINS)
def test_job_names_the_service_of_the_login_nodes_as_its_alloc_node(cluster: LoginCluster, pod: str) -> None:
    """The same for every replica. What slurmctld sends to srun goes to the pod, not to the name."""
    waits = cluster.open_session("srun -n1 sh -c 'echo $SLURM_JOB_ID; sleep 600'", "alice", pod)
    job = waits.hear("").strip()
    assert " AllocNode:Sid=t-login:" in cluster.slurm("scontrol", "show", "job", job, "-o")
    cluster.slurm("scontrol", "notify", job, "a word from slurmctld")
    waits.hear("a word from slurmctld")
    cluster.slurm("scancel", job)
    waits.end()


# Folders that accounts share.


def test_members_of_an_account_share_its_folder_and_others_do_not(cluster: LoginCluster) -> None:
    """A login pod without FSETID makes it; jobs and sessions in the versioned root see it, and files there are the group's."""
    cluster.settings_of_login(projects="/shared/projects/nlp lab\n/shared/projects/chem others\n")
    folders = cluster.shared / "projects"
    wait_for("the folders", lambda: {each.name for each in folders.glob("*")} == {"nlp", "chem"}, deadline_s=60)
    assert [(each.stat().st_mode & 0o7777, each.stat().st_uid, each.stat().st_gid) for each in (folders / "nlp", folders / "chem")] == [
        (0o2770, 0, 20001),
        (0o2770, 0, 20002),
    ]
    cluster.session("umask 002; echo data > /shared/projects/nlp/set; mkdir /shared/projects/nlp/deep")
    script = "cd /shared/projects/nlp && cat set && echo more >> set && id -un"
    assert cluster.session(f"srun sh -c '{script}'", "bob").split() == ["data", "bob"]
    assert cluster.session("stat -c %G:%a /shared/projects/nlp/deep; tail -1 /shared/projects/nlp/set").split() == ["lab:2775", "more"]
    assert "Permission denied" in cluster.session("ls /shared/projects/chem", check=False)
    assert "Permission denied" in cluster.session("srun ls /shared/projects/chem; rmdir /shared/projects/nlp", check=False)
    cluster.settings_of_login()
    cluster.session("ls /shared/projects/nlp/set")  # an account that goes takes no data along


# Into workers.


def test_worker_refuses_who_has_no_job_there(cluster: LoginCluster) -> None:
    start_job(cluster, "--nodelist=gpu-0")
    assert "you have no active jobs on this node" in cluster.session("ssh gpu-1 echo in", check=False)
    refused = cluster.session("ssh gpu-0 echo in", "bob", check=False)
    assert "you have no active jobs on this node" in refused
    assert "in" not in refused.split()


def test_session_on_a_worker_is_one_of_the_job_s_own_processes(cluster: LoginCluster) -> None:
    job = cluster.session("sbatch --parsable -o out.%j -w gpu-0 --mem=300 --gres=gpu:1 --wrap='touch /tmp/mine; echo begun; sleep 600'")
    wait_for("its start", lambda: "begun" in cluster.session(f"cat out.{job}"))
    assert cgroups(cluster.session("ssh gpu-0 cat /proc/self/cgroup")) == {f"{job}/step_extern"}
    said = cluster.session("ssh gpu-0 'id -un; hostname; pwd; ls /tmp; echo $SLURM_JOB_ID; nproc; srun --version | cut -c1-15'")
    assert said.split() == ["alice", "gpu-0", "/home/alice", "mine", job, "1", "slurm-wlm", "26.05"]
    devices = "for n in 0 1 2 3; do exec 3</dev/nvidia$n; done 2>&1 | grep -o 'not permitted\\|No such device'"
    assert cluster.session(f"ssh gpu-0 <<'PROBE'\n{devices}\nPROBE").splitlines() == ["No such device", *["not permitted"] * 3]
    assert cluster.session(f"ssh gpu-0 '{eat(900)}'", check=False).split()[-1] == "137"
    assert cluster.state(job) == "RUNNING"


def test_session_sees_the_version_of_its_job_whatever_is_current(cluster: LoginCluster) -> None:
    start_job(cluster, "--nodelist=gpu-0")
    cluster.switch("v2")
    start_job(cluster, "--nodelist=gpu-1")
    probe = "cat /etc/version; echo \\$SLIPWAY_ROOT_VERSION; ls -A /shared 2>/dev/null | grep -vx projects"
    assert cluster.session(f'ssh gpu-0 "{probe}"; ssh gpu-1 "{probe}"', check=False).split() == ["v1", "v1", "v2", "v2"]


def test_session_joins_the_newest_of_two_jobs_and_jobs_reach_their_nodes(cluster: LoginCluster) -> None:
    script = "'until [ -e go.$SLURM_JOB_ID ]; do sleep 0.1; done; ssh gpu-1 cat /proc/self/cgroup; echo end'"
    first = cluster.session(f"sbatch --parsable --nodes=2 --ntasks-per-node=1 --output=out.%j --wrap={script}")
    wait_for("its start", lambda: cluster.state(first) == "RUNNING")
    group = f"/sys/fs/cgroup/memory/slurm_gpu-1/uid_10001/job_{first}"  # its age, in whole seconds, is what the module goes by
    age = f"echo $(($(date +%s) - $(stat -c %Y {group})))"
    wait_for("another second", lambda: int(cluster.inside("gpu-1", age)) > 0)
    second = start_job(cluster, "--nodelist=gpu-1")
    assert cgroups(cluster.session("ssh gpu-1 cat /proc/self/cgroup")) == {f"{second}/step_extern"}
    cluster.slurm("scancel", second)
    wait_for("its end", lambda: cluster.state(second) == "CANCELLED")
    cluster.session(f"touch go.{first}")
    wait_for("its end", lambda: "end" in cluster.session(f"cat out.{first}"))
    assert cgroups(cluster.session(f"cat out.{first}")) == {f"{first}/step_extern"}


def test_session_on_a_worker_ends_with_its_job(cluster: LoginCluster) -> None:
    job = start_job(cluster, "--nodelist=gpu-0")
    session = cluster.open_session("ssh gpu-0 'echo in; sleep 600'")
    session.hear("in")
    cluster.slurm("scancel", job)
    assert session.ended(90) != 0
    wait_for("the job's end", lambda: cluster.state(job) == "CANCELLED")
    assert "in" not in cluster.session("ssh gpu-0 echo in", check=False).split()
    wait_for("no process of hers", lambda: cluster.inside("gpu-0", "pgrep -u alice || true") == "")


def test_worker_is_reached_through_the_login_node_with_the_user_s_own_key(cluster: LoginCluster) -> None:
    job = start_job(cluster, "--nodelist=gpu-0")
    options = " ".join(cluster.ssh_options())
    jump = f"ProxyCommand=ssh {options} -W gpu-0:22 {cluster.login_target}"
    known = FOLDER / "known"
    known.write_text(f"gpu-0 {(FOLDER / 'node-host.pub').read_text()}")
    settings = ("-o", jump, "-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes")
    said = cluster.outside("ssh", "-i", str(FOLDER / "id"), *settings, "alice@gpu-0", "cat /proc/self/cgroup")
    assert cgroups(said) == {f"{job}/step_extern"}


@pytest.mark.parametrize("user", [pytest.param("root", id="root"), pytest.param("slurm", id="slurmuser"), pytest.param("bob", id="bob")])
def test_key_that_is_made_for_workers_opens_nothing_else(cluster: LoginCluster, user: str) -> None:
    start_job(cluster, "--nodelist=gpu-0")
    cluster.session("ssh gpu-0 true")
    for target in ("gpu-0", "t-login-2 -p 2222"):
        said = cluster.session(
            f"ssh -i ~/.ssh/id_slipway -o BatchMode=yes -o StrictHostKeyChecking=no {user}@{target} echo in", check=False
        )
        assert "Permission denied" in said
    assert "Permission denied" in cluster.session(
        "ssh -i ~/.ssh/id_slipway -o BatchMode=yes -o StrictHostKeyChecking=no t-login-2 -p 2222 echo in", check=False
    )


def test_key_in_the_home_opens_a_login_node_only_where_the_config_says_so(cluster: LoginCluster) -> None:
    """And only for who is still a user: one who is removed has no name any more, whatever the home holds."""
    mine = FOLDER / "home-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(mine)], check=True)
    public = mine.with_suffix(".pub").read_text().strip()
    cluster.session(f"mkdir -p -m 0700 ~/.ssh; echo '{public}' >~/.ssh/authorized_keys")
    with_mine = [str(mine) if word == str(FOLDER / "id") else word for word in cluster.ssh_options("alice")]

    def enter() -> str:
        return cluster.outside("ssh", *with_mine, cluster.machine.addresses["t-login-2"], "echo in", check=False)

    assert "Permission denied" in enter()
    cluster.containers["t-login-2/login"].stop()
    cluster.start_login("t-login-2", {"SLIPWAY_HOME_KEYS": "1"})
    assert enter() == "in"
    cluster.session("chmod 0777 ~/.ssh")  # somebody else could have put the key there
    assert "Permission denied" in enter()
    cluster.session("chmod 0700 ~/.ssh; rm ~/.ssh/authorized_keys")
    assert "Permission denied" in enter()
    cluster.containers["t-login-2/login"].stop()
    cluster.start_login("t-login-2")


def test_host_that_is_no_worker_is_not_touched_by_our_ssh_settings(cluster: LoginCluster) -> None:
    for host in ("gpu-x", "gpu-", "cpu-0", "gpu-0.example.com", "t-login"):
        assert "id_slipway" not in cluster.session(f"ssh -G {host}")
    assert "id_slipway" in cluster.session("ssh -G gpu-1")


def test_two_first_logins_at_once_make_one_key(cluster: LoginCluster) -> None:
    start_job(cluster, "--nodelist=gpu-0", user="bob")
    cluster.session("rm -rf ~/.ssh", "bob")
    sessions = [cluster.open_session("ssh gpu-0 echo in", "bob", pod) for pod in LOGINS * 2]
    assert [session.rest() for session in sessions] == [["in"]] * 4
    assert cluster.session("ls ~/.ssh; stat -c %a ~/.ssh ~/.ssh/id_slipway", "bob").split() == [
        "id_slipway",
        "id_slipway.pub",
        "700",
        "600",
    ]


def test_job_and_its_sessions_outlive_slurmd_and_sshd_of_the_worker(cluster: LoginCluster) -> None:
    job = start_job(cluster, "--nodelist=gpu-0")
    session = cluster.open_session("ssh gpu-0 'echo in; cat'")
    session.hear("in")
    cluster.inside("gpu-0", "kill -KILL $(pgrep -x sshd) $(pgrep '^slurmd')")
    wait_for("both again", lambda: cluster.worker("gpu-0").log.count("starting it again") >= 2)
    wait_for("sshd", lambda: cluster.session("ssh gpu-0 echo in", check=False) == "in", deadline_s=30)
    assert session.lives()
    assert session.end() == 0
    assert cluster.state(job) == "RUNNING"
    assert cluster.worker("gpu-0").process.poll() is None


# What a login shows.


def terminal(cluster: LoginCluster, user: str = "alice") -> str:
    """What an interactive login shows, up to its end."""
    session = cluster.open_session("", user, "t-login", "-tt")
    session.say("exit")
    return "\n".join(line for line in session.rest() if line != "exit")  # the terminal's echo


def test_terminal_shows_banner_and_state_and_nothing_else_does(cluster: LoginCluster) -> None:
    cluster.settings_of_login(banner="Welcome to t.\nHelp: ask Grace.\n")
    job = start_job(cluster, "--nodelist=gpu-0")
    wait_for("the state", lambda: "Your jobs: 1 running, 0 waiting." in terminal(cluster), deadline_s=60, pause_s=1)
    said = terminal(cluster).splitlines()
    assert said[:2] == ["Welcome to t.", "Help: ask Grace."]
    assert [line.split() for line in said[2:4]] == [["PARTITION", "IDLE", "IN", "USE", "OTHER", "NODES"], ["main", "1", "1", "0", "2"]]
    assert "Your jobs: 0 running, 0 waiting." in terminal(cluster, "bob")
    assert cluster.session("echo only this") == "only this"
    assert cluster.session("cat", "alice", "t-login", "-T") == ""
    file = FOLDER / "sent"
    file.write_text("content")
    scp = ["scp", *cluster.ssh_options(), str(file), f"{cluster.login_target}:sent"]
    assert cluster.outside(*scp) == ""
    assert cluster.session("touch .hushlogin") == ""
    assert "Welcome" not in terminal(cluster)
    cluster.session("rm .hushlogin")
    cluster.slurm("scancel", job)


def test_node_that_is_drained_is_not_shown_as_idle(cluster: LoginCluster) -> None:
    cluster.slurm("scontrol", "update", "NodeName=gpu-1", "State=DRAIN", "Reason=fan")
    try:
        wait_for(
            "the figures", lambda: ["main", "1", "0", "1", "2"] in map(str.split, terminal(cluster).splitlines()), deadline_s=90, pause_s=1
        )
    finally:
        cluster.slurm("scontrol", "update", "NodeName=gpu-1", "State=UNDRAIN")


PROGRAMS = """\
perl -e 'print "perl\n"'
python3 -c 'import locale; locale.setlocale(locale.LC_ALL, ""); print("python")'
bash -c 'echo bash'
sh -c 'echo sh'
locale charmap
locale >/dev/null
printf 'ä' | wc -m
"""
QUIET = ["perl", "python", "bash", "sh", "UTF-8", "1"]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param("LANG=de_DE.UTF-8", id="german"),
        pytest.param("LC_ALL=zh_CN.UTF-8", id="chinese-all"),
        pytest.param("LANG=de_DE@euro", id="modifier"),
        pytest.param("LANG=en_DE.UTF-8", id="region-that-no-list-has"),
        pytest.param("LC_CTYPE=UTF-8", id="macos"),
        pytest.param("LC_CTYPE=zh_CN.GBK", id="other-charset"),
        pytest.param("LANG=xx_YY.bogus", id="bogus"),
        pytest.param("LC_ALL=xx_YY.bogus", id="bogus-all"),
        pytest.param("LC_ALL=zh_CN.GBK LANG=de_DE@euro LC_TIME=nonsense", id="several"),
        pytest.param("LC_TERMINAL=iTerm2", id="no-locale-at-all"),
    ],
)
def test_no_program_complains_of_a_client_s_locale(cluster: LoginCluster, sent: str) -> None:
    """In a command, in an interactive session, in what a job takes along."""
    cluster.session(f"cat >programs <<'END'\n{PROGRAMS}END")
    options = ("alice", "t-login", "-o", f"SetEnv={sent}")
    assert cluster.session(". ./programs", *options, check=False).split() == QUIET
    session = cluster.open_session("", *options, "-tt")
    session.say("PS1=; stty -echo; echo begin; . ./programs; exit")
    said = "\n".join(session.rest())
    assert "warning" not in said
    assert said.rpartition("begin\n")[2].splitlines() == [*QUIET, "logout"]
    assert cluster.session("srun bash programs", *options, check=False).split() == QUIET


def test_locale_that_can_be_had_arrives_as_it_was_sent(cluster: LoginCluster) -> None:
    sent = "LANG=de_DE.UTF-8 LC_ALL=fr_FR.UTF-8 LC_CTYPE=xx_YY.bogus LC_TERMINAL=iTerm2"
    said = cluster.session(
        "env | grep -E '^(LANG|LC_)' | sort; env | grep -c PRELOAD", "alice", "t-login", "-o", f"SetEnv={sent}", check=False
    )
    assert said.split() == ["LANG=de_DE.UTF-8", "LC_ALL=fr_FR.UTF-8", "LC_CTYPE=C.UTF-8", "LC_TERMINAL=iTerm2", "0"]


def test_session_on_a_worker_gets_no_locale_that_is_not_there(cluster: LoginCluster) -> None:
    start_job(cluster, "--nodelist=gpu-0")
    assert cluster.session("ssh -o SetEnv=LC_ALL=xx_YY.bogus gpu-0 'echo $LC_ALL' 2>&1").split() == ["C.UTF-8"]


def test_login_is_quick_and_says_so_while_slurmctld_is_silent(cluster: LoginCluster) -> None:
    wait_for("the state", lambda: "PARTITION" in terminal(cluster), deadline_s=60, pause_s=1)
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    controller.run("pkill", "--signal", "STOP", "^slurmctld", user=64030)
    try:
        cluster.containers["t-login/login"].run("sh", "-c", "echo 1000 >/run/slipway/login/read")  # as if it had been so for a while
        began = time.monotonic()
        said = terminal(cluster)
        assert time.monotonic() - began < 10 * patience()
        assert "slurmctld has not answered since" in said
        assert "PARTITION" in said
    finally:
        controller.run("pkill", "--signal", "CONT", "^slurmctld", user=64030)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param("rm -rf /run/slipway/login", id="no-state"),
        pytest.param("cd /run/slipway; mkdir -p login; echo nonsense | tee login/read >login/jobs", id="broken-state"),
        pytest.param("umount /run/slipway/cgroup/*; rm -rf /run/slipway/cgroup; mkdir -p /run/slipway/cgroup", id="no-cgroups"),
        pytest.param("rm /usr/local/sbin/slipway-login-session", id="no-script"),
    ],
)
def test_what_is_broken_here_costs_no_login(cluster: LoginCluster, harm: str) -> None:
    cluster.containers["t-login-2/login"].run("sh", "-c", harm)
    assert cluster.session("echo in", pod="t-login-2") == "in"
    cluster.containers["t-login-2/login"].stop()
    cluster.start_login("t-login-2")


# Limits.


def test_connections_that_one_user_holds_keep_nobody_from_logging_in(cluster: LoginCluster) -> None:
    """sshd takes 100 clients that have not logged in, and a part of them from one address."""
    login = cluster.machine.addresses["t-login"]
    code = "import socket, sys; held = [socket.create_connection((sys.argv[1], 2222)) for _ in range(120)]; print(len(held), flush=True)"
    holder = cluster.open_session(f"python3 -c '{code}; sys.stdin.read()' {login}", "bob", "t-login-2")
    assert holder.hear("").strip() == "120"
    assert [cluster.session("echo in", check=False) for _ in range(5)] == ["in"] * 5
    holder.end()


def test_user_limits_hold_over_all_sessions_and_affect_no_other_user(cluster: LoginCluster) -> None:
    cluster.settings_of_login(limits="cpus=1\nmemoryMiB=200\ntasks=60\n")
    bomb = cluster.open_session("for i in $(seq 200); do sleep 60 & done; echo over; wait", "alice")
    bomb.hear("Resource temporarily unavailable")
    assert cluster.session("id -un", "bob") == "bob"
    assert int(cluster.containers["t-login/login"].run("pgrep", "--count", "-u", "alice")) <= 60
    bomb.process.kill()
    cluster.containers["t-login/login"].run("pkill", "-KILL", "-u", "alice", check=False)
    wait_for("room", lambda: cluster.session("echo in", check=False) == "in")
    assert cluster.session(eat(400), check=False).split()[-1] == "137"
    assert cluster.session(eat(100), "bob").split()[-1] == "0"
    spin = "timeout 3 sh -c 'while :; do :; done' & timeout 3 sh -c 'while :; do :; done' & wait; times"
    used = cluster.session(spin).splitlines()[1]  # of the children: user, system, as 0m2.980s
    assert sum(int(each.split("m")[0]) * 60 + float(each.split("m")[1].rstrip("s")) for each in used.split()) < 4.2


def test_changed_limits_count_from_the_next_login(cluster: LoginCluster) -> None:
    probe = "cat /proc/self/cgroup | sed -n 's/.*pids:.*users/users/p'"
    assert cluster.session(probe) == "users/10001"
    read = ("cat", "/run/slipway/cgroup/pids/users/10001/pids.max")
    assert cluster.containers["t-login/login"].run(*read).strip() == "max"
    cluster.settings_of_login(limits="tasks=77\n")
    cluster.session("true")
    assert cluster.containers["t-login/login"].run(*read).strip() == "77"


def test_unreadable_limits_become_small_ones_and_user_and_log_hear_of_it(cluster: LoginCluster) -> None:
    """Before, they were none. A user with open sessions keeps what these have."""
    login = cluster.containers["t-login/login"]

    def tasks(user: int) -> str:
        return login.run("cat", f"/run/slipway/cgroup/pids/users/{user}/pids.max").strip()

    cluster.settings_of_login(limits="tasks=77\n")
    session = cluster.open_session("echo in; exec cat")
    session.hear("in")
    for broken in (None, "tasks=\n", "tasks=many\n"):
        cluster.settings_of_login(limits="tasks=77\n")
        cluster.session("true")
        if broken is None:
            (cluster.machine.folder / "volume-login" / "limits").unlink()
        else:
            cluster.settings_of_login(limits=broken)
        assert cluster.session("id -un") == "alice"
        assert tasks(10001) == "77"
        assert "limits of this login node cannot be read" in terminal(cluster, "bob")
        assert tasks(10002) == "100"
    assert "cannot read /etc/slipway/login/limits" in login.log
    cluster.settings_of_login()
    cluster.session("true", "bob")
    assert tasks(10002) == "max"
    assert session.end() == 0


WRITE_LIMITS = f"cd {paths.PACKAGES}; {shlex.join(program_command('login', module='limits'))}"


def test_without_cgroup_rights_pam_limits_apply_and_the_log_says_so(cluster: LoginCluster) -> None:
    cluster.settings_of_login(limits="cpus=1\nmemoryMiB=2000\ntasks=70\n")
    cluster.containers["t-login-2/login"].stop()
    capabilities, cluster.login_capabilities = cluster.login_capabilities, cluster.login_capabilities[:-1]
    mounts, cluster.user_mounts = cluster.user_mounts, {}
    try:
        login = cluster.start_login("t-login-2")
        assert "no cgroups of users' own here" in login.log
        assert cluster.session("ulimit -u; ulimit -v", pod="t-login-2").split() == ["70", "2048000"]
        # A job has the limits of its node, not those of the login node that it came from.
        assert cluster.session("srun bash -c 'ulimit -u; ulimit -v'", pod="t-login-2").split()[1] == "unlimited"
        (cluster.machine.folder / "volume-login" / "limits").unlink()
        again = f"{WRITE_LIMITS}; cat /etc/security/limits.d/slipway.conf"
        assert "* - nproc 70" in login.run("bash", "-c", again)
        assert "* - nproc 100" in login.run("bash", "-c", f"rm /etc/security/limits.d/slipway.conf; {again}")
        cluster.settings_of_login(limits="cpus=1\nmemoryMiB=2000\ntasks=70\n")
        lower = f"ulimit -u 60; {WRITE_LIMITS}; cat /etc/security/limits.d/slipway.conf"
        assert "* - nproc 60" in login.run("bash", "-c", lower)  # more than the pod may have would refuse every session
        login.stop()
    finally:
        cluster.login_capabilities, cluster.user_mounts = capabilities, mounts
    cluster.settings_of_login()
    cluster.start_login("t-login-2")


# Replicas.


def offered_keys(cluster: LoginCluster, pod: str) -> list[str]:
    """The host keys that a login node has, whatever kind a client asks for: type and key."""
    scanned = cluster.outside("ssh-keyscan", "-T", "60", "-p", "2222", cluster.machine.addresses[pod])
    return [line.split(maxsplit=1)[1] for line in scanned.splitlines() if not line.startswith("#")]


def test_replicas_share_one_host_key_even_after_a_pod_is_replaced(cluster: LoginCluster) -> None:
    made = (FOLDER / "host.pub").read_text().rsplit(maxsplit=1)[0]
    known = FOLDER / "known-login"
    known.write_text(f"the-cluster {offered_keys(cluster, 't-login')[0]}\n")
    options = (f"UserKnownHostsFile={known}", "StrictHostKeyChecking=yes", "HostKeyAlias=the-cluster", "BatchMode=yes", "Port=2222")
    strict = ("ssh", "-i", str(FOLDER / "id"), *(word for option in options for word in ("-o", option)))

    def logs_in(pod: str) -> bool:
        return cluster.outside(*strict, f"alice@{cluster.machine.addresses[pod]}", "echo in") == "in"

    for pod in LOGINS:
        assert offered_keys(cluster, pod) == [made]
        assert logs_in(pod)
    cluster.containers["t-login-2/login"].stop()
    cluster.start_login("t-login-2")
    assert offered_keys(cluster, "t-login-2") == [made]
    assert logs_in("t-login-2")
    known.write_text(f"the-cluster {(FOLDER / 'node-host.pub').read_text()}")
    with pytest.raises(PodError, match="Host key verification failed"):
        logs_in("t-login")


# Replicas that go.


def hold(cluster: LoginCluster, pod: str) -> Session:
    """A session that answers as long as it lives."""
    session = cluster.open_session("echo in; exec cat", "alice", pod)
    session.hear("in")
    return session


def test_killed_replica_drops_its_own_sessions_and_no_other(cluster: LoginCluster) -> None:
    lost, kept = hold(cluster, "t-login-2"), hold(cluster, "t-login")
    cluster.containers["t-login-2/login"].stop("KILL")
    assert lost.ended() != 0
    assert kept.lives()
    kept.process.kill()
    cluster.start_login("t-login-2")


def test_leaving_pod_keeps_its_sessions_takes_no_new_ones_and_then_ends(cluster: LoginCluster) -> None:
    cluster.containers["t-login-2/login"].stop()
    login = cluster.start_login("t-login-2", {"SLIPWAY_DRAIN_GRACE_S": "600"})
    session = hold(cluster, "t-login-2")
    screen = cluster.open_session("", "bob", "t-login-2", "-tt")
    screen.say("echo through")
    screen.hear("through")
    login.signal("TERM")
    wait_for("its word", lambda: "waiting up to 600 s for the open ones to end" in login.log)
    screen.hear("login node ends in 10 min 0 s")
    with pytest.raises(PodError, match="refused"):
        cluster.session("true", pod="t-login-2")
    assert "main" in cluster.session("sinfo")
    assert session.lives()
    screen.say("exit")
    screen.end()
    assert login.process.poll() is None
    assert session.end() == 0
    assert login.ended() == 0
    login.stop()
    cluster.start_login("t-login-2")


def test_pod_that_goes_ends_when_its_grace_is_over(cluster: LoginCluster) -> None:
    cluster.containers["t-login-2/login"].stop()
    login = cluster.start_login("t-login-2", {"SLIPWAY_DRAIN_GRACE_S": "3"})
    session = hold(cluster, "t-login-2")
    assert login.stop(timeout_s=60) == 0
    assert "3 s are over: open sessions end with this pod" in login.log
    assert session.ended() != 0
    cluster.start_login("t-login-2")


def test_sessions_outlive_sshd_and_it_comes_back(cluster: LoginCluster) -> None:
    session = hold(cluster, "t-login-2")
    login = cluster.containers["t-login-2/login"]
    login.run("pkill", "-KILL", "-x", "sshd")
    wait_for("sshd", lambda: cluster.session("echo in", pod="t-login-2", check=False) == "in")
    assert session.lives()
    session.process.kill()
