"""MailProg: leaves a mail for the container that sends it, and ends, so slurmctld never waits for a relay.

`python3 -m programs.mail.accept -s SUBJECT ADDRESS`, as slurmctld runs it. Nobody reads its output; the other container logs lost mails.
"""

import os
import sys
import time

from .message import KEPT
from .spool import Spool, Waiting


def main(arguments: list[str]) -> int:
    if len(arguments) != 3 or arguments[0] != "-s":
        return 2
    job = {key: value for key, value in os.environ.items() if key.startswith(KEPT)}
    return 0 if Spool().add(Waiting(time.time(), arguments[1], arguments[2], job)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
