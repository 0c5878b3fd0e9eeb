"""How slurmdbd, backups and restores reach the accounting database, the cluster's own or an external one."""

from pathlib import Path

from components.labels import Manifest, object_name
from components.pods import mount, secret_volume
from configs.models.cluster import Cluster
from configs.render.slurm import CA_FILE, SYSTEM_CA_FILE
from names import paths
from programs.database.settings import Database, to_environment

_CA_PATH = str(Path(CA_FILE).parent)


def build_database(cluster: Cluster) -> Database:
    """The settings of programs/database."""
    external = cluster.accounting.external
    if external is None:
        return Database(object_name(cluster.name, "mariadb"))
    ca_file = CA_FILE if external.ca_secret is not None else SYSTEM_CA_FILE
    return Database(external.host, str(external.port), external.user, external.database, ca_file if external.tls else "off")


def password_secret(cluster: Cluster) -> str:
    """Name of the Secret with the `password`."""
    external = cluster.accounting.external
    return external.password_secret if external is not None else object_name(cluster.name, "mariadb")


def client_env(cluster: Cluster) -> dict[str, str]:
    """The environment of programs/database."""
    return to_environment(build_database(cluster))


def client_mounts(cluster: Cluster) -> list[Manifest]:
    """The mounts of the password and of the CA certificate."""
    ca = [mount("database-ca", _CA_PATH, read_only=True)] if _ca_secret(cluster) is not None else []
    return [mount("password", paths.DATABASE_PASSWORD, read_only=True), *ca]


def client_volumes(cluster: Cluster, mode: int = 0o440) -> list[Manifest]:
    """The volumes of `client_mounts`; `mode` is the password's."""
    ca_secret = _ca_secret(cluster)
    ca = [secret_volume("database-ca", ca_secret, 0o444)] if ca_secret is not None else []
    return [secret_volume("password", password_secret(cluster), mode), *ca]


def _ca_secret(cluster: Cluster) -> str | None:
    return cluster.accounting.external.ca_secret if cluster.accounting.external is not None else None
