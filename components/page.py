"""The web page of one cluster, and its rights. What it shows is in controllers/page."""

from typing import Any, TypedDict

import pulumi

from components import api_programs, network
from components.labels import Manifest, object_name
from components.objects import declare
from components.pods import CLUSTER_DOMAIN, PodDefaults, mount, secret_volume, service
from configs.models.cluster import Cluster
from configs.render.slurm import private_data
from names import paths, ports, variables

COMPONENT = "page"
"""Tail of its objects' names: `<cluster>-page`."""
PORT = 80
"""Of its Service."""
_MEMORY = "1Gi"
"""A bound for a leak: a snapshot of 5,000 nodes and 10,000 jobs is below 4 MB, in a few copies."""
_HIDEABLE = ("jobs", "nodes")


class PageArgs(TypedDict):
    """What the page needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share; the image is the controllers' own."""
    jwt_secret: str
    """Name of the Secret whose `jwt_hs256.key` signs tokens."""
    hidden: list[str]
    """`jobs` and `nodes`, where `page.hide` or Slurm's PrivateData hides them."""
    hosts: list[str]
    """Host names by which browsers reach the page, its Service's own among them."""


def page_args(cluster: Cluster, pods: PodDefaults, image: str) -> PageArgs:
    return {
        "pods": {**pods, "image": image},
        "jwt_secret": object_name(cluster.name, "jwt"),
        "hidden": hidden(cluster),
        "hosts": [*service_names(object_name(cluster.name, COMPONENT), cluster.namespace), *(cluster.page.hosts if cluster.page else ())],
    }


def service_names(name: str, namespace: str) -> list[str]:
    """By which pods find a Service. Source: Kubernetes, "DNS for Services and Pods"."""
    return [name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.{CLUSTER_DOMAIN}"]


def hidden(cluster: Cluster) -> list[str]:
    """What `page.hide` and PrivateData hide of jobs and nodes. Slurm looks for the words `job`, `node` and `all` in PrivateData."""
    asked = cluster.page.hide if cluster.page is not None else ()
    said = private_data(cluster)
    return [one for one in _HIDEABLE if one in asked or one[:-1] in said or "all" in said]


class StatusPage(pulumi.ComponentResource):
    """One pod that shows the cluster in a browser, and its Service. While it is away nobody sees the page, and nothing else happens."""

    def __init__(self, name: str, args: PageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:StatusPage", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = [declare(manifest, child) for manifest in (build_service_account(args), *build_roles(args), build_network_policy(args))]
        declare(build_service(args), child)
        declare(build_deployment(args), pulumi.ResourceOptions(parent=self, depends_on=made))
        self.register_outputs({})


def rights() -> list[dict[str, Any]]:
    """The table of what the page may do in the cluster's namespace: `group`, `resource`, `verbs` and `why`."""
    return api_programs.rights_table("page_rbac.yaml")


def build_service_account(args: PageArgs) -> Manifest:
    """The ServiceAccount of the page."""
    return api_programs.service_account(args["pods"], COMPONENT)


def build_roles(args: PageArgs) -> list[Manifest]:
    """The Role for the cluster's namespace, and its binding."""
    pods = args["pods"]
    return api_programs.bound_role(pods, COMPONENT, "Role", api_programs.about(pods, COMPONENT), rights())


def build_network_policy(args: PageArgs) -> Manifest:
    """Out: names, the API server, and the program beside slurmrestd."""
    pods = args["pods"]
    slurmrestd = network.egress_to(pods["cluster"], "slurmrestd", ports.RUNNING_JOBS)
    return api_programs.network_policy(pods, COMPONENT, [slurmrestd])


def build_service(args: PageArgs) -> Manifest:
    """The Service `<cluster>-page`, inside the cluster only: an ssh tunnel of a login pod ends there, or a proxy stands before it."""
    return service(args["pods"], COMPONENT, PORT, ports=[{"name": "http", "port": PORT, "targetPort": ports.CONTROLLER}])


def build_deployment(args: PageArgs) -> Manifest:
    """The Deployment of the page: one replica, which alone has the last day; the old one goes first."""
    pods = args["pods"]
    pod = api_programs.pod(
        pods,
        COMPONENT,
        _page(args),
        [secret_volume("jwt", args["jwt_secret"])],
        # The group that may read the JWT key.
        securityContext={"fsGroup": api_programs.CONTROLLER_UID},
    )
    return api_programs.deployment(pods, COMPONENT, pod, strategy={"type": "Recreate"})


def _page(args: PageArgs) -> Manifest:
    pods = args["pods"]
    cluster, namespace = pods["cluster"], pods["namespace"]
    env = {
        variables.SLURMRESTD: f"http://{object_name(cluster, 'slurmrestd')}.{namespace}:{ports.SLURMRESTD}",
        variables.JWT_KEY: paths.JWT_KEY,
        variables.HISTORY: "/tmp/history.json",  # noqa: S108 - a mount of the pod's own
        variables.HOSTS: ",".join(args["hosts"]),
        **({variables.HIDDEN: ",".join(args["hidden"])} if args["hidden"] else {}),
    }
    return api_programs.container(
        pods,
        "page",
        "controllers.page",
        env,
        requests=("10m", "64Mi"),
        memory=_MEMORY,
        mounts=[mount("jwt", paths.JWT, read_only=True)],
        port_name="http",
        knows_its_name=False,
    )
