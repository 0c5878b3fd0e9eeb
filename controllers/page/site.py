"""What the page's server answers: the page, and its data, packed once for each reading. The page names no other host, and the browser may
load nothing else.
"""

import gzip
import hashlib
import ipaddress
from base64 import b64encode
from collections.abc import Callable, Collection
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from controllers.runtime.serve import Answer, Asked, Page

_FOLDER = Path(__file__).parent / "files"
_JSON = "application/json"
_HARDENED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
_LONGEST_USER = 64


class Packed:
    """A body that is compressed once and served many times."""

    def __init__(self, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self._body, self._kind, self._headers = body, kind, headers
        self._packed = gzip.compress(body, 6, mtime=0)
        self._tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'

    def answer(self, asked: Asked) -> Answer:
        """The body, or 304 if the browser has it already."""
        headers = {**_HARDENED, **self._headers, "ETag": self._tag, "Cache-Control": "no-cache"}
        if self._tag in (tag.strip().removeprefix("W/") for tag in asked.headers.get("if-none-match", "").split(",")):
            return Answer(b"", self._kind, HTTPStatus.NOT_MODIFIED, headers)
        if "gzip" in asked.headers.get("accept-encoding", ""):
            return Answer(self._packed, self._kind, headers={**headers, "Content-Encoding": "gzip"})
        return Answer(self._body, self._kind, headers=headers)


class Site:
    """The page and its data. `tell` gives it the newest snapshot."""

    def __init__(
        self, jobs_of: Callable[[str], dict[str, Any]], looked_at: Callable[[], None], now: Callable[[], float], hosts: Collection[str]
    ) -> None:
        """`jobs_of` gives one user's jobs; `looked_at` is called whenever somebody asks for data; `now` is seconds since 1970; `hosts` are
        the page's names."""
        self._jobs_of, self._looked_at, self._now, self._hosts = jobs_of, looked_at, now, hosts
        self._page = compose()
        self._data = Packed(b"{}", _JSON, {})

    def tell(self, snapshot: dict[str, Any]) -> None:
        """Replaces the data."""
        self._data = Packed(msgspec.json.encode(snapshot), _JSON, {})

    @property
    def pages(self) -> dict[str, Page]:
        """What is served, by path."""
        pages = {"/": self._page.answer, "/data.json": self._answer_data, "/jobs.json": self._answer_jobs}
        return {path: self._by_its_names(page) for path, page in pages.items()}

    def _by_its_names(self, page: Page) -> Page:
        """Refuses requests under another name: by DNS rebinding, a foreign website could read the page as its own."""

        def answer(asked: Asked) -> Answer:
            host = asked.headers.get("host", "")
            if is_own_name(host, self._hosts):
                return page(asked)
            text = f"This page does not answer to the name {host[:300]!r}. Add it to page.hosts in the stack file, or use localhost.\n"
            return Answer(text.encode(), status=HTTPStatus.MISDIRECTED_REQUEST, headers=_HARDENED)

        return answer

    def _answer_data(self, asked: Asked) -> Answer:
        self._looked_at()
        return self._dated(self._data.answer(asked))

    def _answer_jobs(self, asked: Asked) -> Answer:
        user = asked.query.get("user", "")
        if not user or len(user) > _LONGEST_USER:
            return Answer(b"whose jobs? /jobs.json?user=alice\n", status=HTTPStatus.BAD_REQUEST, headers=_HARDENED)
        self._looked_at()
        return self._dated(Packed(msgspec.json.encode(self._jobs_of(user)), _JSON, {}).answer(asked))

    def _dated(self, answer: Answer) -> Answer:
        """Adds this machine's time: the page computes ages from it, as the browser's clock may be wrong."""
        return Answer(answer.body, answer.kind, answer.status, {**answer.headers, "X-Now": f"{self._now():.0f}"})


def is_own_name(host: str, hosts: Collection[str]) -> bool:
    """True if a Host header names the page: by one of `hosts`, as `localhost` or by an address, with any port. Every browser sends one."""
    name = host.strip().lower().rstrip(".")
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0].rstrip(".")
    if not name or name == "localhost" or name in hosts:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def compose() -> Packed:
    """The page as one file, and the policy that allows only its own script and style."""
    html, style, script = ((_FOLDER / name).read_text() for name in ("page.html", "page.css", "page.js"))
    body = html.replace("/* page.css */", style).replace("/* page.js */", script)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Packed(body.encode(), "text/html; charset=utf-8", {"Content-Security-Policy": policy})


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
