"""What the sidecar knows of the files, as JSON over HTTP: GET /files, for the NodeSet controller.

It says which files it speaks of by their content (slurm/files.py), and has no secret: slurmctld's words are of files that every node has.
"""

import json
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer

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
                body = json.dumps(asdict(desk.report) if is_known else {"error": "there is /files"}).encode()
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
