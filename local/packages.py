"""The Debian packages that a local cluster needs. Installs only what is missing, and starts none of the services that come along."""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from local.commands import LocalError, run, succeeds

PACKAGES = {
    "/usr/bin/containerd": "containerd",
    "/usr/sbin/runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "/usr/bin/etcd": "etcd-server",
    "/usr/sbin/nft": "nftables",
    "/usr/sbin/ip": "iproute2",
    "/usr/bin/catatonit": "catatonit",
    "/usr/bin/busybox": "busybox-static",
    "/usr/bin/nsenter": "util-linux",
    "/usr/bin/mount": "mount",
    "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}
"""A file that must be there, and the package that brings it."""

SERVICES = (
    "containerd.service",
    "etcd.service",
    "nftables.service",
    "slapd.service",
    "docker-registry.service",
    "rpcbind.service",
    "rpcbind.socket",
)
"""What these packages, and those of tests, would start at the next boot, on a machine with systemd."""

POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = "#!/bin/sh\n# Slipway is installing packages and starts no services. It removes this file when it is done.\nexit 101\n"


def missing_packages(exists: Iterable[str]) -> list[str]:
    """Packages to install, sorted, given the files of PACKAGES that exist."""
    present = set(exists)
    return sorted({package for path, package in PACKAGES.items() if path not in present})


def find_missing() -> list[str]:
    """Packages that this machine lacks."""
    return missing_packages(path for path in PACKAGES if _exists(path))


def install(packages: list[str]) -> None:
    """Installs Debian packages from the machine's own apt sources. Raises LocalError with apt's output."""
    apt = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3")
    env = dict(os.environ) | {"DEBIAN_FRONTEND": "noninteractive"}
    with _services_kept_off():
        # Finishes an install that was killed: apt refuses everything else until then.
        succeeds(["dpkg", "--force-confold", "--configure", "-a"], timeout_s=600, env=env)
        try:
            run([*apt, "install", "-y", "--no-install-recommends", *packages], env=env, timeout_s=900)
        except LocalError:
            run([*apt, "update"], env=env, timeout_s=300)
            run([*apt, "install", "-y", "--no-install-recommends", *packages], env=env, timeout_s=900)
    if Path("/run/systemd/system").is_dir():
        succeeds(["systemctl", "disable", "--quiet", *(s for s in SERVICES if _brings(packages, s))])
    still = find_missing()
    if still:
        raise LocalError(f"apt-get installed {', '.join(packages)}, but these are still not where Debian has them: {', '.join(still)}")


def _brings(packages: list[str], service: str) -> bool:
    return any(service.rpartition(".")[0] in (package, package.split("-")[0]) for package in packages)


def _exists(path: str) -> bool:
    # Debian before usrmerge and after it disagree on /sbin and /usr/sbin, /bin and /usr/bin.
    names = (path, path.replace("/usr/sbin/", "/usr/bin/"), path.replace("/usr/bin/", "/usr/sbin/"), path.removeprefix("/usr"))
    return any(Path(name).exists() for name in names)


@contextmanager
def _services_kept_off() -> Generator[None]:
    """Debian asks policy-rc.d before it starts a service. The machine's own policy, if any, is restored."""
    moved_policy = POLICY.with_name("policy-rc.d.before-slipway")
    if POLICY.exists() and POLICY.read_text() != POLICY_TEXT:
        POLICY.rename(moved_policy)
    POLICY.write_text(POLICY_TEXT)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
        if moved_policy.exists():
            moved_policy.rename(POLICY)
