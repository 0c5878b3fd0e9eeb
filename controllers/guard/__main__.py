"""`python -m controllers.guard`: the guard of one Slurm cluster. Its settings are in the environment: settings.py."""

import sys

from controllers.guard.guard import Guard
from controllers.guard.settings import Settings, read_settings
from controllers.runtime import program
from controllers.runtime.api import connect
from controllers.runtime.clock import SYSTEM
from controllers.runtime.informer import DEAF_S
from controllers.runtime.serve import served
from controllers.runtime.start import main


async def serve(settings: Settings) -> int:
    """Runs until it is told to stop; the exit code."""
    api = connect()
    guard = Guard(api, settings.namespace, settings.cluster, settings.identity, SYSTEM)
    informers = {"record": guard.record_informer, "times of CronJobs": guard.cron_jobs, **guard.informers}

    def deaf() -> str:
        silent = [name for name, informer in informers.items() if informer.synced.is_set() and informer.silent_s() > DEAF_S]
        return f"nothing heard for {DEAF_S:.0f} s of: {', '.join(silent)}" if silent else ""

    def unsynced() -> str:
        late = [name for name, informer in informers.items() if not informer.synced.is_set()]
        return f"not listed yet: {', '.join(late)}" if late else ""

    try:
        async with served(settings, live={"informers": deaf}, ready={"informers": unsynced}):
            return await program.run({f"informer of {name}": informer.run for name, informer in informers.items()}, {"guard": guard.run})
    finally:
        await api.close()


if __name__ == "__main__":
    sys.exit(main("guard", read_settings, serve))
