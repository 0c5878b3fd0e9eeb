"""Brings image archives into the nodes' containerds. Nothing is pulled: there is no registry to pull from.

Tags are content hashes, so a node that has a name has its content; such a node is left alone.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local import archives
from local.commands import run
from local.layout import Node, Paths


def ctr(node: Node, paths: Paths) -> tuple[str, ...]:
    """containerd's own client, on the images and containers that the kubelet sees."""
    return ("ctr", "--address", str(paths.socket(node)), "--namespace", "k8s.io")


def present(node: Node, paths: Paths) -> set[str]:
    """The names of all images on a node."""
    return set(run([*ctr(node, paths), "images", "list", "--quiet"]).split())


def load(wanted: Iterable[tuple[Node, Path]], paths: Paths) -> dict[str, list[str]]:
    """Imports archives into nodes that lack them, all nodes at once. Gives the names that were imported, by node."""
    by_node: dict[Node, list[Path]] = {}
    for node, archive in wanted:
        by_node.setdefault(node, []).append(archive)
    with ThreadPoolExecutor() as pool:
        tasks = {node: pool.submit(_load_one, node, files, paths) for node, files in by_node.items()}
        return {node.name: names for node, task in tasks.items() if (names := task.result())}


def _load_one(node: Node, files: list[Path], paths: Paths) -> list[str]:
    there = present(node, paths)
    imported: list[str] = []
    for file in files:
        names = archives.references(file)
        if not set(names) <= there:
            run([*ctr(node, paths), "images", "import", str(file)], timeout_s=600)
            imported += names
    return imported
