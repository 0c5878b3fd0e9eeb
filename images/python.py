"""The machine's settings for installing Python packages in a build: pip's settings and the certificates that it trusts.

Both are secrets of the build, so neither stays in the image.
"""

import configparser
import io
import re
import sys
from pathlib import Path

from images.steps import run

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""Where Debian keeps all certificates in one file."""

_CARRIED = ("extra-index-url", "index-url", "no-index", "proxy", "retries", "timeout", "default-timeout", "trusted-host")
_LINE = re.compile(r"(?P<section>[^.]+)\.(?P<key>[a-z-]+)='(?P<value>.*)'")


def pip_settings(listing: str) -> str:
    """The settings of `pip config list` that reach a package index, as a pip.conf. As in pip, the environment wins."""
    settings = [setting for line in listing.splitlines() if (setting := _LINE.fullmatch(line))]
    settings.sort(key=lambda setting: (setting["section"] == ":env:", setting["section"] == "install"))
    carried = {setting["key"]: setting["value"].replace("\\n", "\n") for setting in settings if setting["key"] in _CARRIED}
    parser = configparser.RawConfigParser()
    parser["global"] = {"timeout" if key == "default-timeout" else key: value for key, value in carried.items()}
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def certificates(listing: str) -> Path:
    """The file of certificates that pip trusts on this machine: pip's `cert`, else Debian's own."""
    paths = [match["value"] for line in listing.splitlines() if (match := _LINE.fullmatch(line)) and match["key"] == "cert"]
    return Path(paths[-1]) if paths else CERTIFICATES


def write_settings(folder: Path, log: Path) -> dict[str, Path]:
    """The build's secrets by name: `pip` is a pip.conf, `certificates` a PEM file where the machine has one."""
    listing = run([sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"], log)
    settings = folder / "pip.conf"
    settings.write_text(pip_settings(listing))
    trusted = certificates(listing)
    return {"pip": settings, **({"certificates": trusted} if trusted.exists() else {})}
