"""Health checks: the program of the CronJobs (`run`), what runs on a node (`disk`, `memory`, `clock`, `gpu`); `pool` for node pools."""
