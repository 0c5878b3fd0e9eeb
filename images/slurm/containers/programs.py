"""The programs that fetch and unpack images, with the user's logins."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .references import Reference
from .refusals import Outage, Refused, explain, explain_kill

SKOPEO, UMOCI, UNSQUASHFS = "/usr/bin/skopeo", "/usr/bin/umoci", "/usr/bin/unsquashfs"
STALL_S = 60
"""A registry that sends nothing for so long has gone."""


def needs_tools(kind: str) -> list[str]:
    """Programs that an image takes."""
    return [UNSQUASHFS] if kind == "squashfs" else [SKOPEO, UMOCI]


def run_policy() -> list[str]:
    """skopeo's option if nobody has set which signatures images need: without a policy file skopeo refuses all images."""
    policies = (Path("/etc/containers/policy.json"), Path("~/.config/containers/policy.json").expanduser())
    return [] if any(policy.exists() for policy in policies) else ["--insecure-policy"]


def run_skopeo(arguments: Sequence[str], reference: Reference, image_name: str, authfile: str | None = None) -> bytes:
    """What skopeo prints. Raises Refused in words for a person."""
    any_policy = run_policy()
    more = ["--authfile", authfile] if authfile else []
    done = subprocess.run(
        [SKOPEO, "--command-timeout", "60s", *any_policy, *arguments[:1], *more, *arguments[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    check_signal(SKOPEO, done.returncode, image_name)
    if done.returncode:
        raise explain(done.stderr.decode(errors="replace"), image_name, reference.host)
    return done.stdout


def check_signal(program: str, code: int, image_name: str) -> None:
    """Raises Refused where a signal ended the program."""
    if code < 0:
        raise explain_kill(Path(program).name, -code, image_name)


def run_copy(source: str, layout: Path, reference: Reference, image_name: str, authfile: str | None) -> None:
    """Fetches an image into an OCI layout; gives up when nothing has come for a minute."""
    any_policy = run_policy()
    more = ["--src-authfile", authfile] if authfile else []
    command = [SKOPEO, *any_policy, "copy", "--quiet", *more, source, f"oci:{layout}:image"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        before, since = -1, time.monotonic()
        errors = b""
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02 if before < 0 else 0.2)
            errors += process.stderr.read() or b""
            if process.returncode is not None:
                break
            if (now := run_bytes(layout)) != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                process.kill()
                raise Outage(f"the registry {reference.host} has sent nothing for {STALL_S} s")
    check_signal(SKOPEO, process.returncode, image_name)
    if process.returncode:
        raise explain(errors.decode(errors="replace"), image_name, reference.host)


def run_bytes(layout: Path) -> int:
    """Bytes that have come so far."""
    total = 0
    for folder, _, files in os.walk(layout):
        for name in files:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_size
    return total


def run_tool(command: Sequence[str], reference: Reference, image_name: str, allowed: Sequence[int] = (0,)) -> None:
    """Runs a program that unpacks an image. Raises Refused."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check_signal(command[0], done.returncode, image_name)
    output = (done.stderr + done.stdout).decode(errors="replace")
    if done.returncode not in allowed or "no space left" in output.lower():
        raise explain(output, image_name, reference.host)


def run_enroot_login(reference: Reference, folder: Path) -> str | None:
    """A login file for skopeo, from the user's enroot login, if the user has none for skopeo. None without a login."""
    home = Path.home()
    credentials = home / ".config/enroot/.credentials"
    named = [os.environ.get("REGISTRY_AUTH_FILE"), home / ".config/containers/auth.json", home / ".docker/config.json"]
    for candidate in named:
        with suppress(OSError, ValueError):
            if candidate and reference.host in json.loads(Path(candidate).read_text()).get("auths", {}):
                return None
    if not credentials.is_file():
        return None
    import base64
    import netrc

    try:
        login = netrc.netrc(str(credentials)).authenticators(reference.host)
    except (OSError, netrc.NetrcParseError) as error:
        raise Refused(f"~/.config/enroot/.credentials: {error}") from None
    if login is None:
        return None
    word = base64.b64encode(f"{login[0]}:{os.path.expandvars(login[2] or '')}".encode()).decode()
    file = folder / f"auth.{os.getpid()}.json"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as stream:
        json.dump({"auths": {reference.host: {"auth": word}}}, stream)
    return str(file)
