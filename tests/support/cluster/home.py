"""The dev stack with a directory of users and backups."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.dev_stack import KEY, DevStack, eventually
from tests.support.slurm.directory_server import BASE, PASSWORD, READER, DirectoryServer

FOLDER = Path("/var/tmp/slipway-cluster-ldap")
BACKUPS = Path("/var/lib/slipway/dev/test-backup")
CONFIG: dict[str, Any] = {
    "login.replicas": 2,
    "login.banner": "Welcome to the test.\n",
    "accounting.enforce": ["associations", "limits", "safe"],
    "accounting.accounts": [{"name": "ml", "users": ["alice"], "fairshare": 5, "limits": {"maxTresPerJob": "cpu=1"}}],
    "accounting.defaultAccount": "guests",
    "backup": {"volume": {"hostPath": str(BACKUPS)}, "stateIntervalS": 10},
}


@dataclass
class Home:
    """The stack with its directory; what was configured last is kept, for changes to come."""

    stack: DevStack
    directory: DirectoryServer
    config: dict[str, Any]

    def up(self, **changes: Any) -> None:
        """Deploys the stack with further changes, by their keys with `__` for dots."""
        self.config |= {key.replace("__", "."): value for key, value in changes.items()}
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in self.config.items()}
        settings = [f"cluster.{key}={text}" for key, text in texts.items()]
        self.stack.slipway("up", *(word for setting in settings for word in ("--config", setting)), timeout_s=900)


@pytest.fixture(scope="module")
def home(deployed: DevStack) -> Iterator[Home]:
    """LDAP with ada, accounts for alice and for guests, two login pods, backups."""
    for folder in (FOLDER, BACKUPS):
        shutil.rmtree(folder, ignore_errors=True)
    FOLDER.mkdir(mode=0o755)
    deployed.ready()
    directory = DirectoryServer(FOLDER / "slapd", "slipway-system", deployed.address, "ldap.example.test")
    directory.prepare()
    for uid, name in enumerate(("ada", "grace"), 12001):  # an answer without any user would not be believed
        directory.add_user(name, uid, KEY.with_suffix(".pub").read_text().strip())
    secrets = {"ldap-ca": f"--from-file=ca.crt={directory.folder / 'ca.crt'}", "ldap-reader": f"--from-literal=password={PASSWORD}"}
    for name, file in secrets.items():
        deployed.kubectl("delete", "secret", name, "--ignore-not-found")
        deployed.kubectl("create", "secret", "generic", name, file)
    ldap = {
        "uris": [f"ldaps://{deployed.address}:{directory.port}"],
        "baseDn": BASE,
        "caSecret": "ldap-ca",
        "bindDn": READER,
        "bindSecret": "ldap-reader",
        "refreshS": 5,
    }
    made = Home(deployed, directory, {**CONFIG, "login.ldap": ldap})
    try:
        made.up()
        deployed.wait_until_settled(400)
        # A job that alice submits before would wait for ever, as one of an account that her partition does not take any more.
        eventually("alice's account", lambda: "ml|alice|" in shares(deployed), 60)
        yield made
    finally:
        directory.kill()
        deployed.slurm("scancel --user=alice; scancel --user=carol; scancel --user=ada", check=False)


def shares(stack: DevStack) -> str:
    """What sshare says of alice's account."""
    return stack.ssh("sshare -nP -o Account,User,RawShares,LevelFS | grep '^ *ml'").replace(" ", "")
