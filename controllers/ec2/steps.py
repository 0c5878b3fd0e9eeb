"""Takes requests for reboots and new machines, and has EC2 do them: a reboot at most once, and at most maxPerHour steps in an hour. Thin:
requests.py decides. A status of 2xx, also if EC2's answer is lost, means that the machine may go down: the controller keeps its node
drained.
"""

import asyncio
import hmac
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import msgspec
import structlog

from controllers.ec2 import metrics
from controllers.ec2.client import Ec2, Ec2Error, Ec2Unknown
from controllers.ec2.requests import Answer, Ask, Record, plan_request, read_records, read_request
from controllers.ec2.settings import Settings
from controllers.runtime import serve
from controllers.runtime.api import Api
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.errors import ApiError, NotFound
from controllers.runtime.step_request import StepRequest
from controllers.runtime.structs import CONFIG_MAPS, KUBE_NODES, PODS, ConfigMap
from names import labels, writers

DECIDED_S = 3.0
"""Seconds after a request within which EC2 must be asked; later requests are refused, as the reading of Slurm behind them is too old."""
log = structlog.get_logger()


class Steps:
    """The requests of one Slurm cluster."""

    def __init__(self, settings: Settings, api: Api, ec2: Ec2, clock: Clock = SYSTEM) -> None:
        self._settings, self._api, self._ec2, self._clock = settings, api, ec2, clock
        self._one_at_a_time = asyncio.Lock()
        self._me = uuid4().hex
        """ID of this process. Records of other processes count as asked."""
        self._asked: set[str] = set()
        """Keys of the requests for which this process has gone on to ask EC2."""
        self._key = settings.namespace, f"{settings.cluster}-ec2-requests"

    async def take(self, asked: serve.Asked) -> serve.Answer:
        """The answer to a POST."""
        if not self._is_allowed(asked.headers.get("authorization", "")):
            return _answer(Answer(HTTPStatus.UNAUTHORIZED, "the token is missing or is another one"))
        try:
            request = read_request(asked.body)
        except msgspec.DecodeError as error:
            return _answer(Answer(HTTPStatus.BAD_REQUEST, f"this is no request for a step: {error}"))
        try:
            async with asyncio.timeout(DECIDED_S), self._one_at_a_time:
                plan = await self._decide(request)
                if isinstance(plan, Ask):
                    self._asked.add(plan.key)  # from here on EC2 may have been asked
            answer = plan if isinstance(plan, Answer) else await self._ask(plan)
        except (ApiError, TimeoutError) as error:
            message = f"nothing is done, as the API server does not go along: {str(error) or f'no answer within {DECIDED_S:.0f} s'}"
            answer = Answer(HTTPStatus.SERVICE_UNAVAILABLE, message)
        except msgspec.DecodeError as error:
            message = f"nothing is done, as the ConfigMap {self._key[1]} has a record that cannot be read: {error}"
            answer = Answer(HTTPStatus.SERVICE_UNAVAILABLE, message)
        metrics.STEPS.labels(request.step if request.step in self._settings.steps else "other", answer.status.name.lower()).inc()
        log.warning("asked for a step", step=request.step, machine=request.machine, node=request.node, answer=answer.words)
        return _answer(answer)

    def _is_allowed(self, header: str) -> bool:
        try:
            token = self._settings.token.read_text().strip()
        except OSError as error:
            log.error("the token cannot be read: every request is refused", error=str(error))
            return False
        return bool(token) and hmac.compare_digest(header.encode(), f"Bearer {token}".encode())

    async def _decide(self, request: StepRequest) -> Ask | Answer:
        """The plan, after its record is written."""
        stored = await self._found(CONFIG_MAPS, *self._key)
        records = read_records(stored.data if stored is not None else {})
        plan = plan_request(
            request,
            self._settings.cluster,
            self._settings.region,
            self._settings.steps,
            self._settings.max_per_hour,
            await self._found(KUBE_NODES, "", request.machine),
            await self._found(PODS, self._settings.namespace, request.node),
            records,
            self._clock.wall(),
            {key for key, record in records.items() if record.by == self._me and key not in self._asked},
        )
        if isinstance(plan, Ask) and plan.record is not None:
            await self._record(stored, plan, msgspec.structs.replace(plan.record, by=self._me))
        return plan

    async def _ask(self, plan: Ask) -> Answer:
        ask = self._ec2.reboot if plan.action == "RebootInstances" else self._ec2.terminate
        try:
            await ask(plan.instance)
        except Ec2Unknown as error:
            return Answer(HTTPStatus.ACCEPTED, f"EC2's answer is lost, and it may have done it: {error}")
        except Ec2Error as error:
            self._asked.discard(plan.key)
            await self._forget(plan)
            return Answer(HTTPStatus.BAD_GATEWAY, str(error))
        return Answer(HTTPStatus.OK, f"EC2 has taken {plan.action} of {plan.instance}")

    async def _record(self, stored: ConfigMap | None, plan: Ask, record: Record) -> None:
        """Raises Conflict if another process has recorded something meanwhile: then EC2 is not asked."""
        data: dict[str, str | None] = {plan.key: msgspec.json.encode(record).decode()}
        if stored is None:
            meta = {"namespace": self._key[0], "name": self._key[1], "labels": {labels.CLUSTER: self._settings.cluster}}
            await self._api.create(CONFIG_MAPS, {"metadata": meta, "data": data}, field_manager=writers.EC2)
            return
        change = {"metadata": {"resourceVersion": stored.metadata.resource_version}, "data": {**dict.fromkeys(plan.expired), **data}}
        await self._api.patch(CONFIG_MAPS, *self._key, change, field_manager=writers.EC2)

    async def _forget(self, plan: Ask) -> None:
        """Removes the record, as EC2 did nothing. If that fails, this process still knows it; for another process the reboot counts as
        asked for, and the next step follows.
        """
        try:
            await self._api.patch(CONFIG_MAPS, *self._key, {"data": {plan.key: None}}, field_manager=writers.EC2)
        except ApiError as error:
            log.warning("a record stays although EC2 has done nothing", instance=plan.instance, error=str(error))

    async def _found(self, resource: Any, namespace: str, name: str) -> Any:
        try:
            return await self._api.get(resource, namespace, name)
        except NotFound:
            return None


def _answer(answer: Answer) -> serve.Answer:
    return serve.Answer(f"{answer.words}\n".encode(), status=answer.status)
