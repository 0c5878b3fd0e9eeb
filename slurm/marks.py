"""Marks on objects that keep something as it was when they were made, so that a preview sees when the stack file says otherwise."""

STORAGE_CLASS = "slipway.dev/storage-class"
"""Annotation of a claim: the StorageClass that the stack file gives its disk."""
DESIRED = "slipway.dev/desired"
"""Tag of a node group of EKS: the machines that the stack file asks for at first."""
