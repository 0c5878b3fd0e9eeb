"""The argument of the program that sends mail; components/mail.py writes it. The credentials are in separate files."""

import json

from slurm.records import record


@record
class Settings:
    """The relay."""

    host: str
    port: int
    sender: str
    """The From address."""
    tls: str
    """starttls, tls or none."""
    ca_file: str
    """Empty: the CAs of the system."""
    credentials: str
    """Folder of the files `username` and `password`; empty: no login."""


def to_json(settings: Settings) -> str:
    """The argument."""
    return json.dumps(vars(settings), sort_keys=True)


def from_json(text: str) -> Settings:
    """Reads what `to_json` wrote."""
    return Settings(**json.loads(text))
