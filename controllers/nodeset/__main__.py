"""`python -m controllers.nodeset`: the NodeSet controller of one Slurm cluster. Its settings are in the environment: settings.py."""

import sys
import time

from controllers.nodeset.controller import Controller
from controllers.nodeset.settings import Settings, read_settings
from controllers.runtime.api import connect
from controllers.runtime.start import main
from controllers.slurm.client import SlurmClient
from controllers.slurm.tokens import TokenSource


async def serve(settings: Settings) -> int:
    """Runs until it is told to stop; the exit code."""
    async with SlurmClient(settings.slurmrestd, TokenSource(settings.jwt_key, time.time)) as slurm:
        return await Controller(settings, connect(), slurm).run()


if __name__ == "__main__":
    sys.exit(main("nodeset-controller", read_settings, serve))
