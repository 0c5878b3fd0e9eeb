"""Labels machines' Kubernetes nodes with their place in EC2's network: the labels that EKS writes, for clusters where nobody does.

Source: DescribeInstanceTopology. An instance without a place, or that does not run, has no network nodes there and keeps its labels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from controllers.ec2.client import MOST_IDS, Ec2, Ec2Error
from controllers.runtime.api import Api
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError, Conflict
from controllers.runtime.structs import KUBE_NODES, KubeNode
from names import writers
from slurm.topology import EC2_LAYER

_AGAIN_S = 3600
"""An instance that was stopped and started may be elsewhere; a machine that joins is asked about at once."""
log = structlog.get_logger()


def plan_labels(network_nodes: Sequence[str], present: Mapping[str, str]) -> dict[str, str] | None:
    """The labels of a machine with these network nodes, from the top. None if it has them, or has no place."""
    wanted = {f"{EC2_LAYER}{number}": node for number, node in enumerate(network_nodes, 1)}
    return wanted if wanted and any(present.get(name) != value for name, value in wanted.items()) else None


class Places:
    """Keeps the labels of all machines up to date, hour by hour."""

    def __init__(self, api: Api, ec2: Ec2, clock: Clock) -> None:
        self._api, self._ec2, self._clock = api, ec2, clock
        self._asked_at: dict[str, float] = {}

    async def look(self, machines: Mapping[str, KubeNode]) -> list[str]:
        """Asks about the instances that are due, MOST_IDS at a time, and labels their Kubernetes nodes. Returns what went wrong, which the
        next look tries again.
        """
        now = self._clock.now()
        self._asked_at = {instance: at for instance, at in self._asked_at.items() if instance in machines}
        due = sorted(instance for instance in machines if now - self._asked_at.get(instance, now - _AGAIN_S) >= _AGAIN_S)
        faults: list[str] = []
        for at in range(0, len(due), MOST_IDS):
            batch = due[at : at + MOST_IDS]
            try:
                descriptions = await self._ec2.topology(batch)
            except Ec2Error as error:
                faults.append(str(error))
                continue
            self._asked_at |= dict.fromkeys(batch, now)
            for description in descriptions:
                if description["InstanceId"] in machines and (fault := await self._label(machines[description["InstanceId"]], description)):
                    del self._asked_at[description["InstanceId"]]
                    faults.append(fault)
        return faults

    async def _label(self, node: KubeNode, description: Mapping[str, Any]) -> str:
        """Returns what went wrong. Labels of others, such as EKS, stay. A node that was deleted or replaced meanwhile is not a fault."""
        labels = plan_labels(description.get("NetworkNodes") or (), node.metadata.labels)
        if labels is None:
            return ""
        manifest = {"metadata": {"name": node.metadata.name, "uid": node.metadata.uid, "labels": labels}}
        try:
            # The API server takes labels with a status, so no right to change anything else of a node, such as taints, is needed.
            await self._api.apply(KUBE_NODES, manifest, subresource="status", field_manager=writers.EC2_TOPOLOGY, force=False)
        except Conflict as error:
            log.info("labels of a machine's place are somebody else's, and stay", machine=node.metadata.name, why=str(error))
            return ""
        except ApiError as error:
            is_other = error.status == 404 or "metadata.uid" in error.message
            return "" if is_other else f"labels of the Kubernetes nodes could not be written: {error}"
        log.info("a machine has its place in EC2's network", machine=node.metadata.name, labels=labels)
        return ""
