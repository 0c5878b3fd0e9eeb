"""News of jobs and nodes: reads what has ended and which nodes are out of service, and tells webhooks and mail addresses."""
