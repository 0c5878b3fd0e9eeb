"""slurmrestd's calls that controllers make, each with a deadline. The result is Slurm's answer or an error: never a guess.

Answers are as measured on slurmrestd 26.05.5 (docs/explain/slurm-facts.md). slurmrestd can only list all jobs. So jobs are read from
the program beside it, programs/running_jobs.
"""

import asyncio
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from controllers.slurm.connections import Answer, Broken, Connections
from controllers.slurm.metrics import REQUEST_SECONDS, request_name
from controllers.slurm.structs import Body, Fault, Jobs, Listing, Nodes, Partitions, Reservations
from controllers.slurm.tokens import KeyUnreadable, TokenSource
from names import ports
from slurm.hostlists import fold

VERSIONS = ("v0.0.45", "v0.0.44")
"""Data parsers that the structs here read, the best first. The older one cannot requeue a job."""
DEADLINE_S = 10.0
JOBS_DEADLINE_S = 60.0
"""For the list of running jobs. Longer than the program that makes it takes at most: a request that is given up leaves its work behind."""
_RESTART_S = 8.0
"""Seconds for which a read is retried if slurmrestd does not answer: its container may have just restarted."""
_AGAIN_S = 0.25
_NEGOTIATED_S = 300.0
"""Seconds until the version is negotiated again: another slurmrestd may run by then."""
_LEFT_ALREADY = frozenset({2017, 2020, 2021, 2024})
"""Errors of a job that is unknown, completing, done or waiting: it leaves its nodes, or has left them. Source: slurm_errno.h."""
_NOT_FROM_HERE = frozenset({2180})
"""Error of a state that a node cannot change to now, such as RESUME if nothing is to be resumed. Source: slurm_errno.h."""
_NO_RESERVATION = frozenset({2053})
"""Error of a missing reservation. Source: slurm_errno.h."""
_Answer = TypeVar("_Answer", bound=Body)

NodeUpdate = Literal["DRAIN", "UNDRAIN", "RESUME", "POWER_UP", "POWER_DOWN", "DOWN", "IDLE"]


class SlurmError(Exception):
    """No usable answer."""


class SlurmUnreachable(SlurmError):
    """No answer in time, a broken connection, or a server that cannot serve now."""


class SlurmUnauthorized(SlurmError):
    """The token was refused, or there is no key to create one."""


class SlurmRefused(SlurmError):
    """Slurm refused the request."""

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class SlurmClient:
    """One slurmrestd. Used by one event loop; `async with` closes its connections."""

    def __init__(self, url: str, tokens: TokenSource, deadline_s: float = DEADLINE_S, jobs_url: str | None = None) -> None:
        """`url` is slurmrestd's, http://host:port. The running jobs are on the same host, unless `jobs_url` is set."""
        self._rest = Connections(url)
        self._jobs = Connections(jobs_url or f"http://{urlsplit(url).hostname}:{ports.RUNNING_JOBS}")
        self._tokens, self._deadline_s = tokens, deadline_s
        self._version: str | None = None
        self._negotiated_at = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._rest.close()
        self._jobs.close()

    @property
    def can_requeue(self) -> bool:
        """False if the server's data parser cannot requeue a job."""
        return self._version in (None, VERSIONS[0])

    async def nodes(self, since: float | None = None) -> Nodes | None:
        """All nodes. None if nothing has changed since `since`, the `last_update` of an earlier answer.

        Raises SlurmError, for an empty list too.
        """
        answer = await self._request("GET", "nodes/" if since is None else f"nodes/?update_time={int(since)}")
        if answer.status == 304:
            return None
        listing = _decoded(answer, Nodes)
        if not listing.nodes:
            raise SlurmUnreachable("slurmrestd gave a list without any node")
        return listing

    async def jobs(self) -> Jobs:
        """The jobs that have nodes. One list at a time: it takes seconds if tens of thousands wait. Raises SlurmError."""
        try:
            async with asyncio.timeout(JOBS_DEADLINE_S):
                return _decoded(await self._call(self._jobs, "GET", "/jobs/"), Jobs)
        except TimeoutError:
            raise SlurmUnreachable(f"no list of running jobs within {JOBS_DEADLINE_S:g} s") from None

    async def listing(self, what: Literal["nodes", "queue"]) -> Listing:
        """All nodes, or all jobs that run or wait, in squeue's format. Raises SlurmError."""
        try:
            async with asyncio.timeout(JOBS_DEADLINE_S):
                return _decoded(await self._call(self._jobs, "GET", f"/{what}/"), Listing)
        except TimeoutError:
            raise SlurmUnreachable(f"no list of {what} within {JOBS_DEADLINE_S:g} s") from None

    async def partitions(self) -> Partitions:
        """All partitions. Raises SlurmError."""
        return await self._get("partitions/", Partitions)

    async def reservations(self) -> Reservations:
        """All reservations. Raises SlurmError."""
        return await self._get("reservations/", Reservations)

    async def update_nodes(self, names: Iterable[str], state: NodeUpdate, reason: str | None = None) -> None:
        """Changes all named nodes at once. A name unknown to Slurm is an error, although others may be changed. Raises SlurmError."""
        change: dict[str, Any] = {"name": [fold(names)], "state": [state]}
        if reason is not None:
            change["reason"] = reason
        await self._send("POST", "nodes/", change)

    async def place_nodes(self, names: Iterable[str], topology: str | None, features: Iterable[str] | None) -> None:
        """Sets where nodes are, and their features; None leaves that as it is. Raises SlurmError."""
        change: dict[str, Any] = {"name": [fold(names)]}
        if topology is not None:
            change["topology_str"] = topology
        if features is not None:
            change["features"] = change["features_act"] = list(features)
        await self._send("POST", "nodes/", change)

    async def release_nodes(self, names: Iterable[str]) -> None:
        """Ends the wait for SuspendTimeout of nodes that power down: Slurm may wake them at once. Raises SlurmError.

        Slurm refuses it for a node that no longer powers down: that changes nothing and is not an error; the other nodes are released.
        Source: measured on 26.05.
        """
        try:
            await self.update_nodes(names, "RESUME")
        except SlurmRefused as error:
            if not error.faults or not all(fault.error_number in _NOT_FROM_HERE for fault in error.faults):
                raise

    async def reserve(self, name: str, node: str, start: int, comment: str) -> None:
        """Reserves a node for maintenance from `start`, in seconds since 1970, until it is released; its jobs stay. An existing reservation
        of that name begins then instead (measured on 26.05). Raises SlurmError, also for a start in the past.
        """
        about = {"name": name, "node_list": [node], "users": ["root"], "flags": ["MAINT", "IGNORE_JOBS"], "comment": comment}
        times = {"start_time": {"set": True, "number": start}, "duration": {"set": True, "infinite": True}}
        await self._send("POST", "reservation", about | times)

    async def release(self, name: str) -> None:
        """Ends a reservation. A missing reservation is not an error. Raises SlurmError."""
        try:
            await self._send("DELETE", f"reservation/{name}", {})
        except SlurmRefused as error:
            if not error.faults or any(fault.error_number not in _NO_RESERVATION for fault in error.faults):
                raise

    async def cancel_jobs(self, nodes: Iterable[str]) -> None:
        """Cancels every job that has one of the nodes. Raises SlurmError."""
        await self._send("DELETE", "jobs/", {"nodes": [fold(nodes)]})

    async def requeue_jobs(self, ids: Iterable[str]) -> None:
        """Puts running jobs back into the queue; a job that has ended meanwhile is not an error.

        Raises SlurmRefused if jobs are not batch jobs (error 2039) or were submitted with --no-requeue (2037): all others are requeued.
        Raises it for all jobs if slurmrestd is too old. Raises SlurmError. Source: measured on 26.05.
        """
        try:
            await self._send("POST", "jobs/requeue", {"jobs": list(ids)})
        except SlurmRefused as error:
            if not self.can_requeue:
                message = f"slurmrestd serves {self._version}, which cannot requeue jobs ({VERSIONS[0]} can): they run on until they end"
                raise SlurmRefused(message) from error
            if not error.faults or not all(fault.error_number in _LEFT_ALREADY for fault in error.faults):
                raise

    async def _get(self, path: str, kind: type[_Answer]) -> _Answer:
        return _decoded(await self._request("GET", path), kind)

    async def _send(self, method: str, path: str, body: dict[str, Any]) -> None:
        _decoded(await self._request(method, path, msgspec.json.encode(body)), Body)

    async def _request(self, method: str, path: str, content: bytes = b"") -> Answer:
        """One call within the deadline. Raises SlurmError for every status but success and 304."""
        try:
            async with asyncio.timeout(self._deadline_s):
                version = self._version
                if version is None or time.monotonic() - self._negotiated_at > _NEGOTIATED_S:
                    version = await self._negotiate()
                return await self._call(self._rest, method, f"/slurm/{version}/{path}", content)
        except TimeoutError:
            raise SlurmUnreachable(f"no answer within {self._deadline_s:g} s") from None

    async def _negotiate(self) -> str:
        refusals: list[str] = []
        for version in VERSIONS:
            try:
                await self._call(self._rest, "GET", f"/slurm/{version}/ping/")
            except SlurmRefused as error:
                refusals.append(str(error))
                continue
            self._version, self._negotiated_at = version, time.monotonic()
            return version
        raise SlurmUnreachable(f"slurmrestd serves none of {', '.join(VERSIONS)}: {'; '.join(refusals)}")

    async def _call(self, server: Connections, method: str, target: str, content: bytes = b"") -> Answer:
        try:
            token = self._tokens.token()
        except KeyUnreadable as error:
            raise SlurmUnauthorized(f"no token: {error}") from error
        headers = {"X-SLURM-USER-TOKEN": token, "Accept": "application/json"}
        if content:
            headers["Content-Type"] = "application/json"
        with REQUEST_SECONDS.labels(request_name(method, target)).time():
            answer = await self._exchange(server, method, target, headers, content)
        if answer.status in (401, 403, 511):
            self._tokens.forget()
            raise SlurmUnauthorized(f"slurmrestd refused the token: {_said(answer)}")
        if answer.status in (404, 422, 400, 406):
            raise SlurmRefused(f"{method} {target}: {_said(answer)}", _faults(answer))
        if answer.status not in (200, 304):
            raise SlurmUnreachable(f"slurmrestd answered {answer.status}: {_said(answer)}")
        return answer

    async def _exchange(self, server: Connections, method: str, target: str, headers: dict[str, str], content: bytes) -> Answer:
        """The answer. A read is retried while a restart may last; a write is not, as it may have been done.

        Raises SlurmUnreachable.
        """
        give_up_at = time.monotonic() + min(_RESTART_S, 0.8 * self._deadline_s)
        while True:
            try:
                return await server.request(method, target, headers, content)
            except Broken as error:
                if method != "GET" or time.monotonic() >= give_up_at:
                    raise SlurmUnreachable(f"slurmrestd at {server.url}: {error}") from error
            await asyncio.sleep(_AGAIN_S)


def _decoded(answer: Answer, kind: type[_Answer]) -> _Answer:
    try:
        body = _parsed(answer, kind)
    except msgspec.MsgspecError as error:
        raise SlurmUnreachable(f"slurmrestd's answer makes no sense: {error}") from error
    if body.errors:
        raise SlurmRefused(_in_words(body.errors), body.errors)
    return body


def _parsed(answer: Answer, kind: type[_Answer]) -> _Answer:
    """Raises MsgspecError. slurmrestd passes on any byte of a reason or a comment (26.05): bytes that are not UTF-8 become U+FFFD."""
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except UnicodeDecodeError:
        return msgspec.json.decode(answer.body.decode(errors="replace"), type=kind)


def _faults(answer: Answer) -> tuple[Fault, ...]:
    try:
        return _parsed(answer, Body).errors
    except msgspec.MsgspecError:
        return ()


def _said(answer: Answer) -> str:
    faults = _faults(answer)
    return _in_words(faults) if faults else f"HTTP {answer.status} {answer.body[:200].decode(errors='replace')}".strip()


def _in_words(faults: tuple[Fault, ...]) -> str:
    return "; ".join(f"{fault.description or 'error'} ({fault.error_number} {fault.error})" for fault in faults)
