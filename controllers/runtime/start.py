"""Starts a program of controllers/: reads its settings, sets up logs, runs it."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from controllers.runtime import log
from controllers.runtime.environment import ProgramSettings, SettingsError
from slurm import logs

S = TypeVar("S", bound=ProgramSettings)


def main(program: str, read: Callable[[Mapping[str, str]], S], serve: Callable[[S], Coroutine[Any, Any, int]]) -> int:
    """Runs the program and returns its exit code; 2 if the environment is invalid. `program` is the name in its log lines."""
    try:
        settings = read(os.environ)
    except SettingsError as error:
        for fault in str(error).splitlines():
            logs.write(logs.line(program, fault, logs.ERROR))
        return 2
    log.configure(program, settings.log_level)
    return asyncio.run(serve(settings))
