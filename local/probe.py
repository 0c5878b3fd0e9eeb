"""Asks the kernel for the features that the local cluster needs, in namespaces that vanish with this process. Prints one missing feature a
line.

Run as `unshare --net --mount --propagation=private python -m local.probe LOWER UPPER`. Speaks netlink: `ip` and `nft` may be missing yet.
"""

import ctypes
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 0x1, 0x4, 0x400
NLMSG_ERROR = 2
RTM_NEWLINK, IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND = 16, 3, 18, 1
NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN = 12, 10, 16


def attribute(kind: int, value: bytes) -> bytes:
    """One netlink attribute, padded to four bytes."""
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust((4 + len(value) + 3) & ~3, b"\0")


def message(kind: int, flags: int, body: bytes) -> bytes:
    """One netlink message that asks to be acknowledged."""
    return struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body


def reply_error(reply: bytes) -> int:
    """The error number in a netlink reply; 0 when it is an acknowledgement or an answer."""
    kind = struct.unpack_from("=IH", reply)[1]
    return -struct.unpack_from("=i", reply, 16)[0] if kind == NLMSG_ERROR else 0


def ask(family: int, request: bytes) -> None:
    """Sends one request. Raises OSError with the kernel's error."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family) as kernel:
        kernel.settimeout(5)
        kernel.send(request)
        error = reply_error(kernel.recv(65536))
    if error:
        raise OSError(error, os.strerror(error))


def add_link(kind: str) -> None:
    """Makes a link of this kind in the present network namespace."""
    info = attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, kind.encode()))
    body = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attribute(IFLA_IFNAME, b"probe\0") + info
    ask(0, message(RTM_NEWLINK, NLM_F_CREATE, body))


def ask_nftables() -> None:
    """Reads the generation of the (empty) ruleset."""
    ask(NETLINK_NETFILTER, message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN, 0, struct.pack("=BBH", 0, 0, 0)))


def mount_overlay(lower: Path, upper: Path) -> None:
    """Mounts an overlay of a folder in `lower` with one in `upper`, in the present mount namespace."""
    with tempfile.TemporaryDirectory(dir=lower) as below, tempfile.TemporaryDirectory(dir=upper) as above:
        for name in ("upper", "work", "merged"):
            (Path(above) / name).mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"lowerdir={below},upperdir={above}/upper,workdir={above}/work".encode()
        if libc.mount(b"overlay", f"{above}/merged".encode(), b"overlay", 0, options):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        libc.umount2(f"{above}/merged".encode(), 0)
        # overlayfs leaves a folder without rights in its work folder.
        for folder in Path(above, "work").iterdir():
            folder.rmdir()


def missing(probes: dict[str, Callable[[], None]]) -> list[str]:
    """Names of the probes that failed, each with the kernel's reason."""
    failed: list[str] = []
    for name, probe in probes.items():
        try:
            probe()
        except OSError as error:
            failed.append(f"{name} ({error.strerror})")
    return failed


if __name__ == "__main__":
    found = missing(
        {
            "bridge": lambda: add_link("bridge"),
            "veth": lambda: add_link("veth"),
            "nftables": ask_nftables,
            "overlay": lambda: mount_overlay(Path(sys.argv[1]), Path(sys.argv[2])),
        }
    )
    print("\n".join(found))
