"""The accounting database as its clients see it: slurmdbd, backups and restores reach it alike, be it the cluster's own or another."""

from pathlib import Path
from typing import NotRequired, TypedDict

from components.labels import Manifest, object_name
from components.pods import mount, secret_volume
from configs.models.cluster import Cluster
from configs.render.slurm import CA_FILE, SYSTEM_CA_FILE
from names import paths, variables

_CA_PATH = str(Path(CA_FILE).parent)


class ExternalDatabaseArgs(TypedDict):
    """A MariaDB or MySQL server that somebody else runs."""

    host: str
    """Name or address, as the pods reach it; with TLS it is the name in the server's certificate."""
    port: int
    """Its port."""
    database: str
    """Name of the database."""
    user: str
    """The user that slurmdbd logs in as."""
    password_secret: str
    """Name of the Secret with the `password`."""
    tls: bool
    """True: encrypted, and the server's certificate and name are checked."""
    ca_secret: NotRequired[str]
    """Name of the Secret with the CA of the server's certificate in `ca.crt`; without it, Debian's public CAs."""


def external_database(cluster: Cluster) -> ExternalDatabaseArgs | None:
    """The external database, if the config names it."""
    said = cluster.accounting.external
    if said is None or not cluster.accounting.enabled:
        return None
    made: ExternalDatabaseArgs = {
        "host": said.host,
        "port": said.port,
        "database": said.database,
        "user": said.user,
        "password_secret": said.password_secret,
        "tls": said.tls,
    }
    if said.ca_secret is not None:
        made["ca_secret"] = said.ca_secret
    return made


def password_secret(cluster: str, external: ExternalDatabaseArgs | None) -> str:
    """Name of the Secret with the `password`."""
    return external["password_secret"] if external else object_name(cluster, "mariadb")


def client_env(cluster: str, external: ExternalDatabaseArgs | None) -> dict[str, str]:
    """What programs/database reads."""
    if external is None:
        return {variables.MARIADB_HOST: object_name(cluster, "mariadb")}
    return {
        variables.MARIADB_HOST: external["host"],
        variables.MARIADB_PORT: str(external["port"]),
        variables.MARIADB_USER: external["user"],
        variables.MARIADB_DATABASE: external["database"],
        variables.MARIADB_TLS: (CA_FILE if "ca_secret" in external else SYSTEM_CA_FILE) if external["tls"] else "off",
    }


def client_mounts(external: ExternalDatabaseArgs | None) -> list[Manifest]:
    """The password, and the certificate that the server's is checked with."""
    ca = [mount("database-ca", _CA_PATH, read_only=True)] if external and "ca_secret" in external else []
    return [mount("password", paths.DATABASE_PASSWORD, read_only=True), *ca]


def client_volumes(cluster: str, external: ExternalDatabaseArgs | None, mode: int = 0o440) -> list[Manifest]:
    """The volumes of these mounts; `mode` is the password's."""
    ca = [secret_volume("database-ca", external["ca_secret"], 0o444)] if external and "ca_secret" in external else []
    return [secret_volume("password", password_secret(cluster, external), mode), *ca]
