"""The volume of the shared root, as the dev stack has it."""

from configs import images
from tests.support.cluster.dev_stack import ROOT, DevStack


def root_image() -> str:
    """What the version that the dev stack deploys is filled from."""
    return images.reference("root", ROOT)


def run(stack: DevStack, script: str) -> str:
    """What a job printed."""
    job = stack.submit(f"#!/bin/bash\n{script}\n", "--output=root.%j", "--nodelist=cpu-0")
    stack.wait_for_job(job)
    return stack.ssh(f"cat root.{job}").strip()
