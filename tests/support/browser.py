"""A real headless Chromium (Debian's), spoken to over a pipe in the Chrome DevTools Protocol: no driver, no port, nothing outside loopback.

`with Browser(folder) as browser: page = browser.open(url)`. The package is installed where it is missing.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from local import packages
from tests.support.patience import patience

_ANSWER_S = 60.0
_PACKAGES = ["chromium", "fonts-dejavu-core"]


def install() -> None:
    """Chromium from Debian, with one font: 20 s on two cores."""
    if shutil.which("chromium") is None:
        packages.install(_PACKAGES)


class Page:
    """One tab."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """One command of the protocol."""
        return self._browser.call(method, session=self._session, **arguments)

    def value(self, script: str) -> Any:
        """What an expression gives; a promise is waited for. Raises AssertionError with what it threw."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, script: str, wait_s: float = 30.0) -> Any:
        """What an expression gives as soon as that is true of it. The browser looks at each frame, for so long by the machine's pace."""
        wait_s *= patience()
        found = self.value(
            f"new Promise((done) => {{ const end = performance.now() + {wait_s * 1000}; "
            f"const look = () => {{ let found = null; try {{ found = ({script}); }} catch {{ }}"
            " if (found || performance.now() > end) done(found || null); else requestAnimationFrame(look); }; look(); })"
        )
        assert found, f"not within {wait_s:g} s: {script}\n{self.value('document.body.innerText')[:2000]}"
        return found

    def press(self, key: str) -> None:
        """A key, by its DOM name."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    def move(self, x: float, y: float) -> None:
        """The mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def size(self, width: int, height: int, scheme: str = "light") -> None:
        """The window, and whether people prefer `light` or `dark`."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """A PNG of the page."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    @property
    def messages(self) -> list[str]:
        """Errors of scripts, and what the browser refused: a page in order has none."""
        return self._browser.messages.get(self._session, [])


_KEYS = {"Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One process of Chromium with its own profile."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._number = 0
        self._rest = b""
        self.messages: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--no-proxy-server",
        ]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"]
        command += ["--hide-scrollbars", f"--user-data-dir={self._profile}", "about:blank"]

        # It reads from 3 and writes to 4, whatever ours are called.
        shell = ["/bin/bash", "-c", f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"', "bash", *command]
        if {3, 4} & {to_browser, from_browser}:
            to_browser, from_browser = _above(to_browser), _above(from_browser)
            shell[2] = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        log = (self._profile.parent / "chromium.log").open("wb")
        self._process = subprocess.Popen(shell, pass_fds=(to_browser, from_browser), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for one in (to_browser, from_browser):
            os.close(one)
        log.close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def open(self, url: str, width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
        """A new tab of that size that has begun to load."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.size(width, height, scheme)
        page.call("Page.navigate", url=url)
        return page

    def call(self, method: str, session: str = "", **arguments: Any) -> dict[str, Any]:
        """A command and its answer; events that come before it are kept in `messages` where they tell a fault."""
        self._number += 1
        said = {"id": self._number, "method": method, "params": arguments, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(said).encode() + b"\0")
        began = time.monotonic()
        while True:
            told = json.loads(self._next(began))
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            if (note := _NOTES.get(told.get("method", ""))) is not None:
                self.messages.setdefault(told.get("sessionId", ""), []).append(note(told["params"]))

    def _next(self, began: float) -> bytes:
        while b"\0" not in self._rest:
            left_s = began + _ANSWER_S * patience() - time.monotonic()
            ready, _, _ = select.select([self._read], [], [], max(0.0, left_s))
            assert ready, f"Chromium did not answer within {time.monotonic() - began:.0f} s"
            piece = os.read(self._read, 1 << 20)
            assert piece, f"Chromium has ended: {(self._profile.parent / 'chromium.log').read_text()[-2000:]}"
            self._rest += piece
        one, _, self._rest = self._rest.partition(b"\0")
        return one


_NOTES: dict[str, Callable[[dict[str, Any]], str]] = {
    "Runtime.exceptionThrown": lambda about: json.dumps(about["exceptionDetails"])[:1000],
    "Log.entryAdded": lambda about: f"{about['entry']['level']}: {about['entry']['text']} {about['entry'].get('url', '')}",
}


def _above(number: int) -> int:
    """The same file under a number that is not 3 or 4."""
    free = [os.dup(number)]
    while free[-1] in (3, 4):
        free.append(os.dup(number))
    for one in (number, *free[:-1]):
        os.close(one)
    return free[-1]
