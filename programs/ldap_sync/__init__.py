"""The program `identity`: writes users of the config and of LDAP to the files that every pod reads. Only `directory` imports python-ldap,
which the Slurm image has."""
