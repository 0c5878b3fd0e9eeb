"""The pods of test_ldap.py: the program with the mounts and rights that its component asks for, a login node, and words for both."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.ldap import IDENTITY_UID, build_deployment
from components.pods import pod_defaults
from configs.load import load_cluster
from configs.render import users
from tests.support import ssh
from tests.support.patience import patience
from tests.support.slurm.directory_server import BASE, PASSWORD, READER, DirectoryServer
from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import Container, Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, STACK

PROJECT = Path(__file__).parents[3]
FOLDER = Path("/var/tmp/slipway-ldap-pods")
PREFIX = "swld-"
HOST = "ldap.example.test"
ADA = 20001


class Site(ImageCluster):
    """A login node, the program, and the directory."""

    directory: DirectoryServer
    key: Path
    pod: dict[str, Any]
    """The pod of the program as it was started last."""

    @property
    def shared(self) -> Path:
        """The shared volume."""
        return self.machine.folder / "volume-shared"

    @property
    def folder(self) -> Path:
        """What pods mount."""
        return self.shared / "identity"

    def path(self, name: str, read_only: bool = True) -> tuple[Path, bool]:
        """A volume as a mount; the users are those of the folder in every pod."""
        return (self.folder, True) if name == "users" else super().path(name, read_only)

    @property
    def program(self) -> Container:
        """The running program."""
        return self.containers["t-identity/identity"]

    @property
    def public_key(self) -> str:
        """The key that tests log in with."""
        return self.key.with_suffix(".pub").read_text().strip()

    def ldap(self, **changes: Any) -> dict[str, Any]:
        """The config `login.ldap`, with changes."""
        said = {
            "uris": [self.directory.uri],
            "caSecret": "ldap-ca",
            "baseDn": BASE,
            "groupFilter": "(|(objectClass=posixGroup)(objectClass=bisGroup))",
            "bindDn": READER,
            "bindSecret": "ldap-reader",
            "refreshS": 5,
        }
        return {key: value for key, value in {**said, **changes}.items() if value is not None}

    def give_secrets(self) -> None:
        """The Secrets that the config names."""
        self.volume("ca", {"ca.crt": (self.directory.folder / "ca.crt").read_bytes()})
        self.volume("password", {"password": f"{PASSWORD}\n"})

    def start(self, is_quick: bool = True, **changes: Any) -> Container:
        """Starts the pod of the program as its component has it, with a config that was changed; ends one that runs. `is_quick`: LDAP is
        asked more often than the config allows, which spares the tests most of their time."""
        self.stop()
        alice = {"name": "alice", "uid": ALICE, "sshKeys": [self.public_key]}
        stack = {**self.stack, "login": {"users": [alice], "ldap": self.ldap(**changes)}}
        cluster = load_cluster(stack, Path(), "Pulumi.test.yaml")
        self.volume("users", users.render(cluster))
        self.volume("user-keys", users.render_keys(cluster))
        pods = pod_defaults(cluster, "image", "scripts", {"names": "names", "slurm": "slurm", "ldap_sync": "ldap-sync"})
        said = cluster.login.ldap
        assert said is not None
        asked = said.model_copy(update={"refresh_s": 1}) if is_quick else said
        self.pod = build_deployment(cluster, pods, asked)["spec"]["template"]["spec"]
        code, said = self.prepare_folder()
        assert (code, said) == (0, "")
        return self.run_container(self.pod["containers"][0])

    def prepare_folder(self) -> tuple[int, str]:
        """Runs the init container; gives its exit code and what it said."""
        prepare = self.run_container(self.pod["initContainers"][0])
        code = prepare.ended()
        prepare.stop()
        return code, prepare.log

    def stop(self) -> None:
        """Kills the program, if it runs."""
        if running := self.containers.pop("t-identity/identity", None):
            running.stop("KILL")

    def run_container(self, manifest: dict[str, Any]) -> Container:
        """A container under runc, from what Kubernetes would be told."""
        volumes = {
            "program-ldap-sync": PROJECT / "programs" / "ldap_sync",
            "names": PROJECT / "names",
            "slurm": PROJECT / "slurm",
            "tmp": self.empty("t-identity-tmp"),
        }
        mounts: dict[str, tuple[Path, bool]] = {}
        for each in manifest["volumeMounts"]:
            outside = volumes.get(each["name"]) or self.machine.folder / f"volume-{each['name']}"
            if each["name"] == "shared-root":
                outside = self.shared
            mounts[each["mountPath"]] = (outside / each.get("subPath", ""), each.get("readOnly", False))
        context = manifest["securityContext"]
        assert context["capabilities"]["drop"] == ["ALL"]
        assert context["readOnlyRootFilesystem"]
        container = self.machine.start(
            "t-identity",
            manifest["name"],
            manifest["command"],
            mounts,
            {each["name"]: each["value"] for each in manifest["env"]},
            user=context["runAsUser"],
            capabilities=context["capabilities"].get("add", []),
            read_only=True,
            cwd=manifest["workingDir"],
        )
        self.containers[f"t-identity/{manifest['name']}"] = container
        return container

    def is_ready(self) -> bool:
        """What the readiness probe says."""
        try:
            self.program.run("test", "-e", "/tmp/ready", user=IDENTITY_UID)
        except PodError:
            return False
        return True

    def people(self) -> list[str]:
        """The users of LDAP as the pods have them."""
        lines = (self.folder / "passwd").read_text().splitlines()
        return sorted(name for line in lines if (name := line.partition(":")[0]) != "alice")

    def getent(self, what: str, name: str) -> str:
        """A name as the login node has it."""
        return self.containers["t-login/login"].run("getent", what, name, check=False).strip()

    def ssh(self, user: str, command: str = "id -un") -> str:
        """Logs in from outside with the key of the tests."""
        full = ["nsenter", f"--net=/run/netns/{self.machine.prefix}hub", "ssh", "-p", "2222", "-i", str(self.key)]
        full += ssh.options("ConnectTimeout=60")
        target = f"{user}@{self.machine.addresses['t-login']}"
        done = subprocess.run([*full, target, command], capture_output=True, text=True, timeout=180 * patience(), check=False)
        if done.returncode:
            raise PodError(f"ssh as {user} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def is_refused(self, user: str) -> bool:
        """True when sshd takes no key of the user."""
        try:
            self.ssh(user)
        except PodError as error:
            return "Permission denied" in str(error)
        return False

    def wait_said(self, words: str, deadline_s: float = 40) -> str:
        """Waits until the program's log says the words; gives the log."""
        wait_for(f"`{words}` in the log", lambda: words in self.program.log, deadline_s=deadline_s)
        return self.program.log


@pytest.fixture(autouse=True)
def usual(site: Site) -> None:
    """Each test starts with the program as it was configured first, and ada as the only user of LDAP."""
    if site.directory.process is None:
        site.directory.start()
    site.stop()
    site.start(maxRemovedPercent=100)
    wait_for("the usual users", lambda: site.is_ready() and site.people() == ["ada"])
    site.start()
    wait_for("readiness", site.is_ready)


@pytest.fixture(scope="module")
def site(image_root: Path) -> Iterator[Site]:
    """The directory with ada, the program, and a login node that mounts what it writes."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    for name in ("id", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(FOLDER / name)], check=True)
    names = {"t-slurmctld-0": ["t-slurmctld"], "t-login": [], "t-identity": [], "gpu-0": [], "gpu-1": []}
    site = Site(machine, names=names, stack={**STACK, "accounting": {"enabled": False}})
    site.key = FOLDER / "id"
    site.directory = DirectoryServer(FOLDER / "slapd", f"{PREFIX}hub", "198.18.255.1", HOST)
    try:
        site.prepare()
        with (FOLDER / "hosts").open("a") as hosts:
            hosts.write(f"198.18.255.1 {HOST} other.example.test\n")
        site.directory.prepare()
        site.directory.add_user("ada", ADA, site.public_key)
        site.give_secrets()
        site.shared.mkdir(mode=0o755)
        site.start()
        wait_for("readiness", site.is_ready)
        # As without a versioned root: users have the whole volume, too.
        site.user_mounts = {"/etc/slipway/keys": (site.folder / "keys", True), "/shared": (site.shared, False)}
        site.munged("t-login")
        site.login(site.public_key, (FOLDER / "host").read_text())
        wait_for("sshd", lambda: site.ssh("ada") == "ada")
        yield site
    finally:
        site.directory.kill()
        machine.keep_logs()
        machine.close()


def be_silent(site: Site, seconds: float) -> None:
    """Stops the server for so long, and looks at what a known user sees."""
    before = (site.folder / "passwd").read_text()
    assert site.directory.process is not None
    site.directory.process.send_signal(signal.SIGSTOP)
    end = time.monotonic() + seconds
    try:
        wait_for("the sign", lambda: not site.is_ready(), deadline_s=60)
        site.wait_said("The last good files stay")
        wait_for("the end, or a refused login", lambda: time.monotonic() > end or site.ssh("ada") != "ada", 2 * seconds, pause_s=5)
        assert time.monotonic() > end
        assert (site.folder / "passwd").read_text() == before
        assert site.program.process.poll() is None
    finally:
        site.directory.process.send_signal(signal.SIGCONT)
    wait_for("the sign", site.is_ready, deadline_s=60)
