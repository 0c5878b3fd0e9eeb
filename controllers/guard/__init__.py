"""Keeps the stack's objects as they were last deployed: what somebody edits or deletes by hand is restored within seconds. Entry:
__main__.py.
"""
