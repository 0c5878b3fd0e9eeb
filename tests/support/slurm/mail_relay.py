"""An SMTP relay for tests: STARTTLS and a login before any mail, as relays of sites are. Run as a program, in a pod's network.

`python -m tests.support.slurm.mail_relay FOLDER PORT`: the certificate is FOLDER/server.crt with server.key. Each mail becomes
a file FOLDER/N.eml.
Nobody is called `nobody@`: such an address is refused for good.
"""

import asyncio
import itertools
import ssl
import sys
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path

from aiosmtpd.controller import UnthreadedController
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "slurm-mail", "correct horse"


class Handler:
    """Keeps each mail as a file, whole before it has its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(len(list(folder.glob("*.eml"))))

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:  # noqa: N802
        if address.startswith("nobody@"):
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        made = self._folder / f"{next(self._numbers):03}.new"
        made.write_bytes(f"X-For: {','.join(envelope.rcpt_tos)}\r\n".encode() + (envelope.original_content or b""))
        made.rename(made.with_suffix(".eml"))
        return "250 OK"


def authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    """Lets the one user in."""
    is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=is_right)


def read_mails(folder: Path) -> list[EmailMessage]:
    """The mails that have come, the oldest first; `X-For` is whom the relay was to bring it to."""
    return [BytesParser(EmailMessage, policy=default).parsebytes(file.read_bytes()) for file in sorted(folder.glob("*.eml"))]


def main(folder: Path, port: int) -> None:
    loop = asyncio.new_event_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    settings = {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": authenticate}
    UnthreadedController(Handler(folder), hostname="", port=port, loop=loop, **settings).begin()
    print("ready", flush=True)
    loop.run_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
