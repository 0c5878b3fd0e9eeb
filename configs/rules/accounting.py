"""Rules of accounting: one database, nothing archived that is never purged."""

from configs.faults import Fault
from configs.models.accounting import Accounting, Purge
from configs.models.cluster import Cluster
from configs.models.fields import camel
from configs.rules.names import check_distinct

_LOOPBACK = ("localhost", "127.", "::1")


def check_accounting(cluster: Cluster) -> list[Fault]:
    """Faults of the database, its purges and its archive."""
    return [*_check_database(cluster.accounting), *_check_archive(cluster.accounting)]


def _check_database(accounting: Accounting) -> list[Fault]:
    external = accounting.external
    if external is None:
        return []
    path = "cluster.accounting.external"
    faults: list[Fault] = []
    if accounting.storage is not None:
        message = "is the disk of the cluster's own database, and there is an external one, too. Keep one of storage and external."
        faults.append(Fault("cluster.accounting.storage", message, (path,)))
    if external.host.lower().startswith(_LOOPBACK):
        faults.append(Fault(f"{path}.host", "is slurmdbd's own pod, as seen from there. Give a name or an address that the pods reach."))
    if external.ca_secret is not None and not external.tls:
        faults.append(Fault(f"{path}.caSecret", "is for TLS, and tls is false. Leave one of the two out.", (f"{path}.tls",)))
    return faults


def _check_archive(accounting: Accounting) -> list[Fault]:
    if accounting.archive is None:
        return []
    path = "cluster.accounting.archive.records"
    records = accounting.archive.records
    faults = check_distinct(path, records)
    purged = {camel(name) for name in Purge.model_fields if getattr(accounting.purge, name) is not None}
    if "jobs" in purged:
        purged |= {"jobScript", "jobEnv"}
    return faults + [
        Fault(
            f"{path}[{at}]",
            f"{record} are never purged, so nothing is archived. Set accounting.purge.{record}, or leave it out.",
            ("cluster.accounting.purge",),
        )
        for at, record in enumerate(records)
        if record not in purged
    ]
