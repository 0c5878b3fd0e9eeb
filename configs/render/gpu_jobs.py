"""The Prolog and Epilog script that notes which job has which GPU, for DCGM's exporter.

Slurm 26.05 takes several scripts of each kind (`Prolog[0]`, `Prolog[1]`) and sends those without a path to the nodes.
"""

from configs.models.cluster import Cluster
from configs.models.node_set import NodeSet
from configs.render.wording import template
from names import paths
from slurm import prologs

FOLDER = paths.GPU_JOBS
"""In a worker: a file for each GPU that a job has."""
HOST_FOLDER = f"{paths.RUN}/gpu-jobs"
"""On the machine, for the exporter that runs there."""


def notes_gpu_jobs(cluster: Cluster, node_set: NodeSet) -> bool:
    """True if jobs have whole GPUs and monitoring is on. Slurm and DCGM number MIG instances differently."""
    return cluster.monitoring is not None and node_set.gpus is not None and not node_set.gpus.mig


def render(cluster: Cluster) -> dict[str, str]:
    """The script by its file's name; nothing where no node has GPUs, or without monitoring."""
    if not any(notes_gpu_jobs(cluster, node_set) for node_set in cluster.node_sets):
        return {}
    return {prologs.GPU_JOBS: template("slipway-gpu-jobs.sh.j2").render()}
