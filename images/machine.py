"""The settings of this machine that a root needs to install packages: apt, pip, uv, proxies and certificates.

Builds use the same settings (`debian`, `python`), but leave none in an image: an image is for any machine.
"""

import configparser
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from images.debian import read_settings
from images.python import pip_settings
from images.steps import run

APT, PIP, UV, PROFILE = "etc/apt/apt.conf.d/90machine", "etc/pip.conf", "etc/uv/uv.toml", "etc/profile.d/90-machine.sh"
AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""Where an administrator of Debian puts certificates to trust; `update-ca-certificates` takes them from there."""

_PROXIES = ("http_proxy", "https_proxy")
_LOOPBACK = ("localhost", "127.", "[::1]")


def render_settings(
    apt: list[str], pip: str, environment: Mapping[str, str], authorities: Mapping[str, str], no_proxy: str = ""
) -> dict[str, str]:
    """The files, by their paths from the root. `apt` are lines of an apt.conf, `pip` is a pip.conf, `authorities` PEM files by name.

    `no_proxy` lists hosts to reach without a proxy, in addition to the environment's.
    """
    proxies = {key: value for key in _PROXIES if (value := environment.get(key) or environment.get(key.upper()))}
    lines = list(apt)
    for key, value in proxies.items():
        setting = f"Acquire::{key.removesuffix('_proxy')}::Proxy"
        if not any(line.lower().startswith(setting.lower()) for line in lines):
            lines.append(f'{setting} "{value}";')
    files = {APT: "".join(f"{line}\n" for line in lines)} if lines else {}
    if "=" in pip:
        files[PIP] = pip
    if indexes := uv_settings(pip):
        files[UV] = indexes
    if proxies:
        except_ = ",".join(filter(None, [environment.get("no_proxy") or environment.get("NO_PROXY") or "", no_proxy]))
        values = {**proxies, "no_proxy": except_}
        exports = [f"export {name}='{value}'" for key, value in values.items() for name in (key, key.upper())]
        files[PROFILE] = "".join(f"{line}\n" for line in exports)
    return files | {f"{AUTHORITIES.relative_to('/')}/{name}": text for name, text in authorities.items()}


def uv_settings(pip: str) -> str:
    """The package indexes of a pip.conf as a uv.toml: uv does not read pip's file. Empty if pip uses its default index.

    Like pip, uv then takes the best version of all indexes. The file replaces the image's own, so it repeats that file's line.
    """
    parser = configparser.RawConfigParser()
    parser.read_string(pip)

    def said(key: str) -> list[str]:
        return parser.get("global", key, fallback="").split()

    default, more = "".join(said("index-url")[:1]), said("extra-index-url")
    if not default and not more:
        return ""
    lines = ["system-certs = true", f"allow-insecure-host = {json.dumps(said('trusted-host'))}"]
    if more:
        lines.append('index-strategy = "unsafe-best-match"')
    for url in more:
        lines += ["", "[[index]]", f"url = {json.dumps(url)}"]
    if default:
        lines += ["", "[[index]]", f"url = {json.dumps(default)}", "default = true"]
    return "".join(f"{line}\n" for line in lines)


def find_unreachable(files: Mapping[str, str]) -> list[str]:
    """Lines that name the machine's own loopback: from a pod, nothing is there."""
    texts = [text for path, text in files.items() if path in (APT, PIP, UV, PROFILE)]
    lines = [line for text in texts for line in text.splitlines() if "no_proxy" not in line.lower()]
    return [line for line in lines if any(f"//{host}" in line for host in _LOOPBACK)]


def read_machine(environment: Mapping[str, str], no_proxy: str, log: Path) -> dict[str, str]:
    """The files that this machine needs; none on most machines. Raises BuildError."""
    listing = run([sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"], log)
    certificates = sorted(AUTHORITIES.glob("**/*.crt")) if AUTHORITIES.is_dir() and shutil.which("update-ca-certificates") else []
    authorities = {str(file.relative_to(AUTHORITIES)): file.read_text() for file in certificates}
    return render_settings(read_settings(log), pip_settings(listing), environment, authorities, no_proxy)
