"""slurmrestd's calls that controllers make, each with a deadline. An answer is what Slurm said, or an error: never a guess.

Source of what answers look like: measured on slurmrestd 26.05.5. A refused token is HTTP 511. Where nothing has changed since
`update_time`, /nodes/ gives 304, and /jobs/ gives 200 with an empty list whose own time is 0: no news, which is not the same as no jobs.
A single node that Slurm does not know is HTTP 200 with an error in the body; a bulk update of nodes takes a hostlist. One unknown name
in it is an error, although the others are changed.
"""

import asyncio
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import httpx2
import msgspec

from controllers.slurm.hostlist import fold
from controllers.slurm.structs import Body, Fault, Jobs, Nodes, Partitions, Pings, Reservations
from controllers.slurm.tokens import KeyUnreadable, TokenSource

VERSIONS = ("v0.0.45", "v0.0.44")
"""Data parsers that the structs here read, the best first. The older one has no way to requeue a job."""
DEADLINE_S = 10.0
_NEGOTIATED_S = 300.0
"""Seconds after which the version is asked for again: another slurmrestd may be there by now."""
_LEFT_ALREADY = frozenset({2017, 2020, 2021, 2024})
"""Errors of a job that is unknown, completing, done or waiting: it leaves its nodes, or has left them. Source: slurm_errno.h."""
_Answer = TypeVar("_Answer", bound=Body)

NodeUpdate = Literal["DRAIN", "UNDRAIN", "RESUME", "POWER_UP", "POWER_DOWN", "DOWN", "IDLE"]


class SlurmError(Exception):
    """No usable answer."""


class SlurmUnreachable(SlurmError):
    """No answer in time, a broken connection, or a server that cannot serve now."""


class SlurmUnauthorized(SlurmError):
    """The token was refused, or there is no key to make one from."""


class SlurmRefused(SlurmError):
    """Slurm answered that it will not do it."""

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class SlurmClient:
    """One slurmrestd. Used by one event loop; `async with` closes its connections."""

    def __init__(
        self, url: str, tokens: TokenSource, deadline_s: float = DEADLINE_S, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx2.AsyncClient(base_url=url, timeout=deadline_s, trust_env=False, transport=transport)
        self._tokens, self._deadline_s = tokens, deadline_s
        self._version: str | None = None
        self._negotiated_at = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.aclose()

    @property
    def can_requeue(self) -> bool:
        """False for a server whose data parser has no way to requeue a job."""
        return self._version in (None, VERSIONS[0])

    async def nodes(self, since: float | None = None) -> Nodes | None:
        """All nodes; None when nothing has changed since `since`, the `last_update` of an earlier answer.

        Raises SlurmError, for an empty list too.
        """
        answer = await self._read("nodes/", Nodes, since)
        if answer is not None and not answer.nodes:
            raise SlurmUnreachable("slurmrestd gave a list without any node")
        return answer

    async def jobs(self, since: float | None = None) -> Jobs | None:
        """All jobs; None when nothing has changed since `since`. Raises SlurmError, for a list that does not say of when it is too."""
        answer = await self._read("jobs/", Jobs, since)
        if answer is None or answer.last_update.value:
            return answer
        if since is None or answer.jobs:
            raise SlurmUnreachable("slurmrestd gave a list of jobs without its time")
        return None

    async def partitions(self) -> Partitions:
        """All partitions. Raises SlurmError."""
        return await self._get("partitions/", Partitions)

    async def reservations(self) -> Reservations:
        """All reservations. Raises SlurmError."""
        return await self._get("reservations/", Reservations)

    async def ping(self) -> bool:
        """True when slurmctld answers slurmrestd. Raises SlurmError."""
        answer = await self._get("ping/", Pings)
        return any(one.responding for one in answer.pings)

    async def reconfigure(self) -> None:
        """Has slurmctld read its files again. Raises SlurmError."""
        await self._get("reconfigure/", Body)

    async def update_nodes(self, names: Iterable[str], state: NodeUpdate, reason: str | None = None) -> None:
        """Changes all named nodes at once; a name that Slurm does not know is an error; others may be changed. Raises SlurmError."""
        change: dict[str, Any] = {"name": [fold(names)], "state": [state]}
        if reason is not None:
            change["reason"] = reason
        await self._send("POST", "nodes/", change)

    async def cancel_jobs(self, nodes: Iterable[str]) -> None:
        """Cancels every job that has one of the nodes. Raises SlurmError."""
        await self._send("DELETE", "jobs/", {"nodes": [fold(nodes)]})

    async def requeue_jobs(self, ids: Iterable[str]) -> None:
        """Puts running jobs back into the queue; one that has ended meanwhile is none of them any more, and no error.

        Raises SlurmRefused for jobs that are no batch jobs (error 2039) or were submitted with --no-requeue (2037), all others being
        requeued; for all jobs where slurmrestd is too old; and SlurmError. Source: measured on 26.05.
        """
        try:
            await self._send("POST", "jobs/requeue", {"jobs": list(ids)})
        except SlurmRefused as error:
            if not self.can_requeue:
                message = f"slurmrestd serves {self._version}, which cannot requeue jobs ({VERSIONS[0]} can): they run on until they end"
                raise SlurmRefused(message) from error
            if not error.faults or not all(one.error_number in _LEFT_ALREADY for one in error.faults):
                raise

    async def _read(self, path: str, kind: type[_Answer], since: float | None) -> _Answer | None:
        params = {} if since is None else {"update_time": str(int(since))}
        response = await self._request("GET", path, params=params)
        return None if response.status_code == 304 else _decoded(response, kind)

    async def _get(self, path: str, kind: type[_Answer]) -> _Answer:
        return _decoded(await self._request("GET", path), kind)

    async def _send(self, method: str, path: str, body: dict[str, Any]) -> None:
        _decoded(await self._request(method, path, content=msgspec.json.encode(body), headers={"Content-Type": "application/json"}), Body)

    async def _request(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """One call within the deadline. Raises SlurmError for every answer that is neither good nor 304."""
        try:
            async with asyncio.timeout(self._deadline_s):
                version = self._version
                if version is None or time.monotonic() - self._negotiated_at > _NEGOTIATED_S:
                    version = await self._negotiate()
                return await self._call(method, f"/slurm/{version}/{path}", **more)
        except TimeoutError:
            raise SlurmUnreachable(f"no answer within {self._deadline_s:g} s") from None

    async def _negotiate(self) -> str:
        refusals: list[str] = []
        for version in VERSIONS:
            try:
                await self._call("GET", f"/slurm/{version}/ping/")
            except SlurmRefused as error:
                refusals.append(str(error))
                continue
            self._version, self._negotiated_at = version, time.monotonic()
            return version
        raise SlurmUnreachable(f"slurmrestd serves none of {', '.join(VERSIONS)}: {'; '.join(refusals)}")

    async def _call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        try:
            token = self._tokens.token()
        except KeyUnreadable as error:
            raise SlurmUnauthorized(f"no token: {error}") from error
        headers = {**more.pop("headers", {}), "X-SLURM-USER-TOKEN": token}
        try:
            response = await self._http.request(method, path, headers=headers, **more)
        except httpx2.HTTPError as error:
            raise SlurmUnreachable(f"slurmrestd at {self._http.base_url}: {type(error).__name__} {error}".rstrip()) from error
        if response.status_code in (401, 403, 511):
            self._tokens.forget()
            raise SlurmUnauthorized(f"slurmrestd refused the token: {_said(response)}")
        if response.status_code in (404, 422, 400, 406):
            raise SlurmRefused(f"{method} {path}: {_said(response)}", _faults(response))
        if response.status_code not in (200, 304):
            raise SlurmUnreachable(f"slurmrestd answered {response.status_code}: {_said(response)}")
        return response


def _decoded(response: httpx2.Response, kind: type[_Answer]) -> _Answer:
    try:
        answer = msgspec.json.decode(response.content, type=kind)
    except msgspec.MsgspecError as error:
        raise SlurmUnreachable(f"slurmrestd's answer makes no sense: {error}") from error
    if answer.errors:
        raise SlurmRefused(_in_words(answer.errors), answer.errors)
    return answer


def _faults(response: httpx2.Response) -> tuple[Fault, ...]:
    try:
        return msgspec.json.decode(response.content, type=Body).errors
    except msgspec.MsgspecError:
        return ()


def _said(response: httpx2.Response) -> str:
    faults = _faults(response)
    return _in_words(faults) if faults else f"HTTP {response.status_code} {response.text[:200]}".strip()


def _in_words(faults: tuple[Fault, ...]) -> str:
    return "; ".join(f"{one.description or 'error'} ({one.error_number} {one.error})" for one in faults)
