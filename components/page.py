"""The web page of one cluster, and its rights. Its code is in controllers/page."""

from pathlib import Path
from typing import Any

import pulumi

from components import api_programs, network
from components.control_plane import rest_url
from components.labels import Manifest, jwt_secret_name, object_name
from components.objects import declare
from components.pods import CLUSTER_DOMAIN, PodDefaults, mount, secret_volume, service
from components.workloads import deployment
from configs.models.cluster import Cluster
from configs.models.page import Page
from configs.render.slurm import private_data
from controllers.page.settings import HIDEABLE, Settings, to_environment
from names import paths, ports

COMPONENT = "page"
"""Tail of its objects' names: `<cluster>-page`."""
PORT = 80
"""The port of its Service."""
_MEMORY = "1Gi"
"""A limit for leaks: a snapshot of 5,000 nodes and 10,000 jobs is below 4 MB, in a few copies."""


def service_names(name: str, namespace: str) -> list[str]:
    """The DNS names of a Service. Source: Kubernetes, "DNS for Services and Pods"."""
    return [name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.{CLUSTER_DOMAIN}"]


def hosts(cluster: Cluster, page: Page) -> tuple[str, ...]:
    """Host names that browsers may use for the page: those of its Service, and `page.hosts`."""
    return (*service_names(object_name(cluster.name, COMPONENT), cluster.namespace), *page.hosts)


def hidden(cluster: Cluster, page: Page) -> frozenset[str]:
    """The kinds that `page.hide` or PrivateData hide. Slurm looks for the words `job`, `node` and `all` in PrivateData."""
    private = private_data(cluster)
    return frozenset(kind for kind in HIDEABLE if kind in page.hide or kind[:-1] in private or "all" in private)


class StatusPage(pulumi.ComponentResource):
    """One pod that shows the cluster in a browser, and its Service. While it is down, only the page is missing."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, page: Page, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:StatusPage", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        needs = [declare(manifest, child) for manifest in (build_service_account(pods), *build_roles(pods), build_network_policy(pods))]
        declare(build_service(pods), child)
        declare(build_deployment(cluster, pods, page), pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.register_outputs({})


def rights() -> list[dict[str, Any]]:
    """The table of the page's rights in the cluster's namespace: `group`, `resource`, `verbs` and `why`."""
    return api_programs.rights_table("page_rbac.yaml")


def build_service_account(pods: PodDefaults) -> Manifest:
    """The ServiceAccount of the page."""
    return api_programs.service_account(pods, COMPONENT)


def build_roles(pods: PodDefaults) -> list[Manifest]:
    """The Role for the cluster's namespace, and its binding."""
    return api_programs.bound_role(pods, COMPONENT, "Role", api_programs.about(pods, COMPONENT), rights())


def build_network_policy(pods: PodDefaults) -> Manifest:
    """Egress to DNS, the API server, and the program beside slurmrestd."""
    slurmrestd = network.egress_to(pods["cluster"], "slurmrestd", ports.RUNNING_JOBS)
    return api_programs.network_policy(pods, COMPONENT, [slurmrestd])


def build_service(pods: PodDefaults) -> Manifest:
    """The Service `<cluster>-page`, only inside the cluster: users reach it by an ssh tunnel through a login pod, or by a proxy."""
    return service(pods, COMPONENT, PORT, ports=[{"name": "http", "port": PORT, "targetPort": ports.CONTROLLER}])


def build_deployment(cluster: Cluster, pods: PodDefaults, page: Page) -> Manifest:
    """The Deployment of the page: one replica, as only it has the history of the last day; the old pod stops first."""
    pod = api_programs.pod(
        pods,
        COMPONENT,
        _page(cluster, pods, page),
        [secret_volume("jwt", jwt_secret_name(cluster.name))],
        # This group may read the JWT key.
        securityContext={"fsGroup": api_programs.CONTROLLER_UID},
    )
    return deployment(pods, COMPONENT, pod, strategy={"type": "Recreate"})


def _page(cluster: Cluster, pods: PodDefaults, page: Page) -> Manifest:
    settings = Settings(
        cluster=cluster.name,
        namespace=cluster.namespace,
        slurmrestd=rest_url(cluster),
        jwt_key=Path(paths.JWT_KEY),
        history=Path("/tmp/history.json"),  # noqa: S108 - a mount of the pod's own
        hidden=hidden(cluster, page),
        hosts=hosts(cluster, page),
    )
    return api_programs.container(
        pods,
        "page",
        "controllers.page",
        to_environment(settings),
        requests=("10m", "64Mi"),
        memory=_MEMORY,
        mounts=[mount("jwt", paths.JWT, read_only=True)],
        port_name="http",
        knows_its_name=False,
    )
