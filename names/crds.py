"""Our own kinds at the Kubernetes API: NodeSet and SlurmNode."""

GROUP = "slipway.dev"
API_VERSION = f"{GROUP}/v1alpha1"
RANDOM = f"{GROUP}/random"
"""Type of the Secrets in which `slipway up` keeps random values."""
