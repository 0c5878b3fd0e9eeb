"""The part of the lab that runs in namespaces of its own, started by render_lab.py:
`python -m tests.support.slurm.render_lab_inside IMAGE WORK CLUSTER`. It makes a root over the image, goes into it, starts munged,
MariaDB and slurmdbd, and has slurmctld read each set of files.

WORK/sets/<name>/ holds a set; WORK/out/<name>/ gets what Slurm made of it. Nothing of it outlives the namespaces.
"""

import grp
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.patience import patience, seconds

IMPORTED_EARLY = (grp, pwd)
"""shutil.chown would import them when Python's own library is out of reach."""
ADDRESS = "198.18.255.1"
"""An address that is not the loopback: Slurm looks up none for that."""
SCRIPTS = Path(__file__).parents[3] / "programs/start"
_FETCH = ("curl", "--silent", "--max-time", "300", "--write-out", r"\n%{http_code}")
QUESTIONS = {
    "config": ("scontrol", "show", "config"),
    "nodes": ("scontrol", "--oneliner", "show", "node"),
    "partitions": ("scontrol", "--oneliner", "show", "partition"),
    **{page: (*_FETCH, f"http://{ADDRESS}:6817/{page}") for page in ("livez", "readyz", "metrics")},
}
"""What slurmctld is asked, by the name of the file that gets its answer."""
_CLIENT = ("mariadb", "--no-defaults", "--socket=/run/mysqld/mysqld.sock", "-e")


def as_user(user: str, *command: str) -> list[str]:
    """The command as one of the daemons' users."""
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *command]


def call(*command: str, timeout_s: float = 60) -> None:
    """Raises CalledProcessError."""
    subprocess.run(command, check=True, timeout=timeout_s * patience())


def start(log: Path, *command: str) -> subprocess.Popen[bytes]:
    """A daemon, with what it says in a log."""
    with log.open("ab") as sink:
        return subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)


def wait_for(what: str, probe: Callable[[], bool], deadline_s: float = 120) -> None:
    """Raises TimeoutError."""
    began = time.monotonic()
    while not probe():
        if (waited_s := time.monotonic() - began) > deadline_s * patience():
            raise TimeoutError(f"no {what} within {waited_s:.0f} s")
        time.sleep(0.1)


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, timeout=seconds(30), check=False).returncode == 0


def enter_root(image: Path, work: Path, cluster: str) -> None:
    """A root over the image with the sets in it, an address, and the cluster's names; goes into it."""
    scratch = work / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    call("mount", "-t", "tmpfs", "tmpfs", str(scratch))
    upper, layer, root = (scratch / name for name in ("upper", "work", "root"))
    for folder in (upper, layer, root):
        folder.mkdir()
    call("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={image},upperdir={upper},workdir={layer}", str(root))
    call("mount", "-t", "proc", "proc", str(root / "proc"))
    call("mount", "--rbind", "/dev", str(root / "dev"))
    for name in ("sets", "out", "run/slurm", "run/munge", "run/mysqld", "etc/slipway/jwt", "opt/slipway/scripts"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(SCRIPTS / "prolog-slurmctld.sh", root / "opt/slipway/scripts")  # slurmctld does not start without it
    for name in ("sets", "out"):
        call("mount", "--bind", str(work / name), str(root / name))
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "lab0", "type", "veth", "peer", "name", "lab1")
    call("ip", "address", "add", f"{ADDRESS}/24", "dev", "lab0")
    call("ip", "link", "set", "lab0", "up")
    call("ip", "link", "set", "lab1", "up")
    call("hostname", f"{cluster}-slurmctld-0")
    names = [f"{cluster}-{name}" for name in ("slurmctld-0", "slurmctld", "slurmdbd-0", "slurmdbd", "mariadb")]
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {' '.join(names)}\n")
    os.chroot(root)
    os.chdir("/")


def start_backing(cluster: str) -> None:
    """munged, a JWT key, the database, and slurmdbd under its own host name."""
    keys = {Path("/run/munge.key"): ("munge", 1024), Path("/etc/slipway/jwt/jwt_hs256.key"): ("slurm", 32)}
    for path, (owner, size) in keys.items():
        path.write_bytes(os.urandom(size))
        path.chmod(0o400)
        shutil.chown(path, owner)
    owned = {
        "munge": ("/run/munge", "/var/lib/munge"),
        "slurm": ("/run/slurm", *Path("/out").iterdir()),
        "mysql": ("/var/lib/mysql", "/run/mysqld"),
    }
    for owner, folders in owned.items():
        for folder in map(Path, folders):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.chown(folder, owner)
    files = ["--key-file", "/run/munge.key", "--seed-file", "/var/lib/munge/seed", "--pid-file", "/run/munge/munged.pid"]
    munged = ["munged", "--foreground", "--force", "--num-threads", "4", *files, "--log-file", "/var/lib/munge/log"]
    start(Path("/out/munged.log"), *as_user("munge", *munged))
    log, shared = Path("/out/mariadb.log"), ["--no-defaults", "--user=mysql", "--datadir=/var/lib/mysql"]
    install = ["mariadb-install-db", *shared, "--auth-root-authentication-method=normal", "--skip-test-db"]
    assert start(log, *install).wait(seconds(120)) == 0
    start(log, "mariadbd", *shared, "--socket=/run/mysqld/mysqld.sock", f"--bind-address={ADDRESS}", "--innodb-snapshot-isolation=OFF")
    wait_for("database", lambda: succeeds(*_CLIENT, "SELECT 1"))
    call(*_CLIENT, "CREATE DATABASE slurm_acct_db; GRANT ALL ON slurm_acct_db.* TO slurm@'%' IDENTIFIED BY 'lab'")
    conf = Path("/etc/slurm/slurmdbd.conf")
    conf.write_text(min(Path("/sets").glob("*/slurmdbd.conf")).read_text() + "StoragePass=lab\n")
    conf.chmod(0o600)
    shutil.chown(conf, "slurm")
    slurmdbd = " ".join(as_user("slurm", "slurmdbd", "-D"))
    said = Path("/out/slurmdbd.log")
    start(said, "unshare", "--uts", "bash", "-c", f"hostname {cluster}-slurmdbd-0; exec {slurmdbd}")
    wait_for("slurmdbd", lambda: "slurmdbd version" in (text := said.read_text(errors="replace")) and "started" in text)


def read_set(name: str) -> None:
    """Starts slurmctld on a set of files, and writes down what it says."""
    out, spool = Path("/out", name), Path("/var/spool/slurmctld")
    os.environ["SLURM_CONF"] = f"/sets/{name}/slurm.conf"
    shutil.rmtree(spool, ignore_errors=True)
    (spool / "state").mkdir(parents=True)
    shutil.chown(spool / "state", "slurm")
    slurmctld = start(out / "log", *as_user("slurm", "slurmctld", "-D"))
    try:
        wait_for("slurmctld", lambda: slurmctld.poll() is not None or _is_up())
    except TimeoutError as error:
        (out / "scontrol").write_text(f"{error}\n")
    if slurmctld.poll() is None:
        with (out / "scontrol").open("a") as errors:
            for file, question in QUESTIONS.items():
                with (out / file).open("w") as answer:
                    subprocess.run(question, stdout=answer, stderr=errors, timeout=seconds(60), check=False)
        slurmctld.terminate()
    (out / "exit").write_text(f"{slurmctld.wait(seconds(120))}\n")


def _is_up() -> bool:
    try:
        done = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, timeout=seconds(5), check=False)
    except subprocess.TimeoutExpired:
        return False  # a slurmctld that ends while it starts may take the connection and leave it
    return "is UP" in done.stdout


def main(image: str, work: str, cluster: str) -> None:
    enter_root(Path(image), Path(work), cluster)
    start_backing(cluster)
    for folder in sorted(Path("/sets").iterdir()):
        read_set(folder.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
