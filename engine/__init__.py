"""Deploys a stack without the Pulumi CLI: records what its program declares, then diffs, applies and waits at the API server.

There are no state backend and no providers: only `kubernetes:*` objects, `random:*` values and components. `preview` shows other resources,
and `up` refuses them. Transforms, hooks and provider functions are not supported.
"""
