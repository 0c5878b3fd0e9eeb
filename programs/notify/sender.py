"""Sends the messages for webhooks, one thread per webhook, so that one that hangs does not delay others. Thin.

A message is removed once the webhook took it, so it may come twice if the container ends at that moment.
"""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from names import paths
from programs.mail.plan import LIFE_S, is_too_old, pause_s

from .post import Outcome, post
from .reader import Say
from .state import FOLDER, PAYLOAD, spool_of

URLS = Path(paths.NOTIFY_URLS)
"""One folder per webhook, with the file `url`."""
_BETWEEN_S = 1.0
"""Seconds between two messages to one webhook: Slack takes one per second."""
_LOOK_S = 1.0


class Sender:
    """Sends the messages for one webhook."""

    def __init__(self, name: str, say: Say, folder: Path = FOLDER, urls: Path = URLS, send: Callable[[str, str], Outcome] = post) -> None:
        self._name, self._say, self._send = name, say, send
        self._spool = spool_of(name, folder)
        self._url = urls / name / "url"
        self._failures = 0
        self._done: set[str] = set()
        """Messages that are done but could not be removed. They are not sent again."""

    def round(self, now: float) -> float:
        """Sends the oldest message, if any. Returns the seconds until the next round."""
        try:
            return self._round(now)
        except OSError as error:
            self._failures += 1
            wait_s = pause_s(self._failures)
            self._say(f"FAILED: messages for {self._name} cannot be taken from the disk: {error}. The next try is in {wait_s:.0f} s")
            return wait_s

    def _round(self, now: float) -> float:
        for name in tuple(self._done):
            self._remove(name)
        self._spool.take_lost()  # each was logged by the reader
        names = self._spool.names()
        if not names:
            return _LOOK_S
        name = names[0]
        try:
            waiting = self._spool.read(name)
            body = waiting.job[PAYLOAD]
        except FileNotFoundError:  # the config does not name this webhook any more
            return _LOOK_S
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            return self._drop(name, f"the file {name}", f"it cannot be read: {error!r}")
        if is_too_old(waiting.asked_at, now):
            return self._drop(name, waiting.subject, f"the webhook has not taken it for {LIFE_S // 3600} hours")
        outcome = self._send_it(body)
        if outcome.is_taken:
            if self._failures:
                self._say(f"{self._name} takes messages again")
            self._failures = 0
            self._say(f"told {self._name}: {waiting.subject}")
            self._remove(name)
            return _BETWEEN_S
        if outcome.is_refused:
            return self._drop(name, waiting.subject, outcome.why)
        self._failures += 1
        wait_s = outcome.wait_s if outcome.wait_s is not None else pause_s(self._failures)
        self._say(f"{self._name} takes no message: {outcome.why}. {len(names)} wait; the next try is in {wait_s:.0f} s")
        return max(_LOOK_S, wait_s)

    def _send_it(self, body: str) -> Outcome:
        try:  # read each time: a changed Secret needs no restart
            url = self._url.read_text().strip()
        except OSError as error:
            return Outcome(is_taken=False, why=f"its Secret has no key url ({error.strerror})")
        except ValueError:
            return Outcome(is_taken=False, why="the key url of its Secret is not text")
        return self._send(url, body)

    def _drop(self, name: str, what: str, why: str) -> float:
        self._say(f"NOT SENT to {self._name}: {what}: {why}")
        self._remove(name)
        return _BETWEEN_S

    def _remove(self, name: str) -> None:
        self._done.add(name)
        self._spool.remove(name)
        self._done.discard(name)


class Senders:
    """One thread per webhook. If the config no longer names a webhook, its thread ends and its messages are removed."""

    def __init__(self, say: Say, folder: Path = FOLDER, urls: Path = URLS) -> None:
        self._say, self._folder, self._urls = say, folder, urls
        self._stops: dict[str, threading.Event] = {}

    def follow(self, webhooks: Iterable[str]) -> None:
        """Starts missing threads, and ends those of webhooks that are not listed."""
        wanted = set(webhooks)
        for name in wanted - self._stops.keys():
            stop = self._stops[name] = threading.Event()
            sender = Sender(name, self._say, self._folder, self._urls)
            threading.Thread(target=work, args=(sender, stop), daemon=True).start()
        for name in self._stops.keys() - wanted:
            self._stops.pop(name).set()
        for name in {folder.name for folder in self._folder.iterdir() if folder.is_dir()} - wanted if self._folder.exists() else ():
            spool = spool_of(name, self._folder)
            waiting = spool.names()
            for message in waiting:
                spool.remove(message)
            if waiting:
                self._say(f"NOT SENT to {name}: {len(waiting)} messages: the config does not name it any more")


def work(sender: Sender, stop: threading.Event) -> None:
    """Sends until `stop` is set."""
    while not stop.is_set():
        stop.wait(sender.round(time.time()))
