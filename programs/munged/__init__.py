"""munged of a pod: starts it, and changes its key at the same time as all other pods."""
