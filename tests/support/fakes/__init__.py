"""Stand-ins for what tests cannot have: each says where it is simpler than the real one."""
