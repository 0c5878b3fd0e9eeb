"""`slipway` without the three seconds in which it imports Pulumi: a process that has done so forks for each command.

The commands of guides and of `make` run as users' do; tests that only need their effect run them here.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cli.__main__ import RARELY


class Warm:
    """A process that runs commands of `slipway` one after another, each in a fork of its own."""

    def __init__(self, root: Path) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cluster.warm"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Runs one command in these variables. Raises TimeoutExpired after `timeout_s`, when the command has been killed."""
        assert self._server.stdin
        assert self._server.stdout
        with tempfile.TemporaryDirectory() as folder:
            said = {"arguments": [*arguments], "variables": dict(variables), "folder": folder, "timeout": timeout_s}
            self._server.stdin.write(json.dumps(said) + "\n")
            code = int(self._server.stdout.readline())
            stdout, stderr = ((Path(folder) / name).read_text() for name in ("stdout", "stderr"))
        argv = ["slipway", *arguments]
        if code == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(argv, timeout_s, stdout, stderr)
        return subprocess.CompletedProcess(argv, code, stdout, stderr)


@cache
def warm() -> Warm:
    """One for all tests of a process."""
    return Warm(Path(__file__).parents[3])


def serve() -> None:
    """Answers each line on standard input, a command, with its exit code."""
    gc.set_threshold(*RARELY)
    importlib.import_module("components.cluster")  # as the stack file's program does
    cli = importlib.import_module("cli.main")
    gc.freeze()
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(asked)
            code = 1
            try:
                cli.main(asked["arguments"])
                code = 0
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else int(error.code is not None)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(asked: Mapping[str, Any]) -> None:
    """The fork has the command's variables, no standard input, and its output in files. An alarm ends it in time."""
    os.environ.clear()
    os.environ.update(asked["variables"])
    for number, name in ((0, os.devnull), (1, f"{asked['folder']}/stdout"), (2, f"{asked['folder']}/stderr")):
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, number)
        os.close(file)
    signal.alarm(max(1, round(asked["timeout"])))


if __name__ == "__main__":
    serve()
