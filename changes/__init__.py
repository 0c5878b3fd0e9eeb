"""What a change of a stack does to Slurm and to its jobs: from two states of each object to a story that people and CI can read.

Pure. A preview (`slipway preview`, or `pulumi preview --json`) gives the objects as `Step`s, the cluster gives its jobs, and `story`
brings them together; `text`, `markdown` and `as_json` print it. Nothing here reads a cluster.
"""
