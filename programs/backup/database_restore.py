"""Fills an empty accounting database from the backup that backup.restoreFrom names, before the database is used.

If there are backups and the key is not set, it waits for that. `python3 -m programs.backup.database_restore`.

A database with records is never touched. If it is killed half-way, the next start begins again: half a restore never counts. With
SLIPWAY_MARIADB_HOST: over the network, before slurmdbd starts. Without: the data folder of the cluster's own MariaDB, before that starts.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from names import paths, variables
from programs.database.client import Client, DatabaseError
from programs.database.client import run as run_client
from programs.database.settings import read_database
from slurm.logs import teller
from slurm.pump import take_stderr

from .files import Failed, Folder, pipe, size_of, sync
from .plan import DATABASE, MARKER
from .signals import end_at_once

DATA = Path(f"{paths.MARIADB}/data")
RUN = Path(paths.MARIADB_RUN)
_NAME = "slurm_acct_db"
_TRIES = 600
_PAUSE_S = 0.2
_STOP_S = 30

say = teller("database-restore")


def fill(folder: Folder, name: str, client: list[str]) -> None:
    """Has a client program read a backup. Routines become the importing user's: their maker may be unknown here. Raises Failed."""
    file = folder.file(name)
    say(f"restoring {file} ({size_of(file)})")
    if subprocess.run(["zstd", "--quiet", "--test", file], check=False).returncode:
        raise Failed(folder.tell_damaged(name))
    without_maker = ["sed", "-E", r"s/^CREATE DEFINER=`[^`]*`@`[^`]*` /CREATE /"]
    if not pipe(["zstd", "--quiet", "--decompress", "--stdout", file], without_maker, client):
        raise Failed(f"FAILED: the restore of {file} broke off; it starts over")


def restore_over_network(folder: Folder) -> None:
    """Fills an external database that has no tables, or half of a restore. Raises Failed, DatabaseError, OSError."""
    began = time.monotonic()
    client = Client(read_database(os.environ))
    host = client.database.host
    client.write_settings()
    client.wait(say)
    tables = client.query("SHOW TABLES")
    if tables and MARKER not in tables:
        say(f"the database at {host} has its tables; nothing to restore")
        return
    chosen = folder.await_choice(f"the database at {host}")
    if not chosen and not tables:
        return
    client.query(f"CREATE TABLE IF NOT EXISTS {MARKER} (id int)")  # while it is there, all else is half a restore
    for table in tables:
        if table != MARKER:
            client.query(f"SET FOREIGN_KEY_CHECKS=0; DROP TABLE `{table}`")
    if chosen:
        fill(folder, chosen, client.command())
    client.query(f"DROP TABLE {MARKER}")
    if chosen:
        say(f"restored {chosen} into the database at {host} in {int(time.monotonic() - began)} s")


def restore_data_folder(folder: Folder) -> None:
    """Makes the data folder of a MariaDB that has none yet. Raises Failed, DatabaseError, CalledProcessError, OSError."""
    began = time.monotonic()
    if DATA.is_dir():
        say("the data folder is there; nothing to restore")
        return
    chosen = folder.await_choice("the database")
    if not chosen:
        return  # mariadb.sh makes an empty one
    partial, socket = DATA.with_name(f"{DATA.name}.partial"), RUN / "restore.sock"
    subprocess.run(["rm", "-rf", partial], check=True)
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={partial}"]
    subprocess.run([*install, "--skip-test-db", "--skip-name-resolve", "--auth-root-socket-user=mysql"], stdout=sys.stderr, check=True)
    server = subprocess.Popen(server_command(partial, socket))
    client = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=mysql", "--max-allowed-packet=16M"]
    try:
        await_server(server, [*client, "--execute", f"CREATE DATABASE IF NOT EXISTS {_NAME}"])
        fill(folder, chosen, [*client, _NAME])
        run_client([*client, "--execute", "SHUTDOWN"])
    except (Failed, DatabaseError):
        end_server(server)
        raise
    if code := server.wait():
        raise Failed(f"FAILED: the server for the restore ended with {code}")
    sync(partial)
    partial.rename(DATA)
    sync(DATA)
    say(f"restored {chosen} in {int(time.monotonic() - began)} s")


def server_command(data: Path, socket: Path) -> list[str]:
    """A server that nobody else reaches; a machine that fails means a fresh start, so nothing is flushed before the end."""
    memory = os.environ.get(variables.MARIADB_BUFFER_POOL) or "2G"
    files = [f"--datadir={data}", f"--socket={socket}", f"--pid-file={RUN / 'restore.pid'}", "--skip-networking"]
    pages = [f"--innodb-buffer-pool-size={memory}", "--innodb-log-file-size=64M", "--innodb-flush-log-at-trx-commit=0"]
    more = ["--character-set-server=utf8mb4", "--max-allowed-packet=16M", "--performance-schema=OFF"]
    return ["mariadbd", "--no-defaults", *files, *pages, *more]


def await_server(server: "subprocess.Popen[bytes]", command: list[str]) -> None:
    """Returns once a first command works. Raises Failed."""
    for _ in range(_TRIES):
        try:
            run_client(command)
        except DatabaseError:
            if server.poll() is not None:
                raise Failed("FAILED: the server for the restore ended") from None
            time.sleep(_PAUSE_S)
        else:
            return
    raise Failed("FAILED: the server for the restore does not answer")


def end_server(server: "subprocess.Popen[bytes]") -> None:
    """Ends it, whether or not it listens."""
    server.terminate()
    try:
        server.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()


def main() -> int:
    end_at_once(143)
    folder = Folder("database", DATABASE, say)
    try:
        if os.environ.get(variables.MARIADB_HOST):
            restore_over_network(folder)
        else:
            restore_data_folder(folder)
    except Failed as error:
        say(str(error))
        return 1
    except (DatabaseError, subprocess.CalledProcessError, OSError) as error:
        say(f"FAILED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    take_stderr("database-restore")
    sys.exit(main())
