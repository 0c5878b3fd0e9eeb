"""The sidecar of slurmctld that has it read changed files, once no job loses its node or its partition by them."""
