"""The NodeSet controller: pods follow Slurm. Pure functions decide (`plan`), `reconcile` runs the rounds that carry plans out."""
