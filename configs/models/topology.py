"""Config of network topologies: which labels of the machines say where a node is, so that Slurm places jobs on neighbours."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import Matching, Model, Positive
from configs.models.node_pool import LabelKey
from configs.models.node_set import MAX_NODES
from slurm.topology import EC2_LAYER

TopologyName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(r"[A-Za-z][A-Za-z0-9_-]*", "a topology's name: letters, digits, dashes and underscores, first a letter", 40, "fabric")
    ),
]

PRESETS = {
    "ec2": tuple(f"{EC2_LAYER}{layer}" for layer in (1, 2, 3)),
    "gke": tuple(f"cloud.google.com/gce-topology-{part}" for part in ("block", "subblock", "host")),
    "coreweave": tuple(f"ib.coreweave.cloud/{part}" for part in ("fabric", "superpod", "leafgroup")),
    "zones": ("topology.kubernetes.io/region", "topology.kubernetes.io/zone"),
}
"""Labels of machines, from the top of the network down. Sources: EKS' user guide, "network topology labels" (by EC2's
DescribeInstanceTopology); GKE's guide to compact placement; CoreWeave's guide to SUNK's topology; Kubernetes' well-known labels."""


class Tree(Model):
    """A network of switches."""

    labels: tuple[LabelKey, ...] = Field(examples=[["example.com/fabric", "example.com/spine", "example.com/leaf"]])
    """Labels of the Kubernetes nodes, from the top of the network down to the switch that a machine is connected to."""


class Block(Model):
    """Groups of nodes that are close to each other, such as the machines of an NVLink domain."""

    label: LabelKey = Field(default="nvidia.com/gpu.clique", examples=["example.com/rack"])
    """Label of the Kubernetes nodes whose value names the group. Default: the label that NVIDIA's GPU feature discovery writes."""
    size: Positive = Field(le=MAX_NODES, examples=[18])
    """Nodes of a group: Slurm's block size."""
    count: Positive = Field(le=MAX_NODES, examples=[8])
    """Most groups that there can be. In Slurm they are `<topology>-0` and so on, in the order in which they are seen."""


class Topology(Model):
    """A network as Slurm is to see it: a tree or blocks, by the labels of the machines that the nodes run on."""

    name: TopologyName
    """Name of the topology, which partitions refer to; also that of the top switch of a tree."""
    preset: Literal["ec2", "gke", "coreweave", "zones"] | None = None
    """A tree by labels that a cloud writes. `ec2`: layers of EC2's network. `gke`: block, sub-block and host. `coreweave`: its fabric,
    superpod and leaf group. `zones`: region and zone."""
    tree: Tree | None = None
    """A tree of switches."""
    block: Block | None = None
    """Blocks."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the machines that say where a node is, from the top."""
        if self.block is not None:
            return (self.block.label,)
        return PRESETS[self.preset] if self.preset is not None else self.tree.labels if self.tree is not None else ()
