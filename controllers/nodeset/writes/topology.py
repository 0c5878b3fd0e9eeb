"""Tells Slurm where nodes are, and their pods what their jobs read of it. Thin."""

import structlog

from controllers.nodeset.plans.topology import Topologies
from controllers.nodeset.rounds import Round
from controllers.runtime.structs import PODS
from controllers.runtime.writer import Patch
from names import annotations

log = structlog.get_logger()


async def place_nodes(round_: Round, topologies: Topologies) -> None:
    """Sends a request for each place; a request that Slurm refuses holds up no other."""
    slurm = round_.world.slurm_writer
    for placement, ordinals in topologies.place.items():
        log.info("placing", nodeset=round_.key[1], nodes=round_.text(ordinals), topology=placement.topology, features=placement.features)
        write = slurm.place_nodes(round_.names(ordinals), placement.topology, placement.features, round_.asked_at)
        await round_.attempt("place in a topology", write)


async def annotate_pods(round_: Round, topologies: Topologies) -> None:
    """Each pod has its node's address, which the kubelet brings into it."""
    patches = [
        Patch(round_.pod_key(ordinal), {"metadata": {"annotations": {annotations.TOPOLOGY_ADDRESS: address}}})
        for ordinal, address in topologies.addresses.items()
    ]
    if patches:
        round_.fail_any("topology address of a pod", await round_.world.writer.patch_many(PODS, patches))
