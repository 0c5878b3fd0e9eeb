"""`python -m controllers.nodeset`: the NodeSet controller of one Slurm cluster. Its settings are in the environment: settings.py."""

import asyncio
import os
import sys
import time

from controllers.nodeset.controller import Controller
from controllers.nodeset.settings import Settings, SettingsError, read_settings
from controllers.runtime import log
from controllers.runtime.api import connect
from controllers.slurm.client import SlurmClient
from controllers.slurm.tokens import TokenSource


async def serve(settings: Settings) -> int:
    """Runs until it is told to stop; the exit code."""
    async with SlurmClient(settings.slurmrestd, TokenSource(settings.jwt_key, time.time)) as slurm:
        return await Controller(settings, connect(), slurm).run()


def main() -> int:
    """Exit code 2: the environment is wrong."""
    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    log.configure("nodeset-controller", settings.log_level)
    return asyncio.run(serve(settings))


if __name__ == "__main__":
    sys.exit(main())
