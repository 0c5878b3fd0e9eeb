"""Rules of the versioned root: each version has one source, and changes are carried from version to version without a ring."""

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.shared_root import Root
from configs.rules.names import check_distinct, check_unique

_PATH = "cluster.storage.root"


def check_root(cluster: Cluster) -> list[Fault]:
    """Faults of the versions and of the current version."""
    root = cluster.storage.root
    if root is None:
        return []
    names = [version.name for version in root.versions]
    faults = check_unique(f"{_PATH}.versions", "version", names)
    if root.current is not None and root.current not in names:
        hint = did_you_mean(root.current, names, "List it under versions, with the image that it is filled from.")
        faults.append(Fault(f"{_PATH}.current", f"no version is called {quoted(root.current)}. {hint}"))
    faults += check_distinct(f"{_PATH}.packages", root.packages)
    for at, version in enumerate(root.versions):
        if version.image and version.tar:
            faults.append(Fault(f"{_PATH}.versions[{at}]", "has an image and a tar. Keep one."))
    return faults + _check_carrying(root, names)


def _check_carrying(root: Root, names: list[str]) -> list[Fault]:
    faults: list[Fault] = []
    sources = {version.name: version.carry_from for version in root.versions}
    told: set[str] = set()
    for at, version in enumerate(root.versions):
        path, source = f"{_PATH}.versions[{at}].carryFrom", version.carry_from
        if source is None:
            continue
        if source == version.name:
            faults.append(Fault(path, f"{quoted(source)} is this version itself. Name the one whose changes it is to get."))
        elif source not in sources:
            other_names = [name for name in names if name != version.name]
            hint = did_you_mean(
                source, other_names, "There are: {}. A version that is no longer listed cannot be carried from: list it again."
            )
            faults.append(Fault(path, f"no version is called {quoted(source)}. {hint}"))
        elif (ring := _ring(version.name, sources)) and not told & {*ring}:
            told |= {*ring}
            way = " from ".join(map(quoted, [*ring, version.name]))
            faults.append(Fault(path, f"goes round in a ring: {way}. One of them has to be filled first."))
    return faults


def _ring(name: str, sources: dict[str, str | None]) -> list[str]:
    """The ring of versions that carry from each other, starting with `name`; empty if the chain ends."""
    way = [name]
    while (source := sources.get(way[-1])) is not None:
        if source == name:
            return way
        if source in way:
            return []
        way.append(source)
    return []
