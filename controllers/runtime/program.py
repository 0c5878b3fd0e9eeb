"""A process of long-lived tasks that ends clean or ends loud: in order on SIGTERM; if one task ends, all do. Kubernetes restarts it.

Some tasks run always (informers, probes), so that a standby is up to date when it takes over; others only while the process leads.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from controllers.runtime.lease import Election, LeaseLost

Task = Callable[[], Coroutine[Any, Any, None]]

log = structlog.get_logger()


async def run(
    always: Mapping[str, Task],
    leading: Mapping[str, Task],
    *,
    election: Election | None = None,
    stop: asyncio.Event | None = None,
    stop_s: float = 10,
) -> int:
    """The process's exit code: 0 after SIGTERM, SIGINT or `stop`; 1 if a task failed or ended, or the lease is lost.

    At the end, first the leading tasks are cancelled, then the lease is released, then the other tasks are cancelled; `stop_s` seconds for
    each.
    """
    stopping = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    background = [asyncio.create_task(task(), name=name) for name, task in always.items()]
    led: list[asyncio.Task[None]] = []
    stop_task = asyncio.create_task(_until(stopping), name="stop")
    try:
        if election is not None:
            acquiring = asyncio.create_task(election.acquire(), name="election")
            ended = await _first([stop_task, acquiring, *background])
            has_won = acquiring in ended and _error(acquiring) is None
            if ended != {acquiring} or not has_won:
                await _cancelled([acquiring], stop_s)
                # Winning at the very moment of the end does not count as a failure; the lease is given back below.
                return _verdict(ended - {acquiring} if has_won else ended, stop_task)
            led.append(asyncio.create_task(election.hold(), name="lease"))
        led += [asyncio.create_task(task(), name=name) for name, task in leading.items()]
        return _verdict(await _first([stop_task, *background, *led]), stop_task)
    finally:
        await _cancelled(led, stop_s)
        if election is not None and all(task.done() for task in led):
            await election.release()
        await _cancelled([stop_task, *background], stop_s)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _until(event: asyncio.Event) -> None:
    await event.wait()


async def _first(tasks: list[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    return done


def _verdict(ended: set[asyncio.Task[None]], stop_task: asyncio.Task[None]) -> int:
    failed = False
    for task in sorted(ended - {stop_task}, key=lambda task: task.get_name()):
        error = _error(task)
        if isinstance(error, LeaseLost):
            log.error("ending: the lease is lost", why=str(error))
        elif error is not None:
            log.error("ending: a task has failed", task=task.get_name(), exc_info=error)
        else:
            log.error("ending: a task has ended that should not", task=task.get_name())
        failed = True
    if not failed:
        log.info("ending: asked to stop")
    return int(failed)


async def _cancelled(tasks: list[asyncio.Task[None]], seconds: float) -> None:
    """Cancels, and waits until all have ended. A task that does not end is logged and left behind."""
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    done, pending = await asyncio.wait(tasks, timeout=seconds)
    for task in pending:
        log.error("a task does not stop", task=task.get_name())
    for task in done:
        if error := _error(task):
            log.debug("a task ended with an error", task=task.get_name(), error=repr(error))


def _error(task: asyncio.Task[None]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
