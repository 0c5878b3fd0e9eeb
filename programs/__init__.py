"""What pods run: a folder a program, with a thin `run` and pure modules that decide; the containers' start scripts are in `start`.

Of ours they import `slurm` alone. Python's own library is enough for all but `ldap_sync`, which needs the image's python-ldap.
"""
