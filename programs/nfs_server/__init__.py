"""The cluster's own NFS server: makes what it exports, then becomes nfs-ganesha. Entry: run.py; what is missing is found in plan.py."""
