"""Rules of the cluster's own NFS server: what may be on it, how it is mounted, and an export of its own for each volume."""

from configs.faults import Fault, quoted, repeats
from configs.models.cluster import Cluster
from configs.render import nfs_server
from configs.rules.names import check_distinct
from configs.rules.storage import check_options, volumes_of


def check_nfs_server(cluster: Cluster) -> list[Fault]:
    """Faults of the server, and of the volumes that are on it."""
    volumes = volumes_of(cluster)
    path = "cluster.storage.nfsServer"
    server = cluster.storage.nfs_server
    users = [each for each, source in volumes.items() if source.nfs_server]
    if server is None:
        message = (
            "no server is declared. Say storage.nfsServer: {size: 1Ti, clusterIP: 10.96.20.49}, with an address of your service range."
        )
        return [Fault(f"{each}.nfsServer", message, (path,)) for each in users]
    if not users:
        return [Fault(path, "no volume is on it. Say nfsServer: true as the source of one, or leave the server out.", (path, *volumes))]
    faults = [
        Fault(f"{path}.options[{at}]", f"{quoted(option)} is not for this server, which speaks {' and '.join(nfs_server.VERSIONS)}.")
        for at, option in enumerate(server.options)
        if (version := nfs_server.VERSION_OPTION.fullmatch(option)) and version[1] not in nfs_server.VERSIONS
    ]
    own = {fault.path for fault in faults}
    faults += [fault for fault in check_options(f"{path}.options", server.options) if fault.path not in own]
    faults += check_distinct(f"{path}.networks", server.networks)
    for each in ("cluster.backup.volume", "cluster.accounting.archive.volume"):
        if each in users:
            message = "that server has homes, the shared root and mounts only. Take another source, on another disk."
            faults.append(Fault(f"{each}.nfsServer", message))
    if cluster.login.ldap is not None and cluster.storage.home.nfs_server:
        message = (
            "that server makes homes of login.users only, not of users from LDAP. Take another source for homes, or leave login.ldap out."
        )
        faults.append(Fault("cluster.storage.home.nfsServer", message, ("cluster.login.ldap",)))
    exports = nfs_server.exports(cluster)
    users = [each for each in users if each not in ("cluster.backup.volume", "cluster.accounting.archive.volume")]
    mounts = [f"cluster.storage.mounts[{at}]" for at, mount in enumerate(cluster.storage.mounts) if mount.nfs_server]
    paths = [each for each in users if each not in mounts] + mounts
    for at, first in repeats([export.id for export in exports]):
        if exports[at].name != exports[first].name:  # else the names are the mistake
            message = f"its export would have the number of {paths[first]}, which is made from the name. Take another name."
            faults.append(Fault(f"{paths[at]}.name", message))
    return faults
