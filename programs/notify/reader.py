"""Reads Slurm, round by round, and queues messages for webhooks and mail addresses. Thin: plan decides.

A failed reading is repeated from where the last good one ended. Messages are queued before the state is written.
"""

import time
from collections.abc import Callable
from pathlib import Path

from names import variables
from programs.mail.spool import SPOOL, Spool, Waiting
from slurm.commands import SlurmError
from slurm.ended import FORGET_S, back_to, gap_after_answer, gap_after_failure
from slurm.maintenance import Job, job_command, jobs_of, read_job_rows
from slurm.squeue import random_word

from . import nodes, runs, words
from .affected import newly_drained, plan_affected
from .plan import News, gather, new_runs, plan_jobs, plan_nodes
from .settings import Receiver
from .state import FOLDER, PAYLOAD, State, load, save, spool_of

CHUNK_S = 3600
"""Longest time that one reading covers. After a long outage, several rounds catch up."""
Ask = Callable[..., str]
"""Runs a Slurm command and returns its output. Raises SlurmError."""
Say = Callable[[str], None]


class Reader:
    """Reads Slurm and queues messages. `ask` runs a command; `now` returns seconds since 1970."""

    def __init__(
        self, cluster: str, ask: Ask, say: Say, now: Callable[[], float] = time.time, folder: Path = FOLDER, mails: Path = SPOOL
    ) -> None:
        self._cluster, self._ask, self._say, self._now, self._folder = cluster, ask, say, now, folder
        self._mails = Spool(mails)
        self._file = folder / "state.json"
        self._state = self._load()
        self._unsaid: list[tuple[Receiver, News]] = []
        """News that a full disk kept from the queue. They are queued before the next reading."""
        self._faults: dict[str, str] = {}

    def round(self, receivers: tuple[Receiver, ...]) -> None:
        """Reads what a receiver wants to know, and queues the messages. Raises OSError; the next round resumes."""
        before = self._state
        if not self._unsaid:
            self._read(receivers)
        while self._unsaid:
            self._leave(*self._unsaid[0])
            del self._unsaid[0]
        if self._state != before or not self._file.exists():
            save(self._file, self._state)

    def _load(self) -> State:
        now = self._now()
        try:
            state = load(self._file)
        except (OSError, ValueError) as error:
            self._say(f"LOST: what has ended before now is not told of, as it is unknown how far that was: {error}")
            state = None
        return state or State(now, now)

    def _read(self, receivers: tuple[Receiver, ...]) -> None:
        now = self._now()
        if any(receiver.wants_jobs for receiver in receivers):
            if not self._attempt("jobs", lambda: self._jobs(receivers)):
                self._note_gap()
        else:
            self._state = State(now, now, nodes=self._state.nodes)
        # Receivers of jobs, too: users hear of drained nodes under their jobs.
        if any(receiver.wants_nodes or receiver.wants_jobs for receiver in receivers):
            self._attempt("nodes", lambda: self._nodes(receivers))
        else:
            self._state = self._with_nodes(None)

    def _with_nodes(self, known: nodes.Known | None) -> State:
        state = self._state
        return State(state.began, state.since, state.seen, state.arrays, known, state.gap)

    def _note_gap(self) -> None:
        state = self._state
        gap = gap_after_failure(state.gap, state.since, self._now())
        self._state = State(state.began, state.since, state.seen, state.arrays, state.nodes, gap)

    def _attempt(self, what: str, read: Callable[[], list[tuple[Receiver, News]]]) -> bool:
        """False if the reading failed."""
        try:
            self._unsaid += read()
        except (SlurmError, ValueError) as error:  # an AnswerError is a ValueError
            if self._faults.get(what) != str(error):
                self._say(f"{what} cannot be read, trying again: {error}")
            self._faults[what] = str(error)
            return False
        else:
            if self._faults.pop(what, None) is not None:
                self._say(f"{what} can be read again")
            return True

    def _jobs(self, receivers: tuple[Receiver, ...]) -> list[tuple[Receiver, News]]:
        now, state = self._now(), self._state
        since = min(max(state.since, now - FORGET_S), now)  # the clock may have been set back
        until, began = min(now, since + CHUNK_S), min(state.began, now)
        looks_from = back_to(since, state.gap, now)
        word = random_word()
        text = self._ask(*runs.command(looks_from, until, word))
        # sacct also lists runs that were in one of the states earlier, before `seen` begins.
        read = [run for run in runs.read_runs(text, word, self._cluster) if run.end >= max(began, looks_from)]
        new = new_runs(read, state.seen)
        has_arrays = bool(state.arrays) or any(run.array for run in new)
        live = runs.live_arrays(self._ask(*runs.LIVE_COMMAND)) if has_arrays else frozenset[str]()
        if state.since < now - FORGET_S:
            self._say(f"LOST: jobs that ended before {time.strftime('%F %T', time.gmtime(since))} UTC are not told of: it is too long ago")
        items, waiting = gather(state.arrays, new, live, now)
        gap = gap_after_answer(state.gap, now)
        kept_from = back_to(until, gap, now)
        seen = frozenset(key for key in {*state.seen, *(run.key for run in read)} if key[2] >= kept_from)
        self._state = State(began, until, seen, waiting, state.nodes, gap)
        return [(receiver, news) for receiver in receivers if receiver.wants_jobs for news in plan_jobs(receiver, items)]

    def _nodes(self, receivers: tuple[Receiver, ...]) -> list[tuple[Receiver, News]]:
        word = random_word()
        reading = nodes.read_nodes(self._ask(*nodes.command(word)), word)
        if self._state.nodes is None:
            self._state = self._with_nodes(nodes.first_known(reading))
            return []
        changes, known = nodes.plan_changes(self._state.nodes, reading)
        drained = newly_drained(self._state.nodes, changes)
        jobs = self._running() if drained and any(receiver.wants_jobs for receiver in receivers) else ()
        self._state = self._with_nodes(known)
        told = [
            (receiver, news) for receiver in receivers if receiver.wants_nodes for news in plan_nodes(receiver, changes, reading.partitions)
        ]
        return [*told, *((receiver, news) for receiver in receivers for news in plan_affected(receiver, drained, reading.silent, jobs))]

    def _running(self) -> tuple[Job, ...]:
        word = random_word()
        return jobs_of(read_job_rows(self._ask(*job_command(word)), word))

    def _leave(self, receiver: Receiver, news: News) -> None:
        message = words.write(news, self._cluster)
        if receiver.kind == "mail":
            subject = f"[{self._cluster}] {message.title}"
            is_kept = self._mails.add(Waiting(self._now(), subject, ", ".join(receiver.to), {variables.MAIL_TEXT: message.text}))
        else:
            body = (words.slack if receiver.kind == "slack" else words.plain_json)(message, self._cluster)
            is_kept = spool_of(receiver.name, self._folder).add(Waiting(self._now(), message.title, receiver.name, {PAYLOAD: body}))
        if not is_kept:
            self._say(f"LOST: {receiver.name} is not told: {message.title}: too many messages wait for it")
