"""Runs in the image: has Slurm's own library read whole files, and prints which it takes. python3 slurm_reader.py < JSON.

Standard input is a list of texts of slurm.conf; the answer is a list of truth values. Slurm ends with an error for a text that it refuses,
so each is read by a process of its own.
"""

import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    library = ctypes.CDLL(str(next(Path("/usr/lib").glob("*/slurm-wlm/libslurmfull.so"))))
    library.slurm_conf_init.argtypes = [ctypes.c_char_p]

    def takes(text: str) -> bool:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            child = os.fork()
            if child == 0:
                os.close(1)
                os.close(2)
                os._exit(0 if library.slurm_conf_init(file.name.encode()) == 0 else 1)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    print(json.dumps([takes(text) for text in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
