"""Runs in the image: has the parser in Slurm's own library read files, and prints what it read. python3 slurm_parser.py KEYS < JSON.

KEYS are the keys that it is to know, with commas; those of whole lines have a `+` behind them. Standard input is a list of texts; the
answer is a list, for each text the pairs of key and value in the order of the file, or null where Slurm ends with an error.
"""

import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

_POINTER = ctypes.c_void_p
_HANDLER = ctypes.CFUNCTYPE(
    ctypes.c_int, _POINTER, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_POINTER)
)
_ARRAY = 7
"""S_P_ARRAY of Slurm's src/common/parse_config.h: a key that may come many times, each handed to a function."""


class _Option(ctypes.Structure):
    """s_p_options_t of 26.05; the last four fields are of no use here."""

    _fields_ = [("key", ctypes.c_char_p), ("type", ctypes.c_int), ("op", ctypes.c_int), ("handler", _HANDLER), ("rest", _POINTER * 4)]


def main() -> None:
    library = ctypes.CDLL(str(next(Path("/usr/lib").glob("*/slurm-wlm/libslurmfull.so"))))
    library.slurm_s_p_hashtbl_create.restype = _POINTER
    library.slurm_s_p_parse_file.argtypes = [_POINTER] * 5
    seen: list[list[str]] = []

    def handle(_data: object, _type: int, key: bytes, value: bytes, _line: bytes, leftover: Any) -> int:
        seen.append([key.decode().rstrip("+"), value.decode(errors="replace")])
        if key in lines:  # the rest of the line is this key's own
            rest = ctypes.string_at(leftover[0] or 0)
            seen[-1].append(rest.decode(errors="replace").strip(" \t\r\n"))
            leftover[0] = (leftover[0] or 0) + len(rest)
        return 0

    handler = _HANDLER(handle)
    names = sys.argv[1].split(",")
    lines = {name.rstrip("+").encode() for name in names if name.endswith("+")}
    options = (_Option * (len(names) + 1))()
    for at, name in enumerate(names):
        options[at] = _Option(name.rstrip("+").encode(), _ARRAY, 0, handler)

    def read(text: str) -> list[list[str]] | None:
        """In a process of its own: an error ends it."""
        with tempfile.NamedTemporaryFile("w", newline="") as file:
            file.write(text)
            file.flush()
            end, begin = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(2)
                hashed, path = ctypes.c_uint32(), ctypes.create_string_buffer(file.name.encode())
                table = library.slurm_s_p_hashtbl_create(options)
                code = library.slurm_s_p_parse_file(table, ctypes.addressof(hashed), ctypes.addressof(path), 0, 0)
                os.write(begin, json.dumps(seen if code == 0 else None).encode())
                os._exit(0)
            os.close(begin)
            with os.fdopen(end) as answer:
                said = answer.read()
            os.waitpid(child, 0)
            return json.loads(said) if said else None

    print(json.dumps([read(text) for text in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
