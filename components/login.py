"""The login nodes: sshd with keys only, Slurm's clients, and the same homes and shared root as the workers.

Users come from two ConfigMaps (users.py) or a folder of the shared volume, so a new user needs a minute and no rollout.
"""

import pulumi

from components.generations import SEED_LENGTH, ignored, random_text
from components.host_keys import key_data, node_secret_name
from components.labels import Manifest, component_metadata, labels, object_name, selector
from components.objects import SKIP_AWAIT, config_map, declare, secret
from components.pods import (
    LOW_PORTS_ARE_ROOTS,
    MUNGE_SOCKET,
    TERMINATION_LOG,
    PodDefaults,
    config_volume,
    container,
    daemon_command,
    empty_volume,
    exec_probe,
    mount,
    munge_volumes,
    munged,
    program_mounts,
    program_volumes,
    secret_volume,
)
from components.shared_mounts import build_mount, build_volume, shared_mounts
from components.shared_root import settings_name
from components.users import keys_mount, user_keys_name, users_mount, users_name
from components.workloads import deployment
from configs.models.cluster import Cluster
from configs.render import login
from names import paths, ports, variables

_LEAVE_S = 30
"""Time for a pod to end, on top of the time for its sessions."""


class LoginNodes(pulumi.ComponentResource):
    """sshd on one or more pods behind one Service, all with one host key. A change of image or programs rolls them. An old pod accepts no
    new sessions, and ends when its sessions have ended or their time is over. A change of banner or limits rolls nothing."""

    ssh_command: pulumi.Output[str]
    """How to log in, with `USER` for the user's name, and `NODE` for a node's address if the Service has only a node port."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:LoginNodes", name, {}, opts)
        protected = cluster.deletion_protection
        secret_name = object_name(cluster.name, "login-host-keys")
        seed = random_text(f"{secret_name}-seed", SEED_LENGTH, pulumi.ResourceOptions(parent=self, protect=protected))
        lasting = pulumi.ResourceOptions(parent=self, protect=protected, ignore_changes=ignored())
        host_keys = declare(secret(secret_name, cluster.namespace, labels(cluster.name, "login"), key_data(seed)), lasting)
        settings = declare(build_settings(cluster), pulumi.ResourceOptions(parent=self))
        declare(build_service(cluster), pulumi.ResourceOptions(parent=self))
        declare(build_deployment(cluster, pods), pulumi.ResourceOptions(parent=self, depends_on=[host_keys, settings]))
        self.ssh_command = pulumi.Output.from_input(ssh_command(cluster))
        self.register_outputs({"ssh_command": self.ssh_command})


def ssh_command(cluster: Cluster) -> str:
    """How to log in. `kubectl` in the command looks up values that only the deployment knows; `NODE` stands for the address of a node."""
    name, namespace, service = object_name(cluster.name, "login"), cluster.namespace, cluster.login.service
    if service.type == "NodePort":
        port = service.node_port or f"$(kubectl -n {namespace} get service {name} -o jsonpath='{{.spec.ports[0].nodePort}}')"
        return f"ssh -p {port} USER@NODE"
    if service.type == "LoadBalancer":
        return f"ssh USER@$(kubectl -n {namespace} get service {name} -o jsonpath='{{.status.loadBalancer.ingress[0].*}}')"
    return f"kubectl -n {namespace} port-forward service/{name} 2222:22 & ssh -p 2222 USER@localhost"


def build_service(cluster: Cluster) -> Manifest:
    """The Service of sshd. The provider must not wait for it: it would wait for the pods, which are declared later."""
    service = cluster.login.service
    port: Manifest = {"name": "ssh", "port": 22, "targetPort": ports.LOGIN_SSH}
    if service.node_port is not None:
        port["nodePort"] = service.node_port
    spec: Manifest = {"type": service.type, "selector": selector(cluster.name, "login"), "ports": [port]}
    if service.source_ranges:
        spec["loadBalancerSourceRanges"] = [*service.source_ranges]
    about = component_metadata(cluster.name, cluster.namespace, "login", {**service.annotations, **SKIP_AWAIT})
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def build_settings(cluster: Cluster) -> Manifest:
    """The settings of sessions. The ConfigMap is mutable: a change takes effect at the next login, and ends no session."""
    name = object_name(cluster.name, "login-settings")
    return config_map(name, cluster.namespace, labels(cluster.name, "login"), login.render(cluster))


def build_deployment(cluster: Cluster, pods: PodDefaults) -> Manifest:
    """The Deployment of the login pods: a new pod is ready before an old one stops."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    return deployment(pods, "login", _pod(cluster, pods), replicas=cluster.login.replicas, strategy=strategy)


def _pod(cluster: Cluster, pods: PodDefaults) -> Manifest:
    mounts = shared_mounts(cluster, cluster.storage.mounts)
    has_root, ssh_to_nodes = cluster.storage.root is not None, cluster.login.ssh_to_nodes
    users = [config_volume("users", users_name(cluster.name)), config_volume("user-keys", user_keys_name(cluster.name))]
    drain_grace_s = cluster.login.drain_grace_s
    sshd = container(
        pods,
        "login",
        "",
        [
            *(users_mount(cluster), keys_mount(cluster)),
            *(mount("host-keys", paths.HOST_KEYS, read_only=True), mount("run", paths.SLURM_RUN), *MUNGE_SOCKET),
            *(mount("settings", paths.LOGIN, read_only=True), *program_mounts("login")),
            *([mount("node-host-keys", paths.NODE_HOST_KEYS, read_only=True)] if ssh_to_nodes else []),
            *(build_mount(shared) for shared in mounts),
            *([mount("root", paths.ROOT_SETTINGS, read_only=True)] if has_root else []),
        ],
        {variables.DRAIN_GRACE_S: str(drain_grace_s), **({variables.HOME_KEYS: "1"} if cluster.login.home_keys else {})},
        requests=("50m", "128Mi"),
        limit="",  # sessions need the memory, and each has its own limit
        command=daemon_command("login"),
        workingDir=paths.PACKAGES,
        ports=[{"name": "ssh", "containerPort": ports.LOGIN_SSH}],
        terminationMessagePath=TERMINATION_LOG,
        securityContext=_security_context(has_root, cluster.login.has_admins),
        readinessProbe=exec_probe("bash", "-c", f"[[ $(ss -Hltn 'sport = :{ports.LOGIN_SSH}') ]]", periodSeconds=3),
    )
    return {
        # Users see it in their prompt: all replicas look like one machine.
        "hostname": object_name(cluster.name, "login"),
        "securityContext": LOW_PORTS_ARE_ROOTS,
        "terminationGracePeriodSeconds": drain_grace_s + _LEAVE_S,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(cluster.name, "login")},
            }
        ],
        # A job's AllocNode is the DNS name of the address in the user's credential. Pods have no common name, and none while they are not
        # ready; the Service's address always has its name in every cluster DNS.
        "initContainers": [munged(pods, origin=f"{object_name(cluster.name, 'login')}.{cluster.namespace}.svc")],
        "containers": [sshd],
        "volumes": [
            *(users if cluster.login.ldap is None else []),
            *(secret_volume("host-keys", object_name(cluster.name, "login-host-keys"), mode=0o400), empty_volume("run")),
            config_volume("settings", object_name(cluster.name, "login-settings")),
            *([secret_volume("node-host-keys", node_secret_name(cluster.name), mode=0o400)] if ssh_to_nodes else []),
            *(*program_volumes(pods, "munged", "login"), *munge_volumes(pods)),
            *(build_volume(cluster.name, shared) for shared in mounts),
            *([config_volume("root", settings_name(cluster.name))] if has_root else []),
        ],
    }


_SSHD_CONTEXT: Manifest = {
    # sshd starts as root, becomes the user who logs in, and keeps its unprivileged part in an empty root. Homes are created and chowned.
    "runAsUser": 0,
    "allowPrivilegeEscalation": False,
    "capabilities": {
        "drop": ["ALL"],
        "add": ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SYS_CHROOT"],
    },
    "seccompProfile": {"type": "RuntimeDefault"},
}

_ADMINS = ["FSETID", "SETFCAP", "SETPCAP"]
"""More capabilities, to install packages, and to give sessions fewer capabilities than the pod has."""


def _security_context(has_root: bool, has_admins: bool) -> Manifest:
    if not has_root:
        return _SSHD_CONTEXT
    return {
        # A session gets a mount namespace and another root, which the runtimes' own profiles forbid. Source: docs/explain/security.md.
        **_SSHD_CONTEXT,
        "allowPrivilegeEscalation": has_admins,
        "capabilities": {
            "drop": ["ALL"],
            "add": sorted([*_SSHD_CONTEXT["capabilities"]["add"], "SYS_ADMIN", *(_ADMINS if has_admins else [])]),
        },
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
    }
