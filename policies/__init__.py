"""Rules over what a stack declares: plain functions over the recorded plan, and the same functions as a CrossGuard pack.

They look at objects, not at the stack file: `configs` finds a user's mistakes. Nothing here asks a cluster. docs/operate/policies.md has
every rule.
"""
