"""Prometheus and Alertmanager of the real image with the files of the dev stack, on the loopback, beside an exporter of recorded metrics.

The files are those that the component makes, except for where things are: addresses of targets, ports, and the time between readings,
which is a second on a quiet machine.
Counters grow with each reading, so that rates are numbers.
"""

import json
import re
import socket
import subprocess
import tarfile
import threading
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import yaml
from rich.console import Console

from images.build import build
from tests.support.patience import seconds

RECORDED = Path(__file__).parents[1] / "fakes" / "metrics"
"""One file for each job: what slurmctld and the controllers of a dev stack said, and what the collector says."""
_COUNTS = re.compile(r"^(\w+(?:_total|_bucket|_count|_sum)(?:\{.*\})?) (\S+)$")


def unpack(folder: Path) -> Path:
    """Builds the image unless the cache has it, and unpacks it. Raises CalledProcessError."""
    with tarfile.open(build("observability", Console(stderr=True))) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        for name in json.load(manifest)[0]["Layers"]:
            layer = archive.extractfile(name)
            assert layer is not None
            subprocess.run(["tar", "-x", "--numeric-owner", "-C", str(folder)], input=layer.read(), check=True)
    return folder


def grown(text: str, times: int) -> str:
    """A recorded answer whose counters have grown."""
    lines = (_COUNTS.match(line) or line for line in text.splitlines())
    return "\n".join(line if isinstance(line, str) else f"{line[1]} {float(line[2]) * times + times}" for line in lines) + "\n"


def free_ports() -> tuple[int, int]:
    """Two ports of the loopback that nobody listens on."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


class Exporter:
    """Answers `/<job>` with the job's recorded metrics, and keeps what is posted."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, Any]] = []
        """Path and JSON of each request to a webhook."""
        answered: Counter[str] = Counter()
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answered[self.path] += 1
                self._say(grown((RECORDED / f"{self.path[1:]}.txt").read_text(), answered[self.path]))

            def do_POST(self) -> None:
                posts.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self._say("ok")

            def _say(self, text: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


class Site:
    """The two programs."""

    def __init__(self, root: Path) -> None:
        self.root, self.exporter = root, Exporter()
        self.port, self.alertmanager_port = free_ports()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, files: Mapping[str, str]) -> None:
        """Both, with these files of the component."""
        folder = self.root / "etc" / "slipway" / "prometheus"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(self._placed(text) if name == "prometheus.yml" else text)
        self.start_prometheus()
        self._run("slipway-alertmanager", "--storage.path=/tmp/alertmanager", "--cluster.listen-address=",
                  f"--web.listen-address=127.0.0.1:{self.alertmanager_port}")  # fmt: skip

    def start_prometheus(self) -> None:
        """With its files, and the data that it has."""
        self._run("prometheus", "--config.file=/etc/slipway/prometheus/prometheus.yml", "--storage.tsdb.path=/tmp/prometheus",
                  f"--web.listen-address=127.0.0.1:{self.port}")  # fmt: skip

    def kill_prometheus(self) -> None:
        """Ends it at once, as a machine does that loses power."""
        self._running["prometheus"].kill()
        self._running["prometheus"].wait(seconds(30))

    def _placed(self, text: str) -> str:
        config = yaml.safe_load(text)
        pace = f"{min(seconds(1), 15)}s"  # several readings in a minute: dashboards' rates are of that
        config["global"] = {"scrape_interval": pace, "scrape_timeout": pace, "evaluation_interval": pace}
        config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [f"127.0.0.1:{self.alertmanager_port}"]}]}]
        own = {"prometheus": self.port, "alertmanager": self.alertmanager_port}
        for scrape in config["scrape_configs"]:
            job = scrape["job_name"]
            scrape.pop("dns_sd_configs", None)
            scrape["static_configs"] = [{"targets": [f"127.0.0.1:{own.get(job, self.exporter.port)}"]}]
            if job not in own:
                scrape["metrics_path"] = f"/{job}"
        return yaml.safe_dump(config)

    def _run(self, *command: str) -> None:
        with (self.root / "tmp" / f"{command[0]}.log").open("ab") as log:
            self._running[command[0]] = subprocess.Popen(["chroot", str(self.root), *command], stdout=log, stderr=log)

    def logs(self) -> str:
        """What both wrote, for a failed test."""
        return "\n".join(path.read_text()[-3000:] for path in (self.root / "tmp").glob("*.log"))

    def ask(self, path: str, **parameters: str) -> Any:
        """The `data` of Prometheus' answer. Raises OSError while it does not answer."""
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What an expression gives now; numbers that are none are left out, as Grafana shows nothing for them."""
        found = cast(list[dict[str, Any]], self.ask("query", query=expression)["result"])
        return [each for each in found if each["value"][1] != "NaN"]

    def raised(self, alert: str) -> str:
        """When Alertmanager last heard of an alert; empty where it has none of this name. Raises OSError while it does not answer."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.alertmanager_port}/api/v2/alerts", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return max((each["updatedAt"] for each in found if each["labels"]["alertname"] == alert), default="")

    def tool(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the image, such as promtool."""
        return subprocess.run(["chroot", str(self.root), *command], capture_output=True, text=True, check=False, timeout=seconds(120))

    def close(self) -> None:
        """Ends both."""
        for one in self._running.values():
            one.terminate()
        for one in self._running.values():
            one.wait(seconds(30))
        self.exporter.close()
