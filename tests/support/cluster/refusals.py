"""How `up` refuses."""

from tests.support.cluster.dev_stack import DevStack


def refusal(stack: DevStack, *options: str, verb: str = "up") -> str:
    """What a failing verb prints; never a stack trace."""
    done = stack.slipway(verb, *options, check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "Traceback" not in said
    return said
