"""Generations of keys: only a higher number in the config makes a new value.

Each generation is a random value of its own, and older generations stay in the stack's state. Deletion protection forbids to delete or
replace a value, and a rotation must still be one change of the config. The first generation has the plain name, so older stacks show no
change.

All are RandomPassword: its id is the word "none", and its result is encrypted in the state. The id of RandomBytes, which older versions
used, is the value itself, and an id is never secret. An import would not help, as the state also keeps the id of an import.
So the Secret of a first generation ignores changes of its data: an older stack keeps the key that it made then.
"""

import pulumi
import pulumi_random as random

from components.objects import SECRET_DATA, encode
from names import annotations

KEY_LENGTH = 64
"""Letters and digits of a key: 380 bits. bcrypt, which the random provider applies to each, accepts at most 72."""
SEED_LENGTH = 32
"""Letters and digits of a seed, which must be 32 bytes: 190 bits, more than the 128 of an Ed25519 key."""


def newest_key(name: str, generation: int, length: int, opts: pulumi.ResourceOptions) -> pulumi.Output[str]:
    """Declares the random values of all generations, named after `name`, and returns the newest in base64 for a Secret."""
    values = [random_text(name if number == 1 else f"{name}-{number}", length, opts) for number in range(1, generation + 1)]
    return pulumi.Output.secret(values[-1].result).apply(encode)


def random_text(name: str, length: int, opts: pulumi.ResourceOptions) -> random.RandomPassword:
    """Random letters and digits, whose value is secret everywhere in the state."""
    return random.RandomPassword(name, length=length, special=False, opts=opts)


def ignored(generation: int = 1, keep: bool = False) -> list[str]:
    """The fields of a key's Secret whose changes are ignored: its data in the first generation, or if the config keeps the key."""
    return [SECRET_DATA] if generation == 1 or keep else []


def marks(generation: int, keep: bool) -> dict[str, str]:
    """Annotations of a key's Secret that show previews a generation without a new key."""
    return {**({annotations.GENERATION: str(generation)} if generation > 1 else {}), **({annotations.KEPT: "true"} if keep else {})}


def pod_marks(**generations: int) -> dict[str, str]:
    """Annotations of a pod that reads keys only at its start: a new generation rolls it. The first generation adds none."""
    return {annotations.key_generation(key): str(number) for key, number in generations.items() if number > 1}
