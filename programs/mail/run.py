"""The program of the `mail` container: sends the mails in the spool through the relay, and retries.

`python3 -m programs.mail.run SETTINGS`, as SlurmUser; SETTINGS is JSON. A mail is removed once the relay took it, so one may come twice if
the container ends at that moment. It logs mails that it gives up.
"""

import os
import signal
import smtplib
import ssl
import sys
import time
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from types import FrameType

from slurm.logs import teller
from slurm.pump import take_stderr

from .message import Mail, compose, job_number
from .plan import LIFE_S, Fate, is_too_old, pause_s, plan_fate
from .settings import Settings, from_json
from .spool import Spool

_LOOK_S = 1
_ANSWER_S = 30


class Sender:
    """Sends the waiting mails, round by round."""

    def __init__(self, settings: Settings, spool: Spool, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._spool = spool
        self._say = say
        self._failures = 0
        self._later: dict[str, float] = {}
        """Mails that the relay asked to send later, with the time of the next try."""

    def round(self) -> int:
        """Sends the due mails. Returns the seconds until the next round."""
        if lost := self._spool.take_lost():
            self._say(f"LOST: {lost} mails found no room in the spool, or in their user's share of it: the relay does not empty it")
        due = self._due(time.time())
        if not due:
            return _LOOK_S
        try:
            with connect(self._settings) as relay:
                for name, mail, what in due:
                    self._send(relay, name, mail, what)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            self._failures += 1
            wait_s = pause_s(self._failures)
            where = f"{self._settings.host}:{self._settings.port}"
            self._say(f"the relay {where} takes no mail: {error}. {len(self._spool.names())} wait; the next try is in {wait_s} s")
            return wait_s
        if self._failures:
            self._say("the relay takes mail again")
        self._failures = 0
        return _LOOK_S

    def _due(self, now: float) -> list[tuple[str, Mail, str]]:
        """The mails to send now: file, mail, and its name in the log."""
        due: list[tuple[str, Mail, str]] = []
        names = self._spool.names()
        self._later = {name: at for name, at in self._later.items() if name in names}
        for name in names:
            try:
                waiting = self._spool.read(name)
            except (OSError, ValueError, AttributeError, TypeError) as error:
                self._drop(name, f"the file {name}", f"it cannot be read: {error!r}")
                continue
            mail = compose(waiting.subject, waiting.address, waiting.job)
            number = job_number(waiting.job)
            what = f"the mail {f'about job {number}' if number else repr(waiting.subject)} to {waiting.address!r}"
            if not mail.to:
                self._drop(name, what, "that is no mail address")
            elif is_too_old(waiting.asked_at, now):
                self._drop(name, what, f"the relay has not taken it for {LIFE_S // 3600} hours")
            elif self._later.get(name, 0) <= now:
                due.append((name, mail, what))
        return due

    def _send(self, relay: smtplib.SMTP, name: str, mail: Mail, what: str) -> None:
        """Raises OSError, SMTPException if the relay takes no mail at all."""
        try:
            refused = relay.send_message(to_message(mail, self._settings.sender), self._settings.sender, mail.to)
        except smtplib.SMTPRecipientsRefused as error:
            self._answer(name, what, [code for code, _ in error.recipients.values()], str(error))
        except smtplib.SMTPDataError as error:
            self._answer(name, what, [error.smtp_code], str(error))
        else:
            for address, answer in refused.items():
                self._say(f"REFUSED: {what}: {address}: {answer}")
            self._spool.remove(name)
            self._say(f"sent {what}")

    def _answer(self, name: str, what: str, codes: list[int], reply: str) -> None:
        if plan_fate(codes) is Fate.DROP:
            self._drop(name, what, f"the relay refuses it: {reply}")
        elif name not in self._later:
            self._say(f"{what} has to wait: {reply}")
        self._later[name] = time.time() + pause_s(10)

    def _drop(self, name: str, what: str, why: str) -> None:
        self._say(f"NOT SENT: {what}: {why}")
        self._spool.remove(name)


def connect(settings: Settings) -> smtplib.SMTP:
    """Connects to the relay, with TLS and login as configured. Raises OSError, SMTPException, ValueError."""
    context = None
    if settings.tls != "none":
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.ca_file:  # certificates of a site's own CA often lack an Authority Key Identifier, which Python 3.13 and later want
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.tls == "tls":
        relay: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, timeout=_ANSWER_S, context=context)
    else:
        relay = smtplib.SMTP(settings.host, settings.port, timeout=_ANSWER_S)
    try:
        if settings.tls == "starttls":
            relay.starttls(context=context)
        if settings.credentials:  # read each time: a changed Secret needs no restart
            username, password = ((Path(settings.credentials) / key).read_text().strip() for key in ("username", "password"))
            relay.login(username, password)
    except BaseException:
        relay.close()
        raise
    return relay


def to_message(mail: Mail, sender: str) -> EmailMessage:
    """The mail with its headers. It is marked as automatic, so that no absence note answers it (RFC 3834)."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = ", ".join(mail.to)
    message["Subject"] = mail.subject
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=sender.partition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.body)
    return message


def main() -> None:
    # Python as process 1 ignores SIGTERM. Ending at once loses nothing: a mail is removed after it is sent.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    sender = Sender(from_json(sys.argv[1]), Spool(), teller("mail"))
    while True:
        time.sleep(sender.round())


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    take_stderr("mail")
    main()
