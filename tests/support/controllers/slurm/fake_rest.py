"""A slurmrestd in this process, which answers as a test tells it to."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NODE = {"name": "gpu-0", "state": ["IDLE", "CLOUD"], "reason": "", "partitions": ["main"]}


NODES = {"nodes": [NODE], "last_update": {"set": True, "infinite": False, "number": 100}, "errors": []}


JOBS: dict[str, Any] = {"jobs": [], "errors": []}


JOB = {"job_id": 7, "job_state": ["RUNNING"], "nodes": "gpu-[0-1]", "end_time": {"set": True, "infinite": False, "number": 500}}


FAULT = {"errors": [{"description": "Failure to update node x", "error_number": 2018, "error": "Invalid node name specified"}]}


@dataclass
class FakeRest:
    """Answers by path; `answer` may give a status and a body, None to cut the connection, or wait for ever."""

    versions: tuple[str, ...] = ("v0.0.45",)
    answers: dict[str, tuple[int, Any]] = field(default_factory=lambda: {"nodes/": (200, NODES), "jobs/": (200, JOBS)})
    behave: Callable[[str], str] = lambda _: ""
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list[Any])
    wall: float = 1_800_000_000.0
    tokens: list[str] = field(default_factory=list[str])
    delays: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """By target, what an answer waits for."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.tokens.append(headers.get("x-slurm-user-token", ""))
                self.asked.append((method, target, json.loads(body) if body else {}))
                what = self.behave(target)
                if what == "cut":
                    return
                if what == "hang":
                    await asyncio.Event().wait()
                if target in self.delays:
                    await self.delays[target].wait()
                status, content = self.answer(target)
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\nContent-Type: application/json\r\n\r\n".encode() + raw)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, target: str) -> tuple[int, Any]:
        if target in self.answers:  # of the program beside it
            return self.answers[target]
        if target == "/jobs/":
            return self.answers["jobs/"]
        _, _, version, rest = target.split("/", 3)
        if version not in self.versions:
            return 404, b"Unable to find requested URL"
        path = rest.partition("?")[0]
        if path == "ping/":
            return 200, {"pings": [{"hostname": "c", "responding": True}], "errors": []}
        return self.answers.get(path, (200, {"errors": []}))
