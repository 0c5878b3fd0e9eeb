"""The accounting database of a container: its variables, set by components/database.py, and the settings of MariaDB's clients and slurmdbd
made from them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from names import ports, variables


class PasswordError(ValueError):
    """slurmdbd cannot be given this password; the text says why and what to do."""


@dataclass(frozen=True)
class Database:
    """An accounting database."""

    host: str
    port: str = str(ports.MARIADB)
    user: str = "slurm"
    name: str = "slurm_acct_db"
    tls: str = ""
    """File of the CA that the server's certificate is checked with; `off` for no TLS; empty for the client's own way."""


_VARIABLES = {
    "port": variables.MARIADB_PORT,
    "user": variables.MARIADB_USER,
    "name": variables.MARIADB_DATABASE,
    "tls": variables.MARIADB_TLS,
}


def to_environment(database: Database) -> dict[str, str]:
    """The variables of a database; defaults are left out."""
    values, defaults = vars(database), vars(Database(database.host))
    changed = {key: values[field] for field, key in _VARIABLES.items() if values[field] != defaults[field]}
    return {variables.MARIADB_HOST: database.host, **changed}


def read_database(env: Mapping[str, str]) -> Database:
    """The database that the variables name. Raises KeyError where they name none."""
    return Database(env[variables.MARIADB_HOST], **{field: env[key] for field, key in _VARIABLES.items() if env.get(key)})


def client_settings(database: Database, password: str) -> str:
    """The settings of MariaDB's client programs. In a quoted password they know the backslash, and nothing else."""
    escaped = password.replace("\\", "\\\\")
    lines = ["[mariadb-client]", "connect-timeout=3", "[client]", f"host={database.host}", f"port={database.port}", f"user={database.user}"]
    lines.append(f'password="{escaped}"')
    if database.tls == "off":
        lines.append("skip-ssl")
    elif database.tls:
        lines += [f"ssl-ca={database.tls}", "ssl-verify-server-cert"]
    return "".join(f"{line}\n" for line in lines)


def with_password(slurmdbd_conf: str, password: str) -> str:
    """slurmdbd.conf with StoragePass. Raises PasswordError.

    Slurm's files know a backslash, and a # after one; nothing makes a quote or a blank part of a value. Source:
    src/common/parse_config.c.
    """
    if any(each == '"' or each <= " " or each == "\x7f" for each in password):
        raise PasswordError("slurmdbd takes no password with a double quote or a blank in it: choose another")
    escaped = password.replace("\\", "\\\\").replace("#", "\\#")
    return f"{slurmdbd_conf}\nStoragePass={escaped}\n"
