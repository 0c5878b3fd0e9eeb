"""Where people log in: sshd with keys only, the same homes and shared root as the workers, Slurm's clients.

Who may log in travels in two ConfigMaps made elsewhere, or in a folder of the shared volume, so that a new user arrives in a minute and
rolls nothing.
"""

from typing import NotRequired, TypedDict

import pulumi

from components.generations import SEED_LENGTH, ignored, random_text
from components.host_keys import key_data, node_secret_name
from components.labels import Manifest, labels, metadata, object_name, selector
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
    pod_template,
    program_mounts,
    program_volumes,
    secret_volume,
)
from components.shared_mounts import SharedMount, build_mount, build_volume, shared_mounts
from components.shared_root import settings_name
from components.users import identity_volume, keys_mount, user_keys_name, users_mount, users_name
from configs.models.cluster import Cluster
from configs.render import login
from names import paths, ports, variables

_LEAVE_S = 30
"""Seconds that a pod gets to end, on top of what its sessions get."""


class LoginServiceArgs(TypedDict):
    """How sshd is reached from outside."""

    type: str
    """ClusterIP, NodePort or LoadBalancer."""
    node_port: NotRequired[int]
    """The port on every node; Kubernetes chooses where left out."""
    annotations: dict[str, str]
    """Annotations for a cloud's load balancer."""
    source_ranges: list[str]
    """Networks that may connect to a load balancer; all where empty."""


class LoginNodesArgs(TypedDict):
    """What login nodes need to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    replicas: int
    """How many login pods."""
    service: LoginServiceArgs
    """How they are reached."""
    users: str
    """Name of the ConfigMap with passwd, group and shadow."""
    user_keys: str
    """Name of the ConfigMap with each user's public keys, under the user's name."""
    identity: NotRequired[SharedMount]
    """The shared volume, one of `mounts`, where users come from LDAP: from its folder `identity` instead of the ConfigMaps."""
    mounts: list[SharedMount]
    """Shared folders, homes among them."""
    root: NotRequired[str]
    """ConfigMap with the settings of the versioned root, where sessions see that root."""
    home_keys: bool
    """True: keys in users' homes count beside the others."""
    has_admins: bool
    """True: somebody may use sudo in a session, so setuid programs get their rights."""
    node_host_keys: NotRequired[str]
    """Secret with the workers' host key, where users may go to workers with ssh."""
    settings: dict[str, str]
    """Files that are read at each login: `banner`, and `limits` of each user."""
    drain_grace_s: int
    """Seconds that a pod which has to go waits for its open sessions."""
    deletion_protection: bool
    """True: the host key cannot be deleted by a change of the stack."""


def login_args(cluster: Cluster, pods: PodDefaults) -> LoginNodesArgs:
    said = cluster.login.service
    service: LoginServiceArgs = {"type": said.type, "annotations": dict(said.annotations), "source_ranges": list(said.source_ranges)}
    if said.node_port is not None:
        service["node_port"] = said.node_port
    made: LoginNodesArgs = {
        "pods": pods,
        "replicas": cluster.login.replicas,
        "service": service,
        "users": users_name(cluster.name),
        "user_keys": user_keys_name(cluster.name),
        "mounts": shared_mounts(cluster, cluster.storage.mounts),
        "home_keys": cluster.login.home_keys,
        "has_admins": cluster.login.has_admins,
        "settings": login.render(cluster),
        "drain_grace_s": cluster.login.drain_grace_s,
        "deletion_protection": cluster.deletion_protection,
    }
    if (identity := identity_volume(cluster)) is not None:
        made["identity"] = identity
    if cluster.storage.root is not None:
        made["root"] = settings_name(cluster.name)
    if cluster.login.ssh_to_nodes:
        made["node_host_keys"] = node_secret_name(cluster.name)
    return made


class LoginNodes(pulumi.ComponentResource):
    """sshd on one or more pods behind one Service, all with one host key. A change of image or programs rolls them: a pod
    that goes takes no new sessions, and ends when its own have ended or their time is over. Banner and limits roll nothing."""

    ssh_command: pulumi.Output[str]
    """How to log in, with `USER` for the user's name, and `NODE` for any node's address where only nodes answer."""

    def __init__(self, name: str, args: LoginNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:LoginNodes", name, {}, opts)
        cluster, namespace = args["pods"]["cluster"], args["pods"]["namespace"]
        kept = pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"])
        secret_name = object_name(cluster, "login-host-keys")
        seed = random_text(f"{secret_name}-seed", SEED_LENGTH, kept)
        lasting = pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"], ignore_changes=ignored())
        host_keys = declare(secret(secret_name, namespace, labels(cluster, "login"), key_data(seed)), lasting)
        settings = declare(build_settings(args), pulumi.ResourceOptions(parent=self))
        declare(build_service(args), pulumi.ResourceOptions(parent=self))
        declare(build_deployment(args), pulumi.ResourceOptions(parent=self, depends_on=[host_keys, settings]))
        self.ssh_command = pulumi.Output.from_input(ssh_command(args))
        self.register_outputs({"ssh_command": self.ssh_command})


def ssh_command(args: LoginNodesArgs) -> str:
    """How to log in, as far as it is known before anything runs."""
    name, namespace, service = object_name(args["pods"]["cluster"], "login"), args["pods"]["namespace"], args["service"]
    if service["type"] == "NodePort":
        port = service.get("node_port")
        found = str(port) if port else f"$(kubectl -n {namespace} get service {name} -o jsonpath='{{.spec.ports[0].nodePort}}')"
        return f"ssh -p {found} USER@NODE"
    if service["type"] == "LoadBalancer":
        return f"ssh USER@$(kubectl -n {namespace} get service {name} -o jsonpath='{{.status.loadBalancer.ingress[0].*}}')"
    return f"kubectl -n {namespace} port-forward service/{name} 2222:22 & ssh -p 2222 USER@localhost"


def build_service(args: LoginNodesArgs) -> Manifest:
    """The Service in front of sshd. It is not waited for: the provider waits for a Service's pods, which are declared after it."""
    cluster, wanted = args["pods"]["cluster"], args["service"]
    port: Manifest = {"name": "ssh", "port": 22, "targetPort": ports.LOGIN_SSH}
    if "node_port" in wanted:
        port["nodePort"] = wanted["node_port"]
    spec: Manifest = {"type": wanted["type"], "selector": selector(cluster, "login"), "ports": [port]}
    if wanted["source_ranges"]:
        spec["loadBalancerSourceRanges"] = wanted["source_ranges"]
    annotations = {**wanted["annotations"], **SKIP_AWAIT}
    about = metadata(object_name(cluster, "login"), args["pods"]["namespace"], labels(cluster, "login"), annotations)
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}


def build_settings(args: LoginNodesArgs) -> Manifest:
    """What sessions read at login. Under a fixed name and mutable: a change counts from the next login, and ends nobody's session."""
    cluster = args["pods"]["cluster"]
    return config_map(object_name(cluster, "login-settings"), args["pods"]["namespace"], labels(cluster, "login"), args["settings"])


def build_deployment(args: LoginNodesArgs) -> Manifest:
    """The Deployment of the login pods: a new pod is ready before an old pod goes."""
    pods = args["pods"]
    cluster = pods["cluster"]
    spec: Manifest = {
        "replicas": args["replicas"],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "selector": {"matchLabels": selector(cluster, "login")},
        "template": pod_template(pods, "login", _pod(args)),
    }
    about = metadata(object_name(cluster, "login"), pods["namespace"], labels(cluster, "login"))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec}


def _pod(args: LoginNodesArgs) -> Manifest:
    pods = args["pods"]
    sshd = container(
        pods,
        "login",
        "",
        [
            *(users_mount(args.get("identity")), keys_mount(args.get("identity"))),
            *(mount("host-keys", paths.HOST_KEYS, read_only=True), mount("run", paths.SLURM_RUN), *MUNGE_SOCKET),
            *(mount("settings", paths.LOGIN, read_only=True), *program_mounts("login")),
            *([mount("node-host-keys", paths.NODE_HOST_KEYS, read_only=True)] if "node_host_keys" in args else []),
            *(build_mount(source) for source in args["mounts"]),
            *([mount("root", paths.ROOT_SETTINGS, read_only=True)] if "root" in args else []),
        ],
        {variables.DRAIN_GRACE_S: str(args["drain_grace_s"]), **({variables.HOME_KEYS: "1"} if args["home_keys"] else {})},
        requests=("50m", "128Mi"),
        limit="",  # its memory is that of its users' sessions, which have limits each
        command=daemon_command("login"),
        workingDir=paths.PACKAGES,
        ports=[{"name": "ssh", "containerPort": ports.LOGIN_SSH}],
        terminationMessagePath=TERMINATION_LOG,
        securityContext=_security_context(args),
        readinessProbe=exec_probe("bash", "-c", f"[[ $(ss -Hltn 'sport = :{ports.LOGIN_SSH}') ]]", periodSeconds=3),
    )
    return {
        # What users see in their prompt: all replicas are one machine to them.
        "hostname": object_name(pods["cluster"], "login"),
        "securityContext": LOW_PORTS_ARE_ROOTS,
        "terminationGracePeriodSeconds": args["drain_grace_s"] + _LEAVE_S,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(pods["cluster"], "login")},
            }
        ],
        # A job's AllocNode is the name of the address that the user's credential came from. Pods share no name in DNS, and have none
        # while they are not ready; the Service's address has its name in every cluster DNS, at all times.
        "initContainers": [munged(pods, origin=f"{object_name(pods['cluster'], 'login')}.{pods['namespace']}.svc")],
        "containers": [sshd],
        "volumes": [
            *([] if "identity" in args else [config_volume("users", args["users"]), config_volume("user-keys", args["user_keys"])]),
            *(secret_volume("host-keys", object_name(pods["cluster"], "login-host-keys"), mode=0o400), empty_volume("run")),
            config_volume("settings", object_name(pods["cluster"], "login-settings")),
            *([secret_volume("node-host-keys", args["node_host_keys"], mode=0o400)] if "node_host_keys" in args else []),
            *(*program_volumes(pods, "munged", "login"), *munge_volumes(pods)),
            *(build_volume(pods["cluster"], source) for source in args["mounts"]),
            *([config_volume("root", args["root"])] if "root" in args else []),
        ],
    }


_SSHD_CONTEXT: Manifest = {
    # sshd starts as root, becomes the user who logs in, and keeps its unprivileged part in an empty root. Homes are made and given away.
    "runAsUser": 0,
    "allowPrivilegeEscalation": False,
    "capabilities": {
        "drop": ["ALL"],
        "add": ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SYS_CHROOT"],
    },
    "seccompProfile": {"type": "RuntimeDefault"},
}

_ADMINS = ["FSETID", "SETFCAP", "SETPCAP"]
"""What installing packages takes on top, and what binds sessions to fewer capabilities than the pod has."""


def _security_context(args: LoginNodesArgs) -> Manifest:
    if "root" not in args:
        return _SSHD_CONTEXT
    return {
        # A session gets a mount namespace and another root, which the runtimes' own profiles forbid. Source: docs/security.md.
        **_SSHD_CONTEXT,
        "allowPrivilegeEscalation": args["has_admins"],
        "capabilities": {
            "drop": ["ALL"],
            "add": sorted([*_SSHD_CONTEXT["capabilities"]["add"], "SYS_ADMIN", *(_ADMINS if args["has_admins"] else [])]),
        },
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
    }
