"""An admin's sudo in a login session: what is installed there is there for all. And what an admin cannot do by accident."""

import hashlib
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shlex import quote

import pytest

from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_root import unpack
from tests.support.slurm.image_stack import ALICE
from tests.support.slurm.root_cluster import CONF, OUTWARD, RootCluster, running

SETTINGS = CONF + "file?=/etc/slipway/root/sudoers:/etc/sudoers.d/slipway\n"
LOGINS = ("t-login", "t-login-2")
GUIDE = Path(__file__).parents[2] / "docs" / "operate" / "storage.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RootCluster]:
    """Two login pods. Alice is an admin, bob is not."""
    image = tmp_path_factory.mktemp("admin-image")
    unpack(image)
    sudoers = "alice ALL=(ALL:ALL) NOPASSWD: ALL\n"
    with running(Path("/var/tmp/slipway-admin-pods"), "swad-", image, SETTINGS, ("v1",), sudoers, LOGINS[1:]) as cluster:
        # As programs/root_fill makes it.
        (cluster.shared / "versions/v1/etc/apt/apt.conf.d/90slipway-lock").write_text('DPkg::Lock::Timeout "600";\n')
        yield cluster


def package(cluster: RootCluster, name: str, postinst: str = "true", folder: str = "") -> str:
    """Makes a Debian package with a program of its name, and a folder, in the admin's home; gives its path there."""
    cluster.ssh(f"""set -e
        rm -rf {name}; mkdir -p {name}/DEBIAN {name}/usr/bin {name}/{folder}
        printf 'Package: {name}\\nVersion: 1\\nArchitecture: all\\nMaintainer: t\\nDescription: t\\n' > {name}/DEBIAN/control
        printf '#!/bin/sh\\nset -e\\n{postinst}\\n' > {name}/DEBIAN/postinst
        printf '#!/bin/sh\\necho {name} on $(hostname)\\n' > {name}/usr/bin/{name}
        chmod 755 {name}/DEBIAN/postinst {name}/usr/bin/{name}
        dpkg-deb --root-owner-group --build {name} {name}.deb""")
    return f"./{name}.deb"


def logs_of_version(cluster: RootCluster) -> list[str]:
    """Files in the version's own /var/log."""
    return [file.name for file in (cluster.shared / "versions/v1/var/log").rglob("*") if not file.is_dir()]


def test_package_installed_by_an_admin_is_there_for_jobs_on_all_nodes(cluster: RootCluster) -> None:
    cluster.ssh(f"sudo apt-get install -y {package(cluster, 'hello-all')}", timeout_s=120)
    assert sorted(cluster.ssh("srun --nodes=2 hello-all", user="bob").splitlines()) == ["hello-all on gpu-0", "hello-all on gpu-1"]


def test_installs_on_two_login_pods_wait_for_each_other_and_both_succeed(cluster: RootCluster) -> None:
    mark = "date +%%s.%%N >> /home/alice/turns; sleep 2; date +%%s.%%N >> /home/alice/turns"
    names = ["turn-one", "turn-two"]
    files = [package(cluster, name, mark) for name in names]

    def install(file: str, pod: str) -> str:
        return cluster.ssh(f"hostname; sudo apt-get install -y {file}", pod=pod, timeout_s=120)

    with ThreadPoolExecutor() as pool:
        said = [*pool.map(install, files, LOGINS)]
    assert [one.split()[0] for one in said] == [*LOGINS]
    assert all("Setting up" in one for one in said)
    turns = [float(line) for line in cluster.ssh("cat turns").split()]
    assert turns == sorted(turns)
    assert len(turns) == 4
    for pod in LOGINS:
        assert cluster.ssh("dpkg --audit; dpkg-query --show --showformat='${Status}\\n' turn-one turn-two", pod=pod).splitlines() == [
            "install ok installed",
            "install ok installed",
        ]
    for pod, own, other in ((LOGINS[0], *names), (LOGINS[1], *names[::-1])):
        logged = cluster.ssh("cat /var/log/apt/history.log /var/log/dpkg.log", pod=pod)
        assert own in logged
        assert other not in logged
    assert logs_of_version(cluster) == []


def test_var_log_folder_of_a_package_is_there_for_all_later_sessions(cluster: RootCluster) -> None:
    own = "chown www-data:adm /var/log/daemon; chmod 2755 /var/log/daemon; echo started > /var/log/daemon/log"
    cluster.ssh(f"sudo apt-get install -y {package(cluster, 'daemon', own, 'var/log/daemon')}", timeout_s=120)
    look = "stat -c '%a %U %G' /var/log/daemon; ls -A /var/log/daemon"
    assert cluster.ssh(look).split() == ["2755", "www-data", "adm", "log"]
    assert cluster.ssh(look, pod=LOGINS[1]).split() == ["2755", "www-data", "adm"]
    assert cluster.ssh(f"srun --nodes=2 bash -c {quote(look)}").split() == ["2755", "www-data", "adm"] * 2
    assert logs_of_version(cluster) == []


def test_install_as_the_guide_has_it_works_in_a_fresh_version(cluster: RootCluster) -> None:
    """With a small archive of our own in place of Debian's."""
    version = cluster.shared / "versions/v1"
    deb = cluster.machine.folder / "volume-home/alice" / package(cluster, "jq")
    archive = version / "opt/archive"
    archive.mkdir()
    content = deb.read_bytes()
    (archive / "jq.deb").write_bytes(content)
    control = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
    about = f"Filename: ./jq.deb\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
    (archive / "Packages").write_text(control + about)
    for sources in [version / "etc/apt/sources.list", *(version / "etc/apt/sources.list.d").iterdir()]:
        sources.unlink(missing_ok=True)
    (version / "etc/apt/sources.list.d/t.list").write_text("deb [trusted=yes] file:/opt/archive ./\n")
    guide = re.findall(r"^    (sudo apt .*)$", GUIDE.read_text(), re.MULTILINE)
    assert guide[-1].split() == ["sudo", "apt", "install", "jq"]
    assert "Unable to locate package jq" in cluster.ssh(guide[-1], check=False)
    for line in guide:
        cluster.ssh(line, timeout_s=120)
    assert sorted(cluster.ssh("srun --nodes=2 jq", user="bob").splitlines()) == ["jq on gpu-0", "jq on gpu-1"]


def test_who_is_no_admin_gets_nothing_from_sudo(cluster: RootCluster) -> None:
    assert "a password is required" in cluster.ssh("sudo -n id", user="bob", check=False)
    assert "uid=0" in cluster.ssh("sudo -n id")


AS_ITS_USER = (
    "for p in /proc/[0-9]*; do u=$(awk '/^Uid/{print $2}' $p/status) g=$(awk '/^Gid/{print $2}' $p/status); for way in root cwd; do"
    " setpriv --reuid $u --regid $g --clear-groups ls $p/$way/opt/slipway/slurm/states.py && echo out; done; done"
)


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param("mount -t tmpfs none /mnt && echo out", id="mount"),
        pytest.param("nsenter --target 1 --mount ls /shared/versions && echo out", id="enter the pod's namespace"),
        pytest.param("ls /proc/1/root/shared/versions && echo out", id="look through a process of the pod"),
        pytest.param(AS_ITS_USER, id="look through every process as its own user"),
        pytest.param("echo '# mine' >> /run/slurm/conf/slurm.conf && echo out", id="Slurm's configuration of the pod"),
        pytest.param("touch /run/munge/mine /run/slipway/mine || rm -rf /run/slipway/login && echo out", id="what the pod's scripts tell"),
        pytest.param("ln -sf /etc/passwd /dev/null && echo out", id="another /dev/null for the pod"),
        pytest.param("echo >> /usr/lib/slipway/pam_slipway_root.so && echo out", id="the module that makes sessions"),
        pytest.param("echo 10.0.0.1 t-slurmctld >> /etc/hosts && echo out", id="the pod's hosts"),
        pytest.param("cat /run/slipway/ssh/ssh_host_ed25519_key && echo out", id="the host key"),
        pytest.param("find /run/slipway/cgroup -mindepth 1 | grep -q . && echo out", id="the limits of users"),
        pytest.param("find / -xdev -path '*/versions/v1' 2>/dev/null | grep -q . && echo out", id="the volume of the versions"),
        pytest.param("mknod /tmp/sda b 8 0 && echo out", id="make a device"),
        pytest.param("echo x > /proc/sys/kernel/core_pattern && echo out", id="change the kernel's settings"),
        pytest.param("unshare --mount umount /run && echo out", id="a namespace of its own"),
        pytest.param(
            "unshare --user --map-root-user --mount sh -c 'umount -l /run/slipway/ssh; ls -A /run/slipway/ssh | grep . && echo out'",
            id="a user namespace of its own",
        ),
    ],
)
def test_root_of_a_session_is_not_root_of_the_pod(cluster: RootCluster, attempt: str) -> None:
    assert "out" not in cluster.ssh(f"sudo bash -c {quote(attempt)}", check=False).split()


def test_sackd_that_was_started_again_is_not_looked_through_either(cluster: RootCluster) -> None:
    """Measured on 26.05: its memory and root are open to its user then, although its program cannot be read."""
    before = cluster.ssh("pgrep --exact sackd")
    cluster.containers["t-login/login"].run("pkill", "--exact", "sackd")
    wait_for("another sackd", lambda: cluster.ssh("pgrep --exact sackd") not in ("", before))
    for _ in range(3):
        assert "out" not in cluster.ssh(f"sudo bash -c {quote(AS_ITS_USER)}", check=False).split()


@pytest.mark.parametrize("attempt", OUTWARD)
def test_who_is_no_admin_gets_no_further_where_there_are_admins(cluster: RootCluster, attempt: str) -> None:
    assert "out" not in cluster.ssh(f"{attempt}; true", user="bob", check=False).split()


def test_root_of_a_session_may_write_where_packages_do(cluster: RootCluster) -> None:
    assert (
        cluster.ssh(
            "sudo bash -c 'mkdir -p /run/lock /run/mine && echo x > /dev/null && echo x > /dev/shm/mine && rm /dev/shm/mine && id -u'"
        )
        == "0"
    )
    assert cluster.ssh(
        "sinfo --noheader --format %R; test -S /run/munge/munge.socket.2 && ls /run/mine 2>&1 | grep -c 'No such'"
    ).split() == ["main", "1"]


def test_root_runs_no_jobs(cluster: RootCluster) -> None:
    assert "uid=0" not in cluster.ssh("sudo srun id", check=False)
    assert cluster.ssh("srun id -u") == str(ALICE)


def test_setuid_program_of_an_admin_gets_no_rights_in_or_beside_jobs(cluster: RootCluster) -> None:
    cluster.ssh("sudo install -m 4755 /usr/bin/id /home/alice/who; sudo chmod 755 /home/alice")
    assert cluster.ssh("/home/alice/who -u", user="bob") == "0"  # in a session it does, where root is bound
    assert cluster.ssh("srun /home/alice/who -u") == str(ALICE)
    cluster.ssh("printf '#!/bin/sh\\n/home/alice/who -u > /home/alice/beside\\n' > epilog; chmod 755 epilog; rm -f beside")
    cluster.ssh("srun --task-epilog=/home/alice/epilog true")
    assert cluster.ssh("cat beside") == str(ALICE)


def test_device_that_somebody_put_into_a_home_is_none(cluster: RootCluster) -> None:
    home = cluster.machine.folder / "volume-home/alice"
    subprocess.run(["mknod", "-m", "666", str(home / "null"), "c", "1", "3"], check=True)
    assert "Permission denied" in cluster.ssh("echo x > null", check=False)
    assert "Permission denied" in cluster.ssh("srun sh -c 'echo x > null'", check=False)
