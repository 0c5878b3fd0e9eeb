"""`python -m controllers.ec2`: the program for EC2 of one Slurm cluster. Its settings are in the environment: settings.py."""

import sys

from controllers.ec2.client import Ec2
from controllers.ec2.settings import STEPS_PATH, Settings, read_settings
from controllers.ec2.source import Source
from controllers.ec2.steps import Steps
from controllers.runtime import program, serve
from controllers.runtime.api import connect
from controllers.runtime.informer import DEAF_S
from controllers.runtime.start import main


async def run(settings: Settings) -> int:
    """Runs until it is told to stop; the exit code."""
    api = connect()
    ec2 = Ec2(settings.region)
    source, steps = Source(settings, api, ec2), Steps(settings, api, ec2)

    def deaf() -> str:
        machines = source.machines
        return f"nothing heard of Kubernetes nodes for {DEAF_S:.0f} s" if machines.synced.is_set() and machines.silent_s() > DEAF_S else ""

    try:
        async with serve.served(settings, live={"informer": deaf}, ready={"EC2": source.fault}):
            requests = await serve.listener(posts={STEPS_PATH: steps.take}).start(settings.requests_port)
            try:
                return await program.run({"informer of machines": source.machines.run, "source": source.run}, {})
            finally:
                requests.close()
    finally:
        await api.close()


if __name__ == "__main__":
    sys.exit(main("ec2", read_settings, run))
