"""Keeps the stack's objects as last deployed: manual edits and deletions are undone within seconds. Entry: __main__.py."""
