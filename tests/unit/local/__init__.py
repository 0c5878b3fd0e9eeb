"""The local cluster's decisions: what it would start, route, render, refuse. The cluster itself is tested in tests/cluster."""
