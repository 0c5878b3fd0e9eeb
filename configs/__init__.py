"""All that a user can say about a cluster, checked, and the pure functions that render it."""
