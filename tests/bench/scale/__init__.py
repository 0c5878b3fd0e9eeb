"""A thousand real Slurm nodes on one machine: the real API server, scheduler and NodeSet controller, and a slurmd process for each pod.

Only the kubelets are stand-ins, and the worker's program and slurmd's cgroups are left out: machines.py. Everything runs in namespaces of
its own and ends with them.
"""
