"""Users from LDAP, for real: Debian's slapd with TLS, the program in the image under runc with the rights that its component asks for, and
logins over ssh with keys of the directory.

What each entry means, and what is left out, is in tests/unit/identity.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components import arguments
from components.identity import IDENTITY_UID, build_deployment
from configs import users
from configs.load import load_cluster
from tests.slurm.directory_server import BASE, PASSWORD, PEOPLE, READER, DirectoryServer
from tests.slurm.image_cluster import STACK, ImageCluster
from tests.slurm.image_pods import Container, Machine, PodError, wait_for

FOLDER = Path("/var/tmp/slipway-ldap-pods")
PREFIX = "swld-"
SCRIPTS = Path(__file__).parents[2] / "configs" / "scripts"
HOST = "ldap.example.test"
ADA = 20001


class Site(ImageCluster):
    """A login node, the program, and the directory."""

    directory: DirectoryServer
    key: Path

    @property
    def folder(self) -> Path:
        """What pods mount."""
        return self.machine.folder / "volume-shared" / "identity"

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

    def start(self, **changes: Any) -> Container:
        """Starts the pod of the program as its component has it, with a config that was changed; ends one that runs."""
        if "t-identity/identity" in self.containers:
            self.program.stop("KILL")
        stack = {**STACK, "login": {**STACK["login"], "ldap": self.ldap(**changes)}}
        cluster = load_cluster(stack, Path(), "Pulumi.test.yaml")
        self.volume("users", users.render(cluster))
        self.volume("user-keys", users.render_keys(cluster))
        pods = arguments.pod_defaults(cluster, "image", "scripts")
        said = cluster.login.ldap
        assert said is not None
        made = arguments.identity_args(cluster, pods, "programs", said)
        made["ldap"]["refresh_s"] = 1  # less than the config allows, so that tests are quick
        pod = build_deployment(made)["spec"]["template"]["spec"]
        prepare = self.run_container(pod["initContainers"][0])
        assert prepare.process.wait(20) == 0, prepare.log
        prepare.stop()
        return self.run_container(pod["containers"][0])

    def run_container(self, manifest: dict[str, Any]) -> Container:
        """A container under runc, from what Kubernetes would be told."""
        volumes = {"programs": SCRIPTS / "identity", "scripts": SCRIPTS / "start", "tmp": self.empty("t-identity-tmp")}
        mounts: dict[str, tuple[Path, bool]] = {}
        for each in manifest["volumeMounts"]:
            outside = volumes.get(each["name"]) or self.machine.folder / f"volume-{each['name']}"
            if each["name"] == "shared-root":
                outside = self.machine.folder / "volume-shared"
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

    def getent(self, what: str, name: str) -> str:
        """A name as the login node has it."""
        return self.containers["t-login/login"].run("getent", what, name, check=False).strip()

    def ssh(self, user: str, command: str = "id -un") -> str:
        """Logs in from outside with the key of the tests."""
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes", "ConnectTimeout=5"]
        full = ["nsenter", f"--net=/run/netns/{PREFIX}hub", "ssh", "-p", "2222", "-i", str(self.key)]
        full += [part for option in options for part in ("-o", option)]
        target = f"{user}@{self.machine.addresses['t-login']}"
        done = subprocess.run([*full, target, command], capture_output=True, text=True, timeout=60, check=False)
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

    def files(self) -> dict[str, str]:
        """What pods read, now."""
        found = {name: (self.folder / name).read_text() for name in ("passwd", "group", "shadow")}
        return {**found, **{f"keys/{each.name}": each.read_text() for each in (self.folder / "keys").iterdir()}}

    def log_after(self, action: Callable[[], object], words: str, deadline_s: float = 30) -> str:
        """Does something and waits until the program's log says the words; gives what it said since."""
        before = len(self.program.log)
        action()
        wait_for(f"`{words}` in the log", lambda: words in self.program.log[before:], deadline_s=deadline_s)
        return self.program.log[before:]


@pytest.fixture(scope="module")
def site(image_root: Path) -> Iterator[Site]:
    """The directory with ada, the program, and a login node that mounts what it writes."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    for name in ("id", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(FOLDER / name)], check=True)
    site = Site(machine, names={"t-slurmctld-0": ["t-slurmctld"], "t-login": [], "t-identity": []})
    site.key = FOLDER / "id"
    site.directory = DirectoryServer(FOLDER / "slapd", f"{PREFIX}hub", "198.18.255.1", HOST)
    try:
        site.prepare()
        with (FOLDER / "hosts").open("a") as hosts:
            hosts.write(f"198.18.255.1 {HOST}\n")
        site.directory.prepare()
        site.directory.add_user("ada", ADA, site.public_key)
        site.volume("ca", {"ca.crt": (site.directory.folder / "ca.crt").read_bytes()})
        site.volume("password", {"password": f"{PASSWORD}\n"})
        (FOLDER / "volume-shared").mkdir(mode=0o755)
        site.start()
        wait_for("readiness", site.is_ready)
        site.user_mounts = {"/var/lib/extrausers": (site.folder, True), "/etc/slipway/keys": (site.folder / "keys", True)}
        site.munged("t-login")
        site.login(site.public_key, (FOLDER / "host").read_text())
        wait_for("sshd", lambda: site.ssh("ada") == "ada")
        yield site
    finally:
        site.directory.kill()
        kept = Path("/var/tmp/slipway-ldap-pods.logs")
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for log in (*FOLDER.glob("*/log"), *FOLDER.glob("slapd/log")):
            shutil.copy(log, kept / f"{log.parent.name}.log")
        machine.close()


def test_user_of_ldap_logs_in_with_her_key_and_has_her_names_and_home(site: Site) -> None:
    assert site.getent("passwd", "ada") == f"ada:x:{ADA}:{ADA}:Ada:/home/ada:/bin/bash"
    assert site.ssh("ada", "id -u; id -gn; pwd").split() == [str(ADA), "ada", "/home/ada"]


def test_user_who_is_removed_cannot_log_in_within_a_minute(site: Site) -> None:
    site.directory.add_user("bob", 20002, site.public_key)
    wait_for("bob's login", lambda: site.ssh("bob") == "bob")
    site.directory.delete(f"uid=bob,{PEOPLE}")
    wait_for("a refusal", lambda: site.is_refused("bob"), deadline_s=60)
    wait_for("no name", lambda: not site.getent("passwd", "bob"))
    assert not (site.folder / "keys" / "bob").exists()
    assert site.ssh("ada") == "ada"
