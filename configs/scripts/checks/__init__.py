"""Health checks: the program of their CronJobs (`run`), what runs on a node (`disk`, `memory`, `clock`, `gpu`), and `pool` for node pools."""
