"""Test of InfiniBand and RoCE between two nodes: ib_write_bw of perftest, port by port. Runs on both nodes, one task on each.

Settings: `nodes` (both names), `minRateGbps`, `minShareOfRatePercent` of the port's rate, `seconds` for each port, `command`. It tests each
active port that both nodes have, except EFA's, which has no such writes. Rank 1 runs the servers. Rank 0 runs the clients and prints one
JSON line.
"""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .meeting import MEETING, Line, go_to_other, listen, wait_for_other
from .network import read_ports
from .vendor import CannotRunError, find, last_line

_REMEDY = "install perftest where the worker finds it (docs/reference/checks.md)"
_DEVICES = Path("/sys/class/infiniband")
_MESSAGE = ("-s", "1048576", "-q", "2")
"""Large messages over two queue pairs: one pair with 64 KiB, perftest's default, may not fill a port of 400 Gbit/s
(github.com/linux-rdma/perftest/issues/318)."""
_AROUND_S = 20.0
"""For one port beside its `seconds`: to start, connect and end."""
_CONNECTS_S = 10.0
_ENDS_S = 2.0
_PAUSE_S = 0.1
_HEAD = re.compile(r"^\s*#bytes\s+#iterations\s+BW peak\[Gb/sec\]\s+BW average\[Gb/sec\].*$", re.MULTILINE)
_ROW = re.compile(r"^\s*\d+\s+\d+\s+[\d.]+\s+(\d+\.?\d*)\s+[\d.]+\s*$", re.MULTILINE)
_BROKEN = ("Failed status", "Completion with error")
"""What perftest prints where the card gave a write up, as packets were lost for too long. All else that fails may have other reasons."""
_NOT_YET = "Couldn't connect to"


@dataclass(frozen=True)
class Test:
    """The result of one port."""

    port: str
    """The device and its port, `mlx5_0/1`."""
    rate_gbps: float
    """The rate of the slower end."""
    gbps: "float | None"
    said: str = ""
    """Why there is no figure."""
    is_broken: bool = False
    """The writes failed, and not the program."""


def look(devices: Path = _DEVICES) -> "dict[str, float]":
    """The rate of each active port that is not EFA's. Raises OSError or ValueError."""
    return {port.name: port.rate_gbps for port in read_ports(devices) if port.state == "ACTIVE" and not port.is_efa}


def shared(mine: "dict[str, float]", theirs: "dict[str, float]") -> "dict[str, float]":
    """The ports that both nodes have, by name, with the lower rate."""
    return {port: min(rate, theirs[port]) for port, rate in mine.items() if port in theirs}


def read(text: str) -> "float | None":
    """The average Gbit/s of ib_write_bw --report_gbits; None for all else."""
    head = _HEAD.search(text)
    row = _ROW.search(text, head.end()) if head else None
    average = float(row[1]) if row else 0.0
    return average if 0 < average < float("inf") else None


def judge(tests: "list[Test]", settings: "dict[str, Any]") -> "tuple[str, str]":
    """`passed`, `failed` or `unknown`, and what was found; every port at fault is named."""
    faults: list[str] = []
    for test in tests:
        least = max(settings["minRateGbps"], test.rate_gbps * settings["minShareOfRatePercent"] / 100)
        if test.is_broken:
            faults.append(f"{test.port} cannot write: {test.said}")
        elif test.gbps is not None and test.gbps < least:
            faults.append(f"{test.port} writes at {test.gbps:g} of {test.rate_gbps:g} Gbit/s, {least:g} wanted")
    if faults:
        return "failed", "; ".join(faults)
    if silent := [f"{test.port}: {test.said}" for test in tests if test.gbps is None]:
        return "unknown", "; ".join(silent)
    if not tests:
        return "unknown", "no active InfiniBand or RoCE port that both nodes have"
    slowest = min(tests, key=lambda test: (test.gbps or 0.0) / (test.rate_gbps or 1.0))
    return "passed", f"{len(tests)} ports, of which {slowest.port} is the slowest: {slowest.gbps:g} of {slowest.rate_gbps:g} Gbit/s"


def arguments(port: str, listens: int, seconds: int) -> "list[str]":
    device, _, number = port.partition("/")
    return ["-d", device, "-i", number, "-p", str(listens), "-D", str(seconds), *_MESSAGE, "-F", "--report_gbits"]


def serve(line: Line, program: "list[str]", ports: "dict[str, float]", seconds: int) -> None:
    """Rank 1: a server for each port that rank 0 names. Raises OSError if rank 0 is gone."""
    line.send(ports=ports)
    while "port" in (wish := line.receive()):
        with listen(0) as free:
            listens = free.getsockname()[1]
        command = [*program, *arguments(wish["port"], listens, seconds)]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            line.send(listens=listens)
            line.receive()
        finally:
            last_words = _end(server)
        line.send(said=last_words)


def _end(server: "subprocess.Popen[bytes]") -> str:
    """Waits for a server, which ends after its client, or kills it. Returns its last line."""
    try:
        output, _ = server.communicate(timeout=_ENDS_S)
    except subprocess.TimeoutExpired:
        server.kill()
        output, _ = server.communicate()
    return last_line(output.decode(errors="replace"))


def write(line: Line, host: str, program: "list[str]", ports: "dict[str, float]", seconds: int) -> "list[Test]":
    """Rank 0: a client for each port. Raises OSError if rank 1 is gone."""
    tests: list[Test] = []
    theirs = line.receive()
    if why := theirs.get("cannot"):
        raise CannotRunError(f"{host}: {why}")
    for port, rate in shared(ports, theirs["ports"]).items():
        line.send(port=port)
        listens = line.receive()["listens"]
        test = _client([*program, *arguments(port, listens, seconds), host], port, rate, seconds)
        line.send(ended=True)
        theirs_said = line.receive()["said"]
        beside = f"; {host}: {theirs_said}" if test.gbps is None and theirs_said else ""
        tests.append(Test(test.port, test.rate_gbps, test.gbps, f"{test.said}{beside}", test.is_broken))
    line.send(done=True)
    return tests


def _client(command: "list[str]", port: str, rate: float, seconds: int) -> Test:
    end = time.monotonic() + _CONNECTS_S
    while True:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=seconds + _AROUND_S / 2,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Test(port, rate, None, f"ib_write_bw did not end within {seconds + _AROUND_S / 2:.0f} s")
        if _NOT_YET not in done.stdout or time.monotonic() > end:
            return judge_client(done.returncode, done.stdout, port, rate)
        time.sleep(_PAUSE_S)


def judge_client(code: int, output: str, port: str, rate: float) -> Test:
    """The result of a port, from the end of its client."""
    broken = next((text.strip() for text in output.splitlines() if any(phrase in text for phrase in _BROKEN)), "")
    if broken:
        return Test(port, rate, None, broken, is_broken=True)
    gbps = read(output) if code == 0 else None
    return Test(port, rate, gbps, "" if gbps is not None else f"ib_write_bw ended with {code}: {last_line(output) or 'printed nothing'}")


def main() -> None:
    settings = json.loads(sys.argv[1])
    seconds, is_first = settings["seconds"], os.environ.get("SLURM_PROCID", "0") == "0"
    token = os.environ[MEETING]
    partner = next((name for name in settings["nodes"] if name != os.environ.get("SLURMD_NODENAME", "")), "")
    try:
        program, ports, why = find(settings["command"], "ib_write_bw", (), _REMEDY), look(), ""
    except (CannotRunError, OSError, ValueError) as error:
        program, ports, why = [], {}, str(error)
    try:
        if is_first and why:
            result, found = "unknown", why
        elif is_first:
            tests = write(go_to_other(partner, token, seconds + _AROUND_S), partner, program, ports, seconds)
            result, found = judge(tests, settings)
        else:
            line = wait_for_other(token, seconds + _AROUND_S)
            if why:
                line.send(cannot=why)
            else:
                serve(line, program, ports, seconds)
            return
    except (CannotRunError, OSError, KeyError) as error:
        result, found = "unknown", f"the other node did not take part: {error}" if isinstance(error, KeyError) else str(error)
    if is_first:
        print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
