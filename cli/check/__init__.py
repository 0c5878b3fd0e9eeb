"""Smoke jobs on a live cluster, run over ssh like a user's. `facts` reads what the cluster has, `tasks` plans jobs and judges their output,
`login` finds the login node, and `run` connects them.
"""
