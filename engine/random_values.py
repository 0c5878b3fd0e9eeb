"""Makes the values of the random provider from the caller's bytes, and the keys under which they are stored. Pure.

Covers RandomBytes, RandomPassword, RandomString, RandomId, RandomUuid and RandomInteger. Others need the Pulumi CLI.
"""

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from engine.faults import SlipwayError

Entropy = Callable[[int], bytes]
"""Returns that many fresh bytes: os.urandom, or a placeholder's stream."""

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_CLASSES = (("upper", "minUpper", _LOWER.upper()), ("lower", "minLower", _LOWER), ("numeric", "minNumeric", "0123456789"))
_SPECIAL = "!@#$%&*()-_=+[]{}<>:?"


def key(type_: str, name: str, inputs: Mapping[str, Any]) -> str:
    """The key of a stored value. Other inputs (a length, a keeper) need a new value, as with the provider."""
    kind = type_.rpartition(":")[2]
    content = hashlib.sha256(json.dumps([type_, name, inputs], sort_keys=True).encode()).hexdigest()
    return f"{kind}.{re.sub(r'[^-_.a-zA-Z0-9]', '-', name)}.{content[:8]}"


def placeholder(value_key: str) -> Entropy:
    """Always the same bytes for a key, so that previews do not differ from run to run. Not secret."""
    block_number = 0

    def read(count: int) -> bytes:
        nonlocal block_number
        block_number += 1
        return hashlib.shake_256(f"placeholder {block_number} {value_key}".encode()).digest(count)

    return read


def make(type_: str, inputs: Mapping[str, Any], entropy: Entropy) -> bytes:
    """A new value in its stored form. Raises SlipwayError for a random type that is not covered."""
    match type_.rpartition(":")[2]:
        case "RandomBytes":
            return entropy(int(inputs["length"]))
        case "RandomId":
            return entropy(int(inputs["byteLength"]))
        case "RandomUuid":
            return str(uuid.UUID(bytes=entropy(16), version=4)).encode()
        case "RandomInteger":
            low, high = int(inputs["min"]), int(inputs["max"])
            return str(low + int.from_bytes(entropy(16), "big") % (high - low + 1)).encode()
        case "RandomPassword" | "RandomString":
            return _text(inputs, entropy).encode()
        case other:
            raise SlipwayError(
                f"random {other} is made by the Pulumi CLI only; use RandomBytes, RandomPassword or RandomId, or `pulumi up`."
            )


def outputs(type_: str, inputs: Mapping[str, Any], value: bytes) -> dict[str, Any]:
    """The provider's output properties of a stored value."""
    match type_.rpartition(":")[2]:
        case "RandomBytes":
            return {"base64": base64.b64encode(value).decode(), "hex": value.hex()}
        case "RandomId":
            prefix = str(inputs.get("prefix") or "")
            standard, url = base64.b64encode(value).decode(), base64.urlsafe_b64encode(value).decode().rstrip("=")
            forms = {"b64Std": standard, "b64Url": url, "hex": value.hex(), "dec": str(int.from_bytes(value, "big"))}
            return {form: prefix + text for form, text in forms.items()}
        case "RandomInteger":
            return {"result": int(value)}
        case _:
            return {"result": value.decode()}


def _text(inputs: Mapping[str, Any], entropy: Entropy) -> str:
    """At least the requested number of characters of each class, the rest from all classes, then shuffled."""
    alphabets = [(int(inputs.get(least) or 0), letters) for name, least, letters in _CLASSES if inputs.get(name, True) is not False]
    if inputs.get("special", True) is not False:
        alphabets.append((int(inputs.get("minSpecial") or 0), str(inputs.get("overrideSpecial") or _SPECIAL)))
    everything = "".join(letters for _, letters in alphabets)
    if not everything:
        raise SlipwayError("A random password or string needs at least one class of characters.")
    picked = [_below(len(letters), entropy, letters) for least, letters in alphabets for _ in range(least)]
    length = int(inputs["length"])
    picked += [_below(len(everything), entropy, everything) for _ in range(length - len(picked))]
    for index in range(len(picked) - 1, 0, -1):
        swapped = int.from_bytes(entropy(16), "big") % (index + 1)
        picked[index], picked[swapped] = picked[swapped], picked[index]
    return "".join(picked[:length])


def _below(limit: int, entropy: Entropy, letters: str) -> str:
    """One letter. With 16 bytes, the bias of the remainder is negligible."""
    return letters[int.from_bytes(entropy(16), "big") % limit]
