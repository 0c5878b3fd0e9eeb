"""Why a step has no container, in one line for the job's stderr."""

import re
import signal


class Refused(Exception):
    """Why there is no container, in one line for the job's stderr."""


class Outage(Refused):
    """The registry does not answer: a copy from before will do."""


_LOGIN = r"unauthorized|authentication required|access to the resource is denied|denied: |invalid username|no basic auth"
_MISSING = r"manifest unknown|name unknown|not found|status(?: code)?:? 404"
_UNTRUSTED = r"x509|certificate|server gave http response to https"
_SILENT = (
    r"connection refused|no such host|server misbehaving|timeout|deadline exceeded|unreachable|connection reset|\beof\b|temporary failure|"
    r"status(?: code)?:? 50\d"
)


def explain(output: str, image: str, host: str) -> Refused:
    """One line for an error of skopeo, umoci or unsquashfs."""
    low = output.lower()
    if "no space left" in low or "disk quota" in low:
        return Refused(f"{image} does not fit on this node's disk for containers")
    if re.search(_LOGIN, low):
        login = f"skopeo login --authfile ~/.config/containers/auth.json {host}"
        return Refused(f"{image} needs a login, or does not exist: run {login}, or check the name")
    if re.search(_UNTRUSTED, low):
        return Refused(f"{host} cannot be trusted ({last_line(output)}): see /etc/containers/certs.d and registries.conf")
    if re.search(_SILENT, low):
        return Outage(f"the registry {host} does not answer ({last_line(output)})")
    if re.search(_MISSING, low):
        return Refused(f"there is no image {image}: check its name and tag")
    return Refused(f"{image}: {last_line(output)}")


def explain_kill(program: str, signal_number: int, image: str) -> Refused:
    """One line for a program that a signal ended: the kernel sends SIGKILL when the job's memory is used up."""
    if signal_number == signal.SIGKILL:
        return Refused(f"{image}: {program} was killed, as programs are when the job's memory is used up: give the job more (--mem)")
    return Refused(f"{image}: {program} was ended by signal {signal_number}")


def last_line(output: str) -> str:
    """The last line of a program's output, without its log's decoration."""
    lines = [line for line in output.strip().splitlines() if line.strip()]
    line = lines[-1] if lines else "it said nothing"
    _, mark, message = line.partition('msg="')
    return (message.rstrip('"') if mark else line)[-300:]
