"""A webhook for tests, as a service that takes Slack's format: it keeps each post, and answers as it is told. Run as a program, in a pod's
network: `python -m tests.support.slurm.webhook_service FOLDER PORT`. Each post that it takes becomes a file FOLDER/N.json.

The file FOLDER/answer has the status of the next answers: `429 7` with Retry-After, `hang` for none; missing: 200.
"""

import itertools
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Service(ThreadingHTTPServer):
    """The service, at a port of its own."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(("", port), Handler)
        self.folder = folder
        self.numbers = itertools.count(len(list(folder.glob("*.json"))))
        self.asked = 0
        """Posts so far, whatever became of them."""


class Handler(BaseHTTPRequestHandler):
    """Answers POST."""

    server: Service  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        service = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        service.asked += 1
        answer = service.folder / "answer"
        status, _, after = (answer.read_text() if answer.exists() else "200").partition(" ")
        if status == "hang":
            while answer.exists():
                time.sleep(0.05)
            return
        if status == "200":
            made = service.folder / f"{next(service.numbers):05}.new"
            made.write_bytes(body)
            made.rename(made.with_suffix(".json"))
        self.send_response(int(status))
        if after:
            self.send_header("Retry-After" if status == "429" else "Location", after)
        said = b"ok" if status == "200" else b"invalid_payload"
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Nothing: what counts are the files."""


def read_posts(folder: Path) -> list[dict[str, Any]]:
    """The posts that were taken, the oldest first."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def start(folder: Path) -> Service:
    """A service in a thread of this process."""
    service = Service(folder)
    threading.Thread(target=service.serve_forever, args=(0.02,), daemon=True).start()
    return service


if __name__ == "__main__":
    made = Service(Path(sys.argv[1]), int(sys.argv[2]))
    print("ready", flush=True)
    made.serve_forever()
