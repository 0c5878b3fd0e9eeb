"""What pods run: a folder a program, with a thin `run` and pure modules that decide; the containers' start scripts are in `start`.

Of our packages they import only `names` and `slurm`. Only `ldap_sync` needs a library beside Python's own: the image's python-ldap.
"""
