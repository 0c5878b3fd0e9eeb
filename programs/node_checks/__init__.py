"""Health checks: the program of the CronJobs (`run`), each check (see `kinds`); `pool` for node pools."""
