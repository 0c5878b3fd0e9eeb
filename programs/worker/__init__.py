"""A worker's start and stop: what an earlier pod of the node left behind, slurmd, and the drain before the pod ends."""
