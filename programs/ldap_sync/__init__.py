"""The program `identity`: users from the config and from LDAP, as the files that every pod reads. Beside the standard library it needs
python-ldap, which the Slurm image has; `directory` alone imports it."""
