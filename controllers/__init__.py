"""The programs that run in the cluster. What they need to know travels in Kubernetes objects: nothing here imports the rest of Slipway."""
