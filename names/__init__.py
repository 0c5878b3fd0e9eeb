"""Names that cross a border, each spelled once: between the stack file, Kubernetes objects, pods and programs. Imports nothing of ours.

What cannot import spells them itself: templates, C, shell, and `local`. tests/unit/test_names.py compares.
"""
