"""munged of a pod: its start, and its change to another key at the moment when all pods change."""
