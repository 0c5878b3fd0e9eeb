"""Generations of keys: a higher number in the config makes a new value, and nothing else does.

Each generation is a random value of its own and the older ones stay in the stack's state: with deletion protection a value may neither go
nor be replaced, and a rotation must still be one change of the config. The first has the plain name, so that older stacks show no change.

All are RandomPassword: its id is the word "none" and its result is encrypted in the state. The id of RandomBytes, which older versions
used, is the value itself, and an id is never secret. An import would not help: the state keeps what was imported by, too.
So a key of an older version moves with its Secret: the Secret of a first generation ignores changes of its data, which keeps in an older
stack the key that was made then, and in a new one the key that is made now. Only a further generation changes it.
"""

import pulumi
import pulumi_random as random

from components.objects import SECRET_DATA, encode
from names import annotations

KEY_LENGTH = 64
"""Letters and digits of a key: 380 bits. bcrypt, which the random provider adds to each, takes no more than 72."""
SEED_LENGTH = 32
"""Letters and digits of a seed that has to be 32 bytes: 190 bits, more than the 128 that an Ed25519 key is good for."""


def newest_key(name: str, generation: int, length: int, opts: pulumi.ResourceOptions) -> pulumi.Output[str]:
    """Makes the random values of all generations, called after `name`, and gives the newest as the data of a Secret wants it."""
    values = [random_text(name if number == 1 else f"{name}-{number}", length, opts) for number in range(1, generation + 1)]
    return pulumi.Output.secret(values[-1].result).apply(encode)


def random_text(name: str, length: int, opts: pulumi.ResourceOptions) -> random.RandomPassword:
    """Random letters and digits whose value is a secret everywhere in the state."""
    return random.RandomPassword(name, length=length, special=False, opts=opts)


def ignored(generation: int = 1, keep: bool = False) -> list[str]:
    """What a key's Secret ignores: its data in the first generation, and as long as the config says to keep the key."""
    return [SECRET_DATA] if generation == 1 or keep else []


def marks(generation: int, keep: bool) -> dict[str, str]:
    """Annotations of a key's Secret, by which a preview sees a generation that makes no key."""
    return {**({annotations.GENERATION: str(generation)} if generation > 1 else {}), **({annotations.KEPT: "true"} if keep else {})}


def pod_marks(**generations: int) -> dict[str, str]:
    """Annotations of a pod that reads keys only as it starts: with a new generation it is another pod. The first leaves no mark."""
    return {annotations.key_generation(key): str(number) for key, number in generations.items() if number > 1}
