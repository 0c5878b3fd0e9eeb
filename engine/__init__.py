"""The stack without the Pulumi CLI: records what the stack file declares, then diffs, applies and waits at the API server.

It has no state backend and no providers, and runs only `kubernetes:*` objects, `random:*` values and components. Whatever else a program
declares is shown by `preview` and refused by `up`, naming the `pulumi` CLI. No transforms, no hooks, no function calls to providers, no
reading back of what the cluster computed.
"""
