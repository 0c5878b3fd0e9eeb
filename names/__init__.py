"""Names that cross a border, each spelled once: between the stack file, Kubernetes objects, pods and programs. Imports nothing of ours.

Templates, C, shell and `local` cannot import them, and spell them again. tests/unit/test_names.py compares.
"""
