"""The guard of one cluster, and its rights. Its code is in controllers/guard; it restores what is in the record (deployed.py)."""

from typing import Any

import pulumi

from components import api_programs
from components.labels import Manifest
from components.objects import declare
from components.pods import PodDefaults
from components.workloads import deployment
from controllers.guard.settings import Settings, to_environment

COMPONENT = "guard"
"""Tail of its objects' names: `<cluster>-guard`."""
_MEMORY = "256Mi"
"""Five times what it takes for the dev stack (docs/explain/architecture.md)."""


class Guard(pulumi.ComponentResource):
    """One pod that restores objects that were edited or deleted by hand. While it is down, nothing is restored."""

    def __init__(self, name: str, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Guard", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        needs = [declare(manifest, child) for manifest in (build_service_account(pods), *build_roles(pods), build_network_policy(pods))]
        declare(build_deployment(pods), pulumi.ResourceOptions(parent=self, depends_on=needs))
        self.register_outputs({})


def rights() -> list[dict[str, Any]]:
    """The table of the guard's rights in the cluster's namespace: `group`, `resource`, `verbs` and `why`."""
    return api_programs.rights_table("guard_rbac.yaml")


def build_service_account(pods: PodDefaults) -> Manifest:
    """The ServiceAccount of the guard."""
    return api_programs.service_account(pods, COMPONENT)


def build_roles(pods: PodDefaults) -> list[Manifest]:
    """The Role for the cluster's namespace, and its binding."""
    return api_programs.bound_role(pods, COMPONENT, "Role", api_programs.about(pods, COMPONENT), rights())


def build_network_policy(pods: PodDefaults) -> Manifest:
    """Egress to DNS and the API server."""
    return api_programs.network_policy(pods, COMPONENT)


def build_deployment(pods: PodDefaults) -> Manifest:
    """The Deployment of the guard: one replica. Two pods during a rollout apply the same."""
    env = to_environment(Settings(cluster=pods["cluster"], namespace=pods["namespace"]))
    container = api_programs.container(pods, "guard", "controllers.guard", env, requests=("10m", "64Mi"), memory=_MEMORY)
    return deployment(pods, COMPONENT, api_programs.pod(pods, COMPONENT, container))
