"""Finds user, key and namespace of a login in the stack file, without running the program."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.check.login import Login, find_login
from engine import api, kubeconfig
from engine.faults import SlipwayError
from engine.kubeconfig import Where
from engine.project import Project

_CONFIG = "slipway:cluster"


@contextmanager
def open_login(project: Project, where: Where, user: str | None, key: Path | None) -> Generator[Login]:
    """A login as `user`, by default the first user of the stack file with a private key here. Raises SlipwayError."""
    cluster = cluster_of(project)
    name, file = _who(cluster, project.root, user, key)
    connected, namespace = connect(project, where)
    with find_login(connected, namespace, name, file) as login:
        yield login


def connect(project: Project, where: Where) -> tuple[api.Api, str]:
    """The API of the stack file's cluster, which has been sent nothing yet, and the namespace. Raises SlipwayError."""
    cluster = cluster_of(project)
    context = where.context or cluster.get("kubernetes", {}).get("context")
    return api.connect(kubeconfig.find(project.root, where.kubeconfig, context)), str(cluster.get("namespace", "slurm"))


def cluster_of(project: Project) -> dict[str, Any]:
    try:
        return dict(json.loads(project.config[_CONFIG]))
    except (KeyError, ValueError, TypeError):
        raise SlipwayError(f"Pulumi.{project.stack}.yaml has no {_CONFIG}, which this command needs.") from None


def _who(cluster: dict[str, Any], root: Path, user: str | None, key: Path | None) -> tuple[str, Path]:
    users = [entry for entry in cluster.get("login", {}).get("users", []) if user in (None, entry.get("name"))]
    for entry in users:
        private_keys = [root / file.removesuffix(".pub") for file in entry.get("sshKeyFiles", [])]
        if private_key := key or next((file for file in private_keys if file.exists()), None):
            return str(entry["name"]), private_key
    if user and key:
        return user, key  # of LDAP, for instance
    raise SlipwayError(
        f"There is no private key here for {user or 'a user of login.users'}. Give both: --user NAME --key FILE, such as ~/.ssh/id_ed25519."
    )
