"""The typed parts of a stack file, a topic a file, and the tables that they are checked against. `cluster` is the whole."""
