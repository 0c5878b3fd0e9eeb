"""Smoke jobs on a live cluster, as a user runs them over ssh: what works of what people expect, with a remedy for what does not.

`facts` is what the cluster says of itself, `tasks` decides from it what to run and what came of it, `login` finds the way in. Thin: `run`.
"""
