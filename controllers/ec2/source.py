"""Asks EC2 about all machines every minute, and writes the answer into their Kubernetes nodes. Thin: statuses.py decides.

A condition keeps its last value if EC2 does not answer, or leaves the instance out.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from controllers.ec2 import metrics
from controllers.ec2.client import MOST_IDS, Ec2, Ec2Error
from controllers.ec2.places import Places
from controllers.ec2.settings import ACTIONS, Settings
from controllers.ec2.statuses import Status, begin_of, instance_of, plan_conditions, read_status
from controllers.runtime.api import Api
from controllers.runtime.clock import SYSTEM, Clock, backoff_s
from controllers.runtime.errors import ApiError
from controllers.runtime.informer import Informer
from controllers.runtime.structs import KUBE_NODES, PODS, KubeNode, NodeCondition
from names import annotations, labels, writers
from slurm.causes import EC2_CONDITIONS

_LONGEST_S = 600
log = structlog.get_logger()


class Source:
    """What EC2 says of the machines of one Kubernetes cluster."""

    def __init__(self, settings: Settings, api: Api, ec2: Ec2, clock: Clock = SYSTEM) -> None:
        self._settings, self._api, self._ec2, self._clock = settings, api, ec2, clock
        self.machines: Informer[KubeNode] = Informer(api, KUBE_NODES, clock=clock)
        self._fault = "EC2 has not been asked yet"
        self._answered_at: float | None = None
        self._places = Places(api, ec2, clock) if settings.labels_places else None
        self._readings = {"DescribeInstanceStatus", *(["DescribeInstanceTopology"] if settings.labels_places else [])}
        self._unproven = {*self._readings, *(ACTIONS[step] for step in settings.steps)}
        """Actions for which it is not known yet whether the IAM role allows them."""

    async def run(self) -> None:
        """Asks for ever, less often while EC2 does not answer."""
        metrics.ANSWERED.set(self._clock.wall())  # from here on, the time without an answer is counted
        await self.machines.synced.wait()
        failures = 0
        while True:
            failures = 0 if await self.look() else failures + 1
            every_s = self._settings.every_s
            await self._clock.sleep(every_s if not failures else max(every_s, backoff_s(failures, every_s, _LONGEST_S, self._clock)))

    def fault(self) -> str:
        """Why nothing is known of the machines, or why they cannot be rebooted and replaced. Empty if all is well."""
        if not self._fault or self._answered_at is None:
            return self._fault
        return f"{self._fault}; EC2 last answered {self._clock.now() - self._answered_at:.0f} s ago"

    async def look(self) -> bool:
        """Looks at all machines once. True if EC2 answered for all of them; a missing right or a refused write is only a fault."""
        machines = self._instances()
        missing = await self._missing_rights(machines)
        silences, refusals = await self._read(machines)
        unplaced = await self._places.look(machines) if self._places is not None else []
        faults = list(dict.fromkeys([*missing, *silences, *refusals, *unplaced]))
        if not silences:
            self._answered_at = self._clock.now()
            metrics.ANSWERED.set(self._clock.wall())
        self._fault = "; ".join(faults)
        if faults:
            metrics.FAILURES.inc()
            log.warning("not all is known of the machines; what was known stays", why=self._fault)
        return not silences

    def _instances(self) -> dict[str, KubeNode]:
        pairs = ((instance_of(node.spec.provider_id, self._settings.region), node) for node in self.machines.store.values())
        return {instance: node for instance, node in pairs if instance is not None}

    async def _read(self, machines: Mapping[str, KubeNode]) -> tuple[list[str], list[str]]:
        """Asks about all machines, MOST_IDS at a time, and writes what is new. Returns calls without an answer, and refused writes."""
        silences: list[str] = []
        refusals: list[str] = []
        statuses: dict[str, Status] = {}
        instances = sorted(machines)
        for at in range(0, len(instances), MOST_IDS):
            try:
                statuses |= {
                    element["InstanceId"]: read_status(element) for element in await self._ec2.statuses(instances[at : at + MOST_IDS])
                }
            except Ec2Error as error:
                silences.append(str(error))
        for instance, status in statuses.items():
            if instance in machines and (fault := await self._write(machines[instance], status)):
                refusals.append(fault)
        unknown = len(machines) - len(statuses)
        noted = sum(bool(status.events) for status in statuses.values())
        for state, number in (
            ("event", noted),
            ("unknown", unknown),
            ("told", len(statuses)),
            ("not_ec2", len(self.machines.store) - len(machines)),
        ):
            metrics.MACHINES.labels(state).set(number)
        return silences, refusals

    async def _write(self, node: KubeNode, status: Status) -> str:
        """Returns what went wrong. A node that was deleted or replaced meanwhile is not a fault."""
        conditions = plan_conditions(status, node.status.conditions, self._settings.grace_s, self._clock.wall())
        begin = begin_of(status)
        if conditions is None:
            if begin == node.metadata.annotations.get(annotations.EC2_MAINTENANCE_BEGINS):
                return ""
            conditions = tuple(condition for condition in node.status.conditions if condition.type in EC2_CONDITIONS)
        name = node.metadata.name
        manifest = {
            "metadata": {"name": name, "uid": node.metadata.uid}
            | ({"annotations": {annotations.EC2_MAINTENANCE_BEGINS: begin}} if begin else {}),
            "status": {"conditions": [self._manifest(condition) for condition in conditions]},
        }
        try:
            await self._api.apply(KUBE_NODES, manifest, subresource="status", field_manager=writers.EC2)
        except ApiError as error:
            is_other = error.status in (404, 409) or "metadata.uid" in error.message  # 422 from a status
            return "" if is_other else f"conditions of the Kubernetes nodes could not be written: {error}"
        log.warning(
            "EC2 says", machine=name, instance=status.instance, conditions={condition.type: condition.message for condition in conditions}
        )
        return ""

    def _manifest(self, condition: NodeCondition) -> dict[str, Any]:
        return {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": condition.last_transition_time,
        }

    async def _missing_rights(self, machines: Mapping[str, KubeNode]) -> list[str]:
        """Checks until proven: that the role allows the readings and, once there is a worker, a reboot or replacement of its machine."""
        if not self._unproven:
            return []
        instance = await self._machine_of_a_worker(machines)
        proven = self._unproven if instance else self._unproven & self._readings
        try:
            missing = await self._ec2.missing_rights(instance, sorted(proven))
        except Ec2Error as error:
            return [str(error)]
        if missing:
            return [
                f"the IAM role does not allow {', '.join(missing)}{f' of {instance}' if instance else ''}: "
                "docs/operate/remedies.md has its policy"
            ]
        self._unproven -= proven
        return []

    async def _machine_of_a_worker(self, machines: Mapping[str, KubeNode]) -> str:
        of_cluster = f"{labels.CLUSTER}={self._settings.cluster},{labels.NODESET}"
        try:
            workers = await self._api.list_page(PODS, namespace=self._settings.namespace, labels=of_cluster)
        except ApiError as error:
            log.warning("workers could not be listed", error=str(error))
            return ""
        places = {pod.spec.node_name for pod in workers.items}
        return next((instance for instance, node in sorted(machines.items()) if node.metadata.name in places), "")
