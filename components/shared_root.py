"""The versioned root on the shared volume: Jobs fill versions from images or tars, and one version is current.

Files that users add to a version stay there; a report lists them, and a new version can carry them over. A version that is no longer
declared is removed some days later, once no job uses it.
"""

import json
from collections.abc import Iterable

import pulumi
import pulumi_kubernetes as kubernetes

from components.labels import Manifest, labels, metadata, object_name
from components.objects import config_map, content_name, declare
from components.pods import (
    MUNGE_SOCKET,
    SLURM_UID,
    PodDefaults,
    container,
    empty_volume,
    mount,
    munge_volumes,
    munged,
    pod_template,
    program_command,
    program_mounts,
    program_volumes,
    resources,
    root_context,
    scripts_volume,
)
from components.shared_mounts import build_mount, build_volume, root_mount
from components.workloads import cron_job
from configs.models.cluster import Cluster
from configs.models.shared_root import Root, RootVersion
from configs.render import shared_root
from names import paths, variables

_FILL_S = 4 * 3600
"""Time limit for a large image on a slow volume."""
_CLEAN_AT = "17 3 * * *"
_HOLD = f"{paths.PLUGINS}/hold"
_COPIES = ["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SYS_CHROOT", "SYS_PTRACE"]
"""Capabilities to read another container's root through /proc, write files of any owner and kind, and chroot into a version."""
_INSTALLS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "SETFCAP", "SETGID", "SETUID", "SYS_ADMIN", "SYS_CHROOT"]
"""Capabilities for the scripts of packages, and for the mounts that they expect."""
_NO_USE = 3
"""Exit code of programs after which a retry is useless."""
_TREES_MEMORY = "4Gi"
"""Memory limit of programs that hold the list of all files of a version."""


class SharedRoot(pulumi.ComponentResource):
    """Versions of the root for jobs and logins. A version is filled once; a change of `current` affects no running job."""

    current: pulumi.Output[str]
    """The version for new jobs and sessions."""

    def __init__(
        self, name: str, cluster: Cluster, pods: PodDefaults, root: Root, image: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Versions without their own image or tar are filled from `image`."""
        super().__init__("slipway:index:SharedRoot", name, {}, opts)
        versions, current = shared_root.versions_of(root, image), shared_root.current_of(root, image)
        self.settings = declare(build_settings(cluster), pulumi.ResourceOptions(parent=self))
        filled: dict[str, pulumi.Resource] = {}
        for version in versions.values():
            first = [filled[version.carry_from]] if version.carry_from is not None else []
            filled[version.name] = _declare_job(build_fill(cluster, pods, version), pulumi.ResourceOptions(parent=self, depends_on=first))
        # Depends only on that version: one whose image has disappeared from its registry must not block a rollback.
        ready = filled[current]
        if root.packages:
            install = build_install(cluster, pods, current, root.packages)
            ready = _declare_job(install, pulumi.ResourceOptions(parent=self, depends_on=[ready]))
        _declare_job(build_switch(cluster, pods, current), pulumi.ResourceOptions(parent=self, depends_on=[ready]))
        declare(build_cleaner(cluster, pods, versions, root.keep_days), pulumi.ResourceOptions(parent=self))
        declare(build_report(cluster, pods), pulumi.ResourceOptions(parent=self))
        self.current = pulumi.Output.from_input(current)
        self.register_outputs({"current": self.current})


def settings_name(cluster: str) -> str:
    """The ConfigMap that login pods and workers mount at /etc/slipway/root."""
    return object_name(cluster, "root")


def build_settings(cluster: Cluster) -> Manifest:
    """The ConfigMap with root.conf, and with sudoers if there are admins. It changes in place: the plugin reads it for each job."""
    files = {"root.conf": shared_root.render(cluster, paths.ROOT_SETTINGS, SLURM_UID)}
    if cluster.login.has_admins:
        files[shared_root.SUDOERS] = shared_root.render_sudoers(cluster)
    return config_map(settings_name(cluster.name), cluster.namespace, labels(cluster.name, "root"), files)


def build_fill(cluster: Cluster, pods: PodDefaults, version: RootVersion) -> Manifest:
    """The Job that fills a version from an image's root or a tar. It resumes where an earlier attempt ended."""
    environment = {variables.ROOT_VERSION: version.name}
    if version.tar is not None:
        environment |= {variables.ROOT_TAR: version.tar.url, variables.ROOT_SHA256: version.tar.sha256}
    if version.image is not None:
        environment[variables.ROOT_IMAGE] = version.image
    if version.carry_from is not None:
        environment[variables.ROOT_CARRY_FROM] = version.carry_from
    fill = container(
        pods,
        "fill",
        "",
        [build_mount(root_mount(cluster)), *program_mounts("root_fill", "root_changes")],
        environment,
        command=program_command("root_fill"),
        workingDir=paths.PACKAGES,
        limit=_TREES_MEMORY,
        securityContext=_context(*_COPIES),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        **(_source(pods, version.image) if version.image is not None else {}),
        "containers": [fill],
        "volumes": [
            *(*program_volumes(pods, "root_fill", "root_changes"), build_volume(cluster.name, root_mount(cluster))),
            *([empty_volume("hold")] if version.image is not None else []),
        ],
    }
    return _job(cluster, "root-fill", _retried(pods, "root-fill", pod))


def _source(pods: PodDefaults, image: str) -> Manifest:
    """Fields of a pod with a container of the image, whose root the fill container reads through /proc."""
    hold = mount("hold", "/hold")
    return {
        "shareProcessNamespace": True,
        "initContainers": [
            {**container(pods, "program", "", [hold], securityContext=_context()), "command": ["cp", _HOLD, "/hold/hold"]},
            {
                "name": "source",
                "image": image,
                "imagePullPolicy": pods["pull_policy"],
                "command": ["/hold/hold"],
                "restartPolicy": "Always",
                "resources": resources(("10m", "16Mi"), "64Mi"),
                "volumeMounts": [{**hold, "readOnly": True}],
                "securityContext": _context(),
            },
        ],
    }


def build_install(cluster: Cluster, pods: PodDefaults, current: str, packages: Iterable[str]) -> Manifest:
    """The Job that installs packages in the version `current`, before it becomes current: with apt, from the version's own archives."""
    install = container(
        pods,
        "install",
        "",
        [build_mount(root_mount(cluster)), *program_mounts("root_packages")],
        {variables.ROOT_VERSION: current, variables.ROOT_PACKAGES: " ".join(packages)},
        command=program_command("root_packages"),
        workingDir=paths.PACKAGES,
        limit=_TREES_MEMORY,
        # It mounts the version's /proc and /dev, which the runtimes' AppArmor profiles forbid.
        securityContext={**_context(*_INSTALLS), "appArmorProfile": {"type": "Unconfined"}},
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        "containers": [install],
        "volumes": [*program_volumes(pods, "root_packages"), build_volume(cluster.name, root_mount(cluster))],
    }
    return _job(cluster, "root-packages", _retried(pods, "root-packages", pod))


def build_switch(cluster: Cluster, pods: PodDefaults, current: str) -> Manifest:
    """The Job that makes a version current if it is filled and can run a shell; else it fails, and the old version stays current."""
    switch = container(
        pods,
        "switch",
        "root-switch.sh",
        [build_mount(root_mount(cluster))],
        {variables.ROOT_VERSION: current},
        securityContext=_context("DAC_OVERRIDE", "SYS_CHROOT"),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        "containers": [switch],
        "volumes": [scripts_volume(pods), *program_volumes(pods), build_volume(cluster.name, root_mount(cluster))],
    }
    spec = {"backoffLimit": 0, "activeDeadlineSeconds": _FILL_S, "template": pod_template(pods, "root-switch", pod)}
    return _job(cluster, "root-switch", spec)


def build_cleaner(cluster: Cluster, pods: PodDefaults, versions: Iterable[str], keep_days: int) -> Manifest:
    """The CronJob that removes unused versions once a day, except the declared `versions`. It asks slurmctld which jobs run."""
    cleaner = container(
        pods,
        "clean",
        "",
        [build_mount(root_mount(cluster)), *MUNGE_SOCKET, *program_mounts("root_clean")],
        {
            variables.ROOT_VERSIONS: " ".join(versions),
            variables.ROOT_KEEP_DAYS: str(keep_days),
        },
        command=program_command("root_clean"),
        workingDir=paths.PACKAGES,
        securityContext=_context("DAC_OVERRIDE", "FOWNER"),
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        "initContainers": [munged(pods)],
        "containers": [cleaner],
        "volumes": [
            *(*program_volumes(pods, "munged", "root_clean"), *munge_volumes(pods)),
            build_volume(cluster.name, root_mount(cluster)),
        ],
    }
    return cron_job(pods, "root-clean", pod, _CLEAN_AT, _FILL_S, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=3)


def build_report(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The suspended CronJob of the report: a Job made from it logs what was changed in every version."""
    report = container(
        pods,
        "report",
        "",
        [{**build_mount(root_mount(cluster)), "readOnly": True}, *program_mounts("root_changes")],
        {variables.REPORT: "text"},
        command=program_command("root_changes", "report"),
        workingDir=paths.PACKAGES,
        limit=_TREES_MEMORY,
        securityContext=_context("DAC_READ_SEARCH", "SYS_CHROOT"),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        "containers": [report],
        "volumes": [
            *(*program_volumes(pods, "root_changes"), build_volume(cluster.name, root_mount(cluster))),
        ],
    }
    return cron_job(pods, "root-changes", pod, _CLEAN_AT, _FILL_S, suspend=True)


def _retried(pods: PodDefaults, component: str, pod: Manifest) -> Manifest:
    """The spec of a Job with retries, except after exit code _NO_USE: a name in use, a wrong digest, a package that no archive has."""
    exit_codes = {"containerName": pod["containers"][0]["name"], "operator": "In", "values": [_NO_USE]}
    return {
        "backoffLimit": 6,
        "activeDeadlineSeconds": _FILL_S,
        "template": pod_template(pods, component, pod),
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": exit_codes}]},
    }


def _job(cluster: Cluster, component: str, spec: Manifest) -> Manifest:
    """A Job is immutable, so its name contains a hash of its spec. The next deployment recreates a Job that failed."""
    name = content_name(object_name(cluster.name, component), {"spec": json.dumps(spec, sort_keys=True)})
    annotations = {"pulumi.com/replaceUnready": "true", "pulumi.com/timeoutSeconds": str(_FILL_S)}
    about = metadata(name, cluster.namespace, labels(cluster.name, component), annotations)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}


def _declare_job(job: Manifest, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    return kubernetes.batch.v1.Job(job["metadata"]["name"], metadata=job["metadata"], spec=job["spec"], opts=opts)


def _context(*capabilities: str) -> Manifest:
    return root_context(*capabilities, read_only=False)
