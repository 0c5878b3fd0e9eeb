"""Public keys as OpenSSH writes them: what is wrong with a line, if anything. Source: RFC 4253 6.6 and sshd(8), AUTHORIZED_KEYS."""

import base64
import binascii
import struct
from enum import Enum

LEAST_RSA_BITS = 2048
_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


class KeyFault(Enum):
    """What can be wrong with a line; the value finishes a sentence that begins with "a key"."""

    PRIVATE = "is a private key, which no one else may see"
    UNKNOWN = "is not one line of a public key that starts with its type"
    BROKEN = "is cut short or altered"
    WEAK = f"is an RSA key of fewer than {LEAST_RSA_BITS} bits, which sshd refuses"


def key_fault(line: str) -> KeyFault | None:
    """The fault of a public key, or None. Options before the type are refused: they could run a command or trust a whole authority."""
    if "PRIVATE KEY" in line:
        return KeyFault.PRIVATE
    parts = line.split()
    if not parts or parts[0] not in _TYPES or not line.isprintable():
        return KeyFault.UNKNOWN
    try:
        fields = _fields(base64.b64decode(parts[1], validate=True)) if len(parts) > 1 else []
    except (binascii.Error, struct.error, ValueError):
        fields = []
    if len(fields) < 2 or fields[0] != parts[0].encode():
        return KeyFault.BROKEN
    if parts[0] == "ssh-ed25519" and len(fields[1]) != 32:
        return KeyFault.BROKEN
    if parts[0] == "ssh-rsa" and (len(fields) < 3 or int.from_bytes(fields[2], "big").bit_length() < LEAST_RSA_BITS):
        return KeyFault.WEAK
    return None


def _fields(data: bytes) -> list[bytes]:
    fields: list[bytes] = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if at + 4 + length > len(data):
            raise ValueError("a field is longer than the data")
        fields.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return fields
