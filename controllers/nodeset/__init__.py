"""The NodeSet controller: pods follow Slurm. Pure plans decide (`plan`), one thin file acts (`reconcile`)."""
