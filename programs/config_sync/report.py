"""What the sidecar knows of the files, as JSON over HTTP: GET /files, for the NodeSet controller. And since when slurmctld has its keys.

It says which files it speaks of by their content (slurm/files.py), and has no secret: slurmctld's words are of files that every node has.
"""

import contextlib
import json
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from . import copies

PORT = 6822
WAITING = "waiting"
"""slurmctld may not take the files yet."""
REFUSED = "refused"
"""slurmctld runs with the files before, as it refuses these."""
SPREADING = "spreading"
"""slurmctld has taken the files; slurmds take them now."""
BEHIND = "slurmds-behind"
"""Some slurmds that answer should have had the files long ago."""
LIVE = "live"
"""slurmctld and each slurmd that answers have the files."""


def find_keys(claim: Path = copies.CLAIM) -> dict[str, float]:
    """Since when slurmctld has its keys, in seconds since 1970. programs/slurmctld leaves a note of each one that is new."""
    found: dict[str, float] = {}
    for name in ("munge", "jwt"):
        with contextlib.suppress(OSError):
            found[name] = (claim / f"conf.{name}-key").stat().st_mtime
    return found


@dataclass(frozen=True)
class Report:
    """How far files have come."""

    files: str = ""
    """The hash of their content; empty before the first look."""
    state: str = WAITING
    message: str = "the sidecar has just started"
    held: str = ""
    """Nodes that keep the size that slurmctld has of them until no job can be on them, as a hostlist."""


class Desk:
    """Has the latest report, and gives it to whoever asks."""

    def __init__(self) -> None:
        self.report = Report()

    def serve(self, port: int = PORT) -> HTTPServer:
        """In a thread that ends with the program. Raises OSError when the port is taken."""
        desk = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                is_known = self.path == "/files"
                body = json.dumps({**asdict(desk.report), "keys": find_keys()} if is_known else {"error": "there is /files"}).encode()
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
                """Nothing: the sidecar's log is about the files."""

        server = HTTPServer(("", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server
