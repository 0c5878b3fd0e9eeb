"""slurmctld and slurmrestd of one cluster. slurm_files.py makes Slurm's files and their JWT key.

There is one slurmctld on its own disk, which is rescheduled quickly: Slurm's own high availability over a shared file system has lost jobs
elsewhere.
"""

import pulumi

from components import network
from components.backup import STATE_PROGRAMS, build_state_backup, build_state_restore, restore_volumes
from components.claims import claim_retention, claim_template
from components.generations import pod_marks
from components.labels import Manifest, jwt_secret_name, labels, object_name, outside_name, slurm_config_name
from components.mail import build_mail, mail_volumes
from components.notify import PROGRAMS as NOTIFY_PROGRAMS
from components.notify import build_notify, build_notify_settings, notify_volumes
from components.objects import CLAIMS, declare
from components.pods import (
    MUNGE_SOCKET,
    SLURM_UID,
    SLURMRESTD_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    daemon_command,
    empty_volume,
    exec_probe,
    http_probe,
    lost_node_tolerations,
    mount,
    munge_volumes,
    munged,
    program_command,
    program_mounts,
    program_volumes,
    scripts_mount,
    scripts_volume,
    secret_volume,
    service,
    tcp_probe,
)
from components.users import users_mount, users_volume
from components.workloads import deployment, stateful_set
from configs.models.cluster import Cluster
from names import paths, ports, variables
from slurm.maintenance import Policy, write_policy

_GRACE_S = 30
"""Time for slurmctld to save its state when it is stopped."""

_REFUSAL_PROBE = exec_probe("sh", "-c", "! cat /tmp/refused 2>/dev/null", periodSeconds=60, timeoutSeconds=10, failureThreshold=2**31 - 1)
"""Fails while slurmctld refuses changed files, so that the kubelet reports its message as an event. Its limit is out of reach, so it never
restarts the container. A readiness probe would block: a StatefulSet rolls no pod that is not ready (Kubernetes' StatefulSet page, "Forced
rollback"). Files that only a newer Slurm can read would keep the newer Slurm out for ever."""

_JOBS_PORTS = {"running-jobs": ports.RUNNING_JOBS, "jobs": ports.QUEUE}
_SLURMCTLD_MEMORY = "64Gi"
"""slurmctld holds all jobs and nodes. A leak should end slurmctld, which restarts with its queue, rather than its machine."""
_REST_MEMORY = "2Gi"
"""Enough for slurmrestd to list 10,000 nodes several times at once. Above it the container restarts, and the controller waits."""
_JOBS_MEMORY = "8Gi"
"""Six squeues with at most 1 GiB each, and their parsed output."""


def build_policy(cluster: Cluster) -> Policy:
    """The program's policy, from the config's `maintenance`. With `jobRequeue: false`, only jobs that declare it can be requeued, so
    "Declared" becomes "Allowed"."""
    maintenance = cluster.maintenance
    return Policy(
        warn_before_s=maintenance.warn_before_s,
        requeue_before_s=maintenance.requeue_before_s,
        signal="" if maintenance.signal == "none" else maintenance.signal,
        requeue="Allowed" if maintenance.requeue == "Declared" and not cluster.slurm.job_requeue else maintenance.requeue,
        comment_word=maintenance.comment_word,
        reservation_prefix=maintenance.reservation_prefix,
    )


class SlurmControlPlane(pulumi.ComponentResource):
    """slurmctld (one pod with its own disk) and slurmrestd. A change of image or scripts restarts both, one of Slurm's files neither."""

    slurmctld_address: pulumi.Output[str]
    """Host and port of slurmctld inside the cluster; HTTP too: /livez, /readyz, /metrics."""
    rest_url: pulumi.Output[str]
    """URL of slurmrestd inside the cluster; it requires a JWT."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:SlurmControlPlane", name, {}, opts)
        plain = pulumi.ResourceOptions(parent=self)
        priority = declare(build_priority_class(cluster.name, cluster.namespace), plain)
        declare(service(pods, "slurmctld", ports.SLURMCTLD, headless=True), plain)
        protecting = pulumi.ResourceOptions(
            parent=self, protect=cluster.deletion_protection, depends_on=[priority], ignore_changes=[CLAIMS]
        )
        if receivers := cluster.notifications.receivers:
            declare(build_notify_settings(cluster.name, cluster.namespace, receivers), plain)
        for component in ("slurmctld", "slurmrestd"):
            declare(network.policy(pods, component), plain)
        declare(build_slurmctld(cluster, pods), protecting)
        declare(build_rest_service(pods), plain)
        declare(build_slurmrestd(cluster, pods), pulumi.ResourceOptions(parent=self, depends_on=[priority]))
        address = f"{object_name(cluster.name, 'slurmctld')}.{cluster.namespace}:{ports.SLURMCTLD}"
        self.slurmctld_address, self.rest_url = pulumi.Output.from_input(address), pulumi.Output.from_input(rest_url(cluster))
        self.register_outputs({"slurmctld_address": self.slurmctld_address, "rest_url": self.rest_url})


def rest_url(cluster: Cluster) -> str:
    """URL of slurmrestd inside the Kubernetes cluster."""
    return f"http://{object_name(cluster.name, 'slurmrestd')}.{cluster.namespace}:{ports.SLURMRESTD}"


def priority_class_name(cluster: str, namespace: str) -> str:
    """The control plane's PriorityClass. It has no namespace, so its name contains it."""
    return outside_name(namespace, object_name(cluster, "control-plane"))


def build_priority_class(cluster: str, namespace: str) -> Manifest:
    """The PriorityClass: above the pods of jobs, below Kubernetes' system classes."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class_name(cluster, namespace), "labels": labels(cluster, "slurmctld")},
        "value": 1_000_000,
        "description": "Control plane of a Slurm cluster: without it no job starts.",
    }


def build_slurmctld(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The StatefulSet of slurmctld: one replica, so its pod is `<cluster>-slurmctld-0`."""
    return stateful_set(
        pods,
        "slurmctld",
        _slurmctld_pod(cluster, pods),
        pod_marks(jwt=cluster.keys.jwt),
        volumeClaimTemplates=[claim_template("state", cluster.storage.state)],
        persistentVolumeClaimRetentionPolicy=claim_retention(cluster.deletion_protection),
    )


def _slurmctld_pod(cluster: Cluster, pods: PodDefaults) -> Manifest:
    config, state = mount("config", paths.SLURM, read_only=True), mount("state", paths.SLURMCTLD)
    users = users_mount(cluster)
    backup, mail, receivers = cluster.backup, cluster.notifications.smtp, cluster.notifications.receivers
    slurmctld = container(
        pods,
        "slurmctld",
        "",
        [
            *(config, users, *MUNGE_SOCKET, state, mount("jwt", paths.JWT, read_only=True)),
            *(mount("run", "/run"), mount("tmp", "/tmp")),  # noqa: S108 - a mount of the pod's own
            # slurmctld runs the scripts of PrologSlurmctld and MailProg.
            *(*program_mounts("slurmctld", *(("mail",) if mail else ())), scripts_mount()),
        ],
        {variables.KEY_SPREAD_S: str(cluster.keys.spread_s)},
        requests=("100m", "128Mi"),
        limit=_SLURMCTLD_MEMORY,
        command=daemon_command("slurmctld"),
        workingDir=paths.PACKAGES,
        ports=[{"name": "slurmctld", "containerPort": ports.SLURMCTLD}],
        securityContext=confined(SLURM_UID),
        # After a rotation of the munge key it waits until the other pods have it.
        startupProbe=http_probe(ports.SLURMCTLD, "/livez", periodSeconds=1, failureThreshold=300 + cluster.keys.spread_s),
        livenessProbe=http_probe(ports.SLURMCTLD, "/livez", periodSeconds=10, timeoutSeconds=10, failureThreshold=6),
        readinessProbe=http_probe(ports.SLURMCTLD, "/readyz", periodSeconds=2, timeoutSeconds=5),
    )
    reconfigure = container(
        pods,
        "reconfigure",
        "",
        # The state's disk has the files that slurmctld runs with. New files are copied there once no job would lose its node.
        [config, users, *MUNGE_SOCKET, state, mount("reconfigure-tmp", "/tmp"), *program_mounts("config_sync")],  # noqa: S108
        requests=("10m", "16Mi"),
        command=program_command("config_sync"),
        workingDir=paths.PACKAGES,
        ports=[{"name": "files", "containerPort": ports.CONFIG_SYNC}],
        securityContext=confined(SLURM_UID),
        livenessProbe=_REFUSAL_PROBE,
    )
    checks = container(
        pods,
        "checks",
        "",
        [config, *MUNGE_SOCKET, *program_mounts("node_checks")],
        {"SLURM_CONF": paths.SLURM_CONF},
        command=program_command("node_checks", module="collect"),
        workingDir=paths.PACKAGES,
        ports=[{"name": "checks", "containerPort": ports.CHECKS}],
        # SlurmUser: only Slurm's own user and root may drain nodes.
        securityContext=confined(SLURM_UID),
        livenessProbe=http_probe(ports.PROBE, "/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
    )
    maintenance = container(
        pods,
        "maintenance",
        "",
        [config, *MUNGE_SOCKET, *program_mounts("maintenance")],
        {"SLURM_CONF": paths.SLURM_CONF},
        requests=("10m", "16Mi"),
        command=program_command("maintenance", write_policy(build_policy(cluster))),
        workingDir=paths.PACKAGES,
        # SlurmUser: only Slurm's own user and root may requeue users' jobs.
        securityContext=confined(SLURM_UID),
    )
    warns = cluster.maintenance.enabled
    programs = (
        "munged",
        "slurmctld",
        "config_sync",
        "node_checks",
        *(STATE_PROGRAMS if backup else ()),
        *(NOTIFY_PROGRAMS if receivers else ("mail",) if mail else ()),
        *(("maintenance",) if warns else ()),
    )
    return {
        "terminationGracePeriodSeconds": _GRACE_S,
        "priorityClassName": priority_class_name(cluster.name, cluster.namespace),
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        # This group may write the claim and read the JWT key.
        "securityContext": {"fsGroup": SLURM_UID, "fsGroupChangePolicy": "OnRootMismatch"},
        "initContainers": [munged(pods), *(build_state_restore(pods, backup, state) if backup else [])],
        "containers": [
            *(slurmctld, reconfigure, checks),
            *([build_state_backup(pods, backup, state)] if backup else []),
            *([build_mail(pods, mail, state)] if mail else []),
            *([build_notify(pods, receivers, state, users)] if receivers else []),
            *([maintenance] if warns else []),
        ],
        "volumes": [
            config_volume("config", slurm_config_name(cluster.name)),
            users_volume(cluster),
            secret_volume("jwt", jwt_secret_name(cluster.name)),
            *(empty_volume("run"), empty_volume("tmp"), empty_volume("reconfigure-tmp")),
            *(scripts_volume(pods), *program_volumes(pods, *programs), *munge_volumes(pods)),
            *(restore_volumes(pods, backup) if backup else []),
            *(mail_volumes(mail) if mail else []),
            *(notify_volumes(pods, receivers) if receivers else []),
        ],
    }


def build_rest_service(pods: PodDefaults) -> Manifest:
    """The Service of slurmrestd and of the program that lists running jobs."""
    service_ports = [
        {"name": name, "port": port, "targetPort": port} for name, port in ({"slurmrestd": ports.SLURMRESTD} | _JOBS_PORTS).items()
    ]
    return service(pods, "slurmrestd", ports.SLURMRESTD, ports=service_ports)


def build_slurmrestd(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The Deployment of slurmrestd. Slurm requires a user that is neither root nor SlurmUser. It has no key, not even munge's.

    Beside it runs the program that lists running jobs, with the same user and no key either.
    """
    config, users = mount("config", paths.SLURM, read_only=True), users_mount(cluster)
    running_jobs = container(
        pods,
        "jobs",
        "",
        [config, users, *program_mounts("running_jobs")],
        {"SLURM_CONF": paths.SLURM_CONF},
        command=program_command("running_jobs"),
        workingDir=paths.PACKAGES,
        ports=[{"name": name, "containerPort": port} for name, port in _JOBS_PORTS.items()],
        securityContext=confined(SLURMRESTD_UID),
        requests=("10m", "32Mi"),
        limit=_JOBS_MEMORY,
    )
    slurmrestd = container(
        pods,
        "slurmrestd",
        "slurmrestd.sh",
        [config, users, mount("tmp", "/tmp")],  # noqa: S108
        ports=[{"name": "slurmrestd", "containerPort": ports.SLURMRESTD}],
        requests=("10m", "64Mi"),
        limit=_REST_MEMORY,
        securityContext=confined(SLURMRESTD_UID),
        readinessProbe=tcp_probe(ports.SLURMRESTD, periodSeconds=2),
        livenessProbe=tcp_probe(ports.SLURMRESTD, periodSeconds=10, failureThreshold=6, initialDelaySeconds=60),
    )
    pod: Manifest = {
        "terminationGracePeriodSeconds": 5,  # it has nothing to save, and ignores SIGTERM
        "priorityClassName": priority_class_name(cluster.name, cluster.namespace),
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "containers": [slurmrestd, running_jobs],
        "volumes": [
            config_volume("config", slurm_config_name(cluster.name)),
            users_volume(cluster),
            empty_volume("tmp"),
            *(scripts_volume(pods), *program_volumes(pods, "running_jobs")),
        ],
    }
    return deployment(pods, "slurmrestd", pod)
