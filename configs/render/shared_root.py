"""The versioned root that jobs and logins see: its versions, and root.conf, which images/slurm/root reads at each job and session."""

import posixpath
import re
from collections.abc import Mapping

from configs.models.cluster import Cluster
from configs.models.shared_root import Root, RootVersion
from names import paths

SHARED = paths.SHARED
"""Where pods have the shared volume."""
TMP = paths.JOBS_TMP
"""Where workers have their jobs' private /tmp; a node set may claim a disk for it."""
CONTAINERS = paths.CONTAINERS
"""Where workers have the images of containers; a node set may claim a disk for it."""
SCRATCH = paths.SCRATCH
"""Where a job has its own room on the node's disk, in node sets with `scratch`."""
SPOOL = paths.SLURMD_SPOOL
"""slurmd's own folder, as slurm.conf has it."""
SUDOERS = "sudoers"
"""The file beside root.conf that says who may use sudo."""
_ALWAYS = (paths.HOMES, paths.USERS, paths.PLUGINS)
"""Homes, who the users are, and the plugin itself, which srun loads inside the root too."""


def versions_of(root: Root, default: str) -> Mapping[str, RootVersion]:
    """The versions by name, each with its image or tar, after the version that it carries from."""
    if not root.versions:
        name = _name_of(default)
        return {name: RootVersion.model_construct(name=name, image=default)}
    declared = {version.name: version for version in root.versions}
    versions: dict[str, RootVersion] = {}

    def add(version: RootVersion) -> None:
        if version.carry_from in declared and version.carry_from not in versions:
            add(declared[version.carry_from])
        image = version.image if version.image or version.tar else default
        versions.setdefault(version.name, version.model_copy(update={"image": image}))

    for version in root.versions:
        add(version)
    return versions


def current_of(root: Root, default: str) -> str:
    """The version for new jobs and sessions."""
    if root.current:
        return root.current
    return root.versions[-1].name if root.versions else _name_of(default)


def _name_of(image: str) -> str:
    """The tag of an image, or the start of its digest: `slurm:1.2@sha256:0a1b...` gives 0a1b...; `latest` without either."""
    last = image.rpartition("/")[2]
    if "@sha256:" in last:
        return last.partition("@sha256:")[2][:12]
    return re.sub(r"[^A-Za-z0-9._-]", "-", last.partition(":")[2]) or "latest"


def render(cluster: Cluster, settings: str, slurm_uid: int) -> str:
    """root.conf, which pods have in the folder `settings`. Jobs of SlurmUser are health checks, which see the node itself.

    Pods skip mounts and disks that they do not have.
    """
    has_projects = is_below_shared(cluster) and any(account.folder for account in cluster.accounting.accounts)
    some = sorted({*volume_places(cluster), *([cluster.storage.projects] if has_projects else [])})
    lines = [
        "# Rendered by Slipway; read anew by every job and session. Its lines are explained in images/slurm/root/conf.h.",
        *(f"shared={SHARED}", f"tmp={TMP}", f"spool={SPOOL}"),
        *(f"mount={path}" for path in _ALWAYS),
        *(f"mount?={path}" for path in some),
        *("file=/etc/hosts", "file?=/etc/resolv.conf"),
        *([f"file?={settings}/{SUDOERS}:/etc/sudoers.d/slipway"] if cluster.login.has_admins else []),
        *(["file?=/etc/ssh/ssh_config.d/slipway.conf"] if cluster.login.ssh_to_nodes else []),
        f"outside={slurm_uid}",
    ]
    return "".join(f"{line}\n" for line in lines)


def volume_places(cluster: Cluster) -> list[str]:
    """Where jobs see further mounts and the disks of node sets, sorted."""
    disks = {claim.mount_path for node_set in cluster.node_sets for claim in node_set.volume_claims} - {TMP, CONTAINERS}
    return sorted({*(mount.mount_path for mount in cluster.storage.mounts), *disks})


def is_below_shared(cluster: Cluster) -> bool:
    """True when the folders of projects are on the shared volume."""
    return posixpath.dirname(cluster.storage.projects) == SHARED


def render_sudoers(cluster: Cluster) -> str:
    """Who may use sudo in a login session, in the format of sudoers(5)."""
    who = [*(user.name for user in cluster.login.users if user.admin), *(f"%{group}" for group in cluster.login.admin_groups)]
    return "".join(f"{name} ALL=(ALL:ALL) NOPASSWD: ALL\n" for name in who)
