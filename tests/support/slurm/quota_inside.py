"""Runs as the first process of a User Mode Linux whose root is the Slurm image: makes homes with quotas on ext4 and on NFS, and prints what
logins say of them as one line of JSON. For tests/slurm/test_quota.py, as kernels often have neither quotas nor NFS.
"""

import atexit
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HOMES, SEEN_BY_NFS = "/home", "/mnt"
ALICE, BOB = 10001, 10002
MODULES = ("quota_tree", "quota_v2", "sunrpc", "grace", "lockd", "netfs", "fscache", "dns_resolver", "nfs", "nfsv4")
"""In the order in which they need one another."""
GANESHA = """\
NFS_CORE_PARAM { Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }
NFSV4 { Graceless = true; RecoveryBackend = fs; Only_Numeric_Owners = true; }
EXPORT {
    Export_Id = 1; Path = /home; Pseudo = /home; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Transports = TCP;
    FSAL { Name = VFS; }
}
"""
ASK = """\
import subprocess, sys, time
from pathlib import Path
from programs.login import quota
home, uid, deadline_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
quota.DEADLINE_S = deadline_s or quota.DEADLINE_S
began = time.monotonic()
try:
    said = quota.describe(home, uid, uid, Path("/run/silent"), time.time())
except subprocess.TimeoutExpired:
    said = "no answer"
print(f"{time.monotonic() - began}|{said}", end="")
"""
PATIENT_S = 60 * float(os.environ.get("PATIENCE", "1"))
"""The kernel hands its option of this name on."""
LOG = Path("/tmp/ganesha.log")
DISK = ("ubda", "b", "98", "0")
_INIT_MODULE, _POWER_OFF = 313, 0x4321FEDC


def run(*command: str) -> str:
    """What a command said, also of errors."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd="/opt/slipway").stdout


def wait_until(*command: str) -> None:
    """Runs a command until it succeeds. Raises TimeoutError."""
    end = time.monotonic() + PATIENT_S
    while (tried := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > end:
            raise TimeoutError(f"{command}: {tried.stdout}{tried.stderr}{LOG.read_text() if LOG.exists() else ''}")
        time.sleep(0.2)


def prepare() -> None:
    """Devices, modules and homes, of which alice may use 5 to 10 MB."""
    for kind, folder in (("proc", "/proc"), ("tmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):
        run("mount", "-t", kind, kind, folder)
    for node in (DISK, ("null", "c", "1", "3"), ("random", "c", "1", "8"), ("urandom", "c", "1", "9")):
        run("mknod", f"/dev/{node[0]}", *node[1:])
    for module in MODULES:
        opened = os.open(f"/uml-modules/{module}.ko", os.O_RDONLY)
        ctypes.CDLL(None).syscall(_INIT_MODULE, opened, b"", 0)
        os.close(opened)
    run("ip", "link", "set", "lo", "up")
    wait_until("mount", "-t", "ext4", "-o", "usrquota", "/dev/ubda", HOMES)
    for uid in (ALICE, BOB):
        Path(HOMES, str(uid)).mkdir()
        os.chown(f"{HOMES}/{uid}", uid, uid)
    run("setquota", "-u", str(ALICE), "5000", "10000", "100", "200", HOMES)


def write(size: int) -> str:
    """A file of alice's; gives the error."""
    own = ("setpriv", "--reuid", str(ALICE), "--regid", str(ALICE), "--clear-groups")
    said = run(*own, "python3", "-c", f"open('{HOMES}/{ALICE}/{size}', 'wb').write(b'1' * {size})")
    os.sync()
    return said


def ask(folder: str, uid: int, deadline_s: float = PATIENT_S) -> tuple[float, str]:
    """How long a login waited, and what it said, with no more rights than sshd has in a pod without `storage.root`."""
    rights = ("--bounding-set", "-all,+setuid,+setgid,+kill", "--inh-caps", "-all")
    waited, _, said = run("setpriv", *rights, "python3", "-c", ASK, f"{folder}/{uid}", str(uid), str(deadline_s)).partition("|")
    return float(waited), said


def ask_without_node(uid: int) -> tuple[float, str]:
    """On the file system itself, whose device has no node: as in a pod."""
    node = Path("/dev", DISK[0])
    node.unlink()
    try:
        return ask(HOMES, uid)
    finally:
        run("mknod", str(node), *DISK[1:])


def serve_nfs() -> list[int]:
    """Serves the homes by NFS and mounts them again; gives the servers' processes."""
    Path("/tmp/ganesha.conf").write_text(GANESHA)
    for command in ("rpcbind", "-w"), ("touch", "/var/lib/nfs/etab"):
        run(*command)
    servers = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid
        for command in (("ganesha.nfsd", "-F", "-f", "/tmp/ganesha.conf", "-L", str(LOG), "-p", "/tmp/ganesha.pid"), ("rpc.rquotad", "-F"))
    ]
    options = "addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.2"
    wait_until("mount", "-i", "-t", "nfs4", "-o", options, "127.0.0.1:/home", SEEN_BY_NFS)
    wait_until("rpcinfo", "-t", "127.0.0.1", "100011")
    return servers


def power_off() -> None:
    ctypes.CDLL(None).reboot(_POWER_OFF)


def main() -> None:
    atexit.register(power_off)  # after the words of an error
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    seen: dict[str, tuple[float, str]] = {}
    prepare()
    write(3_000_000)
    seen["below"], seen["without limits"] = ask_without_node(ALICE), ask_without_node(BOB)
    servers = serve_nfs()
    seen["nfs below"], seen["nfs without limits"] = ask(SEEN_BY_NFS, ALICE), ask(SEEN_BY_NFS, BOB)
    write(4_000_000)
    seen["above"], seen["nfs above"] = ask_without_node(ALICE), ask(SEEN_BY_NFS, ALICE)
    seen["refused"] = (0.0, write(9_000_000))
    seen["full"] = ask_without_node(ALICE)
    for server in servers:
        os.kill(server, signal.SIGSTOP)
    seen["silent"], seen["after silence"] = ask(SEEN_BY_NFS, ALICE, 0), ask(SEEN_BY_NFS, ALICE, 0)
    sys.stdout.write(f"SEEN {json.dumps(seen)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
