"""Health checks: what is decided, what is judged on a node, and that a run killed anywhere is finished by the next one."""
