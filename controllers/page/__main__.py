"""`python -m controllers.page`: the web page of one Slurm cluster. Its settings are in the environment: settings.py."""

import sys
import time

from controllers.page.program import StatusPage, probes
from controllers.page.settings import Settings, read_settings
from controllers.runtime import program, serve
from controllers.runtime.api import connect
from controllers.runtime.informer import DEAF_S
from controllers.runtime.start import main
from controllers.slurm.client import SlurmClient
from controllers.slurm.tokens import TokenSource


async def run(settings: Settings) -> int:
    """Runs until it is told to stop; the exit code."""
    api = connect()
    async with SlurmClient(settings.slurmrestd, TokenSource(settings.jwt_key, time.time)) as slurm:
        page = StatusPage(settings, api, slurm)
        try:
            async with serve.served(settings, live=probes(page, DEAF_S), ready={}, pages=page.site.pages):
                informers = {"informer of node sets": page.node_sets.run, "informer of Slurm nodes": page.slurm_nodes.run}
                return await program.run({**informers, "readings": page.run, "news": page.tell_often}, {})
        finally:
            await api.close()


if __name__ == "__main__":
    sys.exit(main("page", read_settings, run))
