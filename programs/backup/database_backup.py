"""Dumps the accounting database into the backup volume, by the CronJob. `python3 -m programs.backup.database_backup`.

The dump gets its name when it is whole, checked and on disk; only then do older ones beyond SLIPWAY_BACKUP_KEEP go. Whatever fails leaves
the older ones and ends with code 1.
"""

import os
import sys
import time

from names import variables
from programs.database.client import Client, DatabaseError
from programs.database.settings import read_database
from slurm.logs import teller
from slurm.pump import take_stderr

from .files import Failed, Folder, free_in, pipe, read_pipe, size_of
from .plan import DATABASE, STATE, age_s, find_fault, is_whole_dump
from .signals import end_at_once

_STAYS = "the older backups stay as they are"

say = teller("database-backup")


def back_up(folder: Folder, client: Client) -> None:
    """Makes one backup. Raises Failed, OSError."""
    host, began = client.database.host, time.monotonic()
    with folder.begin() as (name, partial):
        tables = read_tables(client, "does not answer")
        # One transaction: a state of one moment, and slurmdbd goes on writing. Routines are slurmdbd's own, which it makes at its starts.
        options = ("--single-transaction", "--quick", "--routines", "--no-tablespaces")
        with partial.open("wb") as made:
            is_made = pipe(client.command(*options, program="mariadb-dump"), ["zstd", "--quiet", "-T1"], stdout=made)
        if not is_made:
            free = free_in(folder.path)
            raise Failed(f"FAILED: the dump of {client.database.name} at {host} broke off; {_STAYS} ({free} are free)")
        # zstd checks its sums; mariadb-dump's last line says that it came to its end.
        last = read_pipe(["zstd", "--quiet", "--decompress", "--stdout", partial], ["tail", "-n", "1"])
        if last is None or not is_whole_dump(last):
            raise Failed(f"FAILED: the dump is not whole; {_STAYS}")
        read_tables(client, "does not answer any more")
        try:
            folder.publish(name, partial)
        except OSError as error:
            raise Failed(f"FAILED: the dump could not be written to disk ({error.strerror}); {_STAYS}") from None
    folder.prune(int(os.environ[variables.BACKUP_KEEP]))
    size, taken_s, count = size_of(folder.file(name)), int(time.monotonic() - began), len(folder.read().past)
    say(f"{name}: {len(tables)} tables, {size} in {taken_s} s; there are {count}")


def read_tables(client: Client, silence: str) -> list[str]:
    """The tables of a database that may be backed up. Raises Failed."""
    try:
        tables = client.query("SHOW TABLES")
    except DatabaseError as error:
        raise Failed(f"FAILED: the database at {client.database.host} {silence}: {error}") from None
    if fault := find_fault(tables, client.database.host):
        raise Failed(fault)
    return tables


def has_old_state(interval_s: int) -> bool:
    """True where slurmctld's pod makes no backups of its state. Only its own log has that, so this Job fails too. Raises Failed."""
    folder = Folder("state", STATE, say)
    is_faulty = folder.has_future()
    oldest_s = interval_s * 3
    age = age_s(folder.read(), time.time())
    if age is None or age > oldest_s:
        say(f"FAILED: slurmctld's state has no backup younger than {oldest_s} s. Its pod says why: container state-backup")
        return True
    return is_faulty


def main() -> int:
    end_at_once(143)
    os.umask(0o077)
    folder = Folder("database", DATABASE, say)
    client = Client(read_database(os.environ))
    interval = os.environ.get(variables.STATE_BACKUP_S)
    try:
        client.write_settings()
        back_up(folder, client)
        # A fault that an administrator has to see fails this Job, although its own backup is made.
        faults = [folder.has_future(), bool(interval) and has_old_state(int(interval))]
    except Failed as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"FAILED: {error}; {_STAYS}")
        return 1
    return int(any(faults))


if __name__ == "__main__":
    take_stderr("database-backup")
    sys.exit(main())
