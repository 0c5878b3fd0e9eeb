"""A real Kubernetes of three nodes on one Debian machine, made from Go modules and Debian packages, and ended without a trace."""
