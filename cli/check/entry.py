"""From a stack file to a login: as whom, with which key, in which namespace. The program is not run for that."""

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
    """The way in for `user`, by default the first of the stack file who has a private key here. Raises SlipwayError."""
    cluster = cluster_of(project)
    name, file = _who(cluster, project.root, user, key)
    connected, namespace = connect(project, where)
    with find_login(connected, namespace, name, file) as login:
        yield login


def connect(project: Project, where: Where) -> tuple[api.Api, str]:
    """The cluster of a stack file, which has been sent nothing yet, and the namespace there. Raises SlipwayError."""
    cluster = cluster_of(project)
    context = where.context or cluster.get("kubernetes", {}).get("context")
    return api.connect(kubeconfig.find(project.root, where.kubeconfig, context)), str(cluster.get("namespace", "slurm"))


def cluster_of(project: Project) -> dict[str, Any]:
    try:
        return dict(json.loads(project.config[_CONFIG]))
    except (KeyError, ValueError, TypeError):
        raise SlipwayError(f"Pulumi.{project.stack}.yaml has no {_CONFIG}: this verb is for a Slurm cluster of Slipway.") from None


def _who(cluster: dict[str, Any], root: Path, user: str | None, key: Path | None) -> tuple[str, Path]:
    users = [each for each in cluster.get("login", {}).get("users", []) if user in (None, each.get("name"))]
    for each in users:
        private = [root / file.removesuffix(".pub") for file in each.get("sshKeyFiles", [])]
        if found := key or next((file for file in private if file.exists()), None):
            return str(each["name"]), found
    if user and key:
        return user, key  # of LDAP, for instance
    raise SlipwayError(
        f"There is no private key here for {user or 'a user of login.users'}. Give both: --user NAME --key FILE, such as ~/.ssh/id_ed25519."
    )
