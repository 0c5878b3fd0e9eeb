"""Tells people and CI what a change of a stack does to Slurm and to its jobs. Pure.

A preview gives the objects as `Step`s, the cluster gives its jobs, `story` brings them together; `text`, `markdown` and `as_json` print it.
"""
