"""What the root of a running cluster needs of this machine: files that an admin's session puts there."""

import io
import subprocess
import tarfile
from collections.abc import Mapping, Sequence


def send_settings(ssh: Sequence[str], files: Mapping[str, str]) -> tuple[bool, str]:
    """Puts files, by their paths from the root, into the root of the user's sessions, as an admin would. `ssh` is the prefix that runs a
    command line there.

    Gives True and what the root has, or False and why it lacks them. The user may lack an admin's rights, or the root may be read-only.
    """
    if not files:
        return True, ""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path, text in sorted(files.items()):
            about = tarfile.TarInfo(path)
            about.size, about.mode = len(text.encode()), 0o644
            archive.addfile(about, io.BytesIO(text.encode()))
    trust = " && sudo -n update-ca-certificates >/dev/null" if any(path.endswith(".crt") for path in files) else ""
    command = [*ssh, f"sudo -n tar --extract --no-overwrite-dir --directory=/{trust}"]
    try:
        done = subprocess.run(command, input=content.getvalue(), capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return False, "the settings of this machine did not get into the root within 60 s"
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return False, f"the settings of this machine did not get into the root: {last}"
    return True, f"the root has this machine's settings: /{', /'.join(sorted(files))}"
