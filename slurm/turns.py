"""Blocking work in a few threads, for programs that serve many clients (slurm/listen). Clients take turns."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

Result = TypeVar("Result")


class Turns:
    """Runs blocking calls in a number of threads. Addresses take turns, and none has more than half of the threads."""

    def __init__(self, threads: int) -> None:
        self._free, self._share = threads, max(1, threads // 2)
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The next address first."""

    async def run(self, address: str, call: Callable[..., Result], *arguments: Any) -> Result:
        """Gives what the call returns or raises. A running call finishes in its thread even if nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(address, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(address, turn)
            else:
                self._end(address)
            raise
        done: asyncio.Future[Result] = loop.create_future()

        def finish(result: Result | None, error: BaseException | None) -> None:
            self._end(address)
            if not done.done():
                done.set_exception(error) if error is not None else done.set_result(cast(Result, result))

        def work() -> None:
            result, error = None, None
            try:
                result = call(*arguments)
            except BaseException as raised:  # whatever it is, the turn ends
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(finish, result, error)

        try:
            threading.Thread(target=work, daemon=True).start()
        except RuntimeError:  # there can be no more threads now
            self._end(address)
            raise
        return await done

    def _give(self) -> None:
        for address in [*self._waiting]:
            if not self._free:
                return
            if self._running.get(address, 0) >= self._share:
                continue
            turns = self._waiting.pop(address)
            while turns and turns[0].done():  # its client has gone
                turns.popleft()
            if turns:
                self._free -= 1
                self._running[address] = self._running.get(address, 0) + 1
                turns.popleft().set_result(None)
            if turns:
                self._waiting[address] = turns

    def _forget(self, address: str, turn: "asyncio.Future[None]") -> None:
        turns = self._waiting.get(address, deque())
        with contextlib.suppress(ValueError):
            turns.remove(turn)
        if not turns:
            self._waiting.pop(address, None)

    def _end(self, address: str) -> None:
        self._free += 1
        self._running[address] -= 1
        if not self._running[address]:
            del self._running[address]
        self._give()
