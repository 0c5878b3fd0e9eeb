"""The dashboards: cluster, jobs, nodes and causes, GPUs, Slurm itself, our controllers. `{@}` is the selector of the cluster.

Where the metrics come from: docs/operate/observability.md.
"""

from configs.render.panels import Dashboard, Panel, Query, render

_CLUSTER = Dashboard(
    "cluster",
    "Slurm: cluster",
    (
        (
            Panel("Slurm answers", (Query("min(slipway_slurm_up{@})"),), "stat", about="1: slurmctld answers the collector."),
            Panel("Nodes that take jobs", (Query('sum(slipway_nodes{@, state=~"idle|allocated"})'),), "stat"),
            Panel(
                "Nodes out of service", (Query('sum(slipway_nodes{@, state=~"drained|draining|down"}) or vector(0)'),), "stat", red_from=1
            ),
            Panel("Jobs that run", (Query("slurm_jobs_running{@}"),), "stat"),
            Panel("Jobs that wait", (Query("slurm_jobs_pending{@}"),), "stat"),
            Panel("Alerts", (Query('count(ALERTS{@, alertstate="firing", severity!="none"}) or vector(0)'),), "stat", red_from=1),
        ),
        (
            Panel("GPUs", (Query("sum by (state) (slipway_gpus{@})", "{{state}}"),), stacked=True),
            Panel("CPUs", (Query("sum by (state) (slipway_cpus{@})", "{{state}}"),), stacked=True),
        ),
        (
            Panel(
                "GPUs in use",
                (Query('sum(slipway_gpus{@, state="allocated"}) / sum(slipway_gpus{@, state!="powered_down"})'),),
                unit="percentunit",
                about="Of the GPUs of nodes that are not powered down. Nodes out of service count.",
            ),
            Panel("Nodes by state", (Query("sum by (state) (slipway_nodes{@})", "{{state}}"),), stacked=True),
        ),
        (
            Panel("Jobs", (Query("sum by (state) (slipway_jobs{@})", "{{state}}"),), stacked=True),
            Panel("GPUs by account", (Query("sum by (account) (slipway_account_gpus{@})", "{{account}}"),), stacked=True),
        ),
    ),
)

_JOBS = Dashboard(
    "jobs",
    "Slurm: jobs",
    (
        (
            Panel("Jobs by partition", (Query("sum by (partition, state) (slipway_jobs{@})", "{{partition}} {{state}}"),), stacked=True),
            Panel(
                "Why jobs wait",
                (Query("sum by (reason) (slipway_pending_jobs{@})", "{{reason}}"),),
                stacked=True,
                about="Slurm's reasons, as squeue shows them.",
            ),
        ),
        (
            Panel(
                "Longest wait in the queue",
                (Query("max by (partition) (slipway_queue_wait_seconds{@})", "{{partition}}"),),
                unit="s",
                about="Of the job that has waited longest, by partition.",
            ),
            Panel(
                "Wait of jobs that started",
                tuple(
                    Query(f"histogram_quantile({share}, sum by (le) (increase(slipway_job_wait_seconds_bucket{{@}}[1h])))", legend)
                    for share, legend in ((0.5, "half of them"), (0.95, "95 %"))
                ),
                unit="s",
            ),
        ),
        (
            Panel("Jobs by account", (Query("sum by (account, state) (slipway_account_jobs{@})", "{{account}} {{state}}"),), stacked=True),
            Panel("CPUs by account", (Query("sum by (account) (slipway_account_cpus{@})", "{{account}}"),), stacked=True),
            Panel("GPUs by account", (Query("sum by (account) (slipway_account_gpus{@})", "{{account}}"),), stacked=True),
        ),
        (
            Panel(
                "GPU hours of ended jobs, last day",
                (Query("sum by (account, result) (increase(slipway_job_gpu_seconds_total{@}[1d])) / 3600"),),
                "table",
                about="By what became of the jobs: hours of failed jobs are lost.",
            ),
            Panel(
                "CPU hours of ended jobs, last day",
                (Query("sum by (account, result) (increase(slipway_job_cpu_seconds_total{@}[1d])) / 3600"),),
                "table",
            ),
        ),
        (
            Panel("Jobs that started", (Query("rate(slurm_sdiag_jobs_started{@}[$__rate_interval]) * 60", "a minute"),)),
            Panel("Jobs that were submitted", (Query("rate(slurm_sdiag_jobs_submitted{@}[$__rate_interval]) * 60", "a minute"),)),
            Panel("Jobs that failed", (Query("rate(slurm_sdiag_jobs_failed{@}[$__rate_interval]) * 60", "a minute"),)),
        ),
    ),
)

_NODES = Dashboard(
    "nodes",
    "Slurm: nodes and causes",
    (
        (
            Panel("Nodes by set and state", (Query("sum by (nodeset, state) (slipway_nodes{@})", "{{nodeset}} {{state}}"),), stacked=True),
            Panel(
                "Causes",
                (Query('sum by (cause) (slipway_nodeset_causes{@, wish!="none"}) or vector(0)', "{{cause}}"),),
                stacked=True,
                about="Nodes by the cause for which they are out of service. A node with two causes counts twice.",
            ),
        ),
        (
            Panel(
                "Pods that are missing",
                (Query("max by (nodeset) (slipway_nodeset_wanted{@}) - max by (nodeset) (slipway_nodeset_pods{@})", "{{nodeset}}"),),
            ),
            Panel("Workers that are not ready", (Query("max by (nodeset) (slipway_nodeset_unavailable{@})", "{{nodeset}}"),)),
        ),
        (
            Panel(
                "Checks: nodes by result", (Query("sum by (check, result) (slipway_check_nodes{@})", "{{check}} {{result}}"),), stacked=True
            ),
            Panel("Checks: time since the last run", (Query("max by (check) (slipway_check_age_seconds{@})", "{{check}}"),), unit="s"),
        ),
        (
            Panel("Failures of checks", (Query("slipway_node_check{@}"),), "table"),
            Panel("Nodes by state", (Query("slipway_node_state{@} == 1"),), "table"),
        ),
    ),
)

_GPUS = Dashboard(
    "gpus",
    "Slurm: GPUs",
    (
        (
            Panel("GPUs by set and state", (Query("sum by (nodeset, state) (slipway_gpus{@})", "{{nodeset}} {{state}}"),), stacked=True),
            Panel(
                "GPUs out of service",
                (Query('sum by (nodeset) (slipway_gpus{@, state="unavailable"}) / sum by (nodeset) (slipway_gpus{@})', "{{nodeset}}"),),
                unit="percentunit",
            ),
        ),
        (
            Panel("Utilisation of allocated GPUs", (Query('avg(DCGM_FI_DEV_GPU_UTIL{@, hpc_job!=""}) / 100', "mean"),), unit="percentunit"),
            Panel(
                "Utilisation by job",
                (Query('topk(10, avg by (hpc_job) (DCGM_FI_DEV_GPU_UTIL{@, hpc_job!=""})) / 100', "job {{hpc_job}}"),),
                unit="percentunit",
            ),
        ),
        (
            Panel("Memory in use", (Query("sum by (Hostname) (DCGM_FI_DEV_FB_USED{@}) * 1048576", "{{Hostname}}"),), unit="bytes"),
            Panel("Power", (Query("sum by (Hostname) (DCGM_FI_DEV_POWER_USAGE{@})", "{{Hostname}}"),), unit="watt"),
            Panel("Hottest GPU", (Query("max by (Hostname) (DCGM_FI_DEV_GPU_TEMP{@})", "{{Hostname}}"),), unit="celsius"),
        ),
    ),
)

_SLURM = Dashboard(
    "slurm",
    "Slurm: slurmctld",
    (
        (
            Panel("Main scheduler: last round", (Query("slurm_schedule_cycle_last{@} / 1e6", "last"),), unit="s"),
            Panel("Main scheduler: mean of the rounds", (Query("slurm_sched_mean_cycle{@} / 1e6", "mean"),), unit="s"),
            Panel("Backfill: last round", (Query("slurm_bf_cycle_last{@} / 1e6", "last"),), unit="s"),
        ),
        (
            Panel("Jobs that the main scheduler looks at", (Query("slurm_schedule_queue_len{@}", "queue"),)),
            Panel("Jobs that backfill looks at", (Query("slurm_bf_queue_len{@}", "queue"), Query("slurm_bf_last_depth{@}", "looked at"))),
            Panel("Jobs that backfill started", (Query("increase(slurm_backfilled_jobs{@}[1h])", "an hour"),)),
        ),
        (
            Panel(
                "Requests in work", (Query("slurm_server_thread_cnt{@}", "threads"),), about="From 256 on, slurmctld makes clients wait."
            ),
            Panel("Messages to nodes that wait", (Query("slurm_agent_queue_size{@}", "messages"),)),
            Panel("Records that wait for slurmdbd", (Query("slurm_slurmdbd_queue_size{@}", "records"),)),
        ),
        (
            Panel("Jobs by partition", (Query("slurm_partition_jobs{@}", "{{partition}}"),)),
            Panel("Idle nodes by partition", (Query("slurm_partition_nodes_idle{@}", "{{partition}}"),)),
        ),
    ),
)

_REQUEST_SECONDS = "histogram_quantile(0.99, sum by (le, verb) (rate(slipway_kubernetes_request_duration_seconds_bucket{@}[5m])))"
_WORK_SECONDS = "histogram_quantile(0.99, sum by (le, queue) (rate(slipway_queue_work_seconds_bucket{@}[5m])))"
_WAIT_SECONDS = "histogram_quantile(0.99, sum by (le, queue) (rate(slipway_queue_wait_seconds_bucket{@}[5m])))"
_WAKE_SECONDS = "histogram_quantile(0.99, sum by (le) (increase(slipway_nodeset_power_up_seconds_bucket{@}[1h])))"

_CONTROLLERS = Dashboard(
    "controllers",
    "Slurm: controllers",
    (
        (
            Panel("Leaders", (Query("sum(slipway_lease_held{@})"),), "stat", about="1 in a cluster in order."),
            Panel("Age of the reading of Slurm", (Query("max(slipway_slurm_reading_age_seconds{@})"),), "stat", "s", red_from=60),
            Panel("Objects that the guard has given up", (Query("sum(slipway_guard_stopped{@})"),), "stat", red_from=1),
            Panel("Targets that cannot be read", (Query('sum(1 - up{@, job!="dcgm"})'),), "stat", red_from=1),
        ),
        (
            Panel(
                "Age of the collector's readings",
                (Query("max by (reading) (slipway_collector_reading_age_seconds{@})", "{{reading}}"),),
                unit="s",
            ),
            Panel(
                "Time from a node that wakes to its pod, 99 %",
                (Query(_WAKE_SECONDS, "of the last hour"),),
                unit="s",
            ),
        ),
        (
            Panel("Wait for a worker, 99 %", (Query(_WAIT_SECONDS, "{{queue}}"),), unit="s"),
            Panel("Work on a key, 99 %", (Query(_WORK_SECONDS, "{{queue}}"),), unit="s"),
            Panel("Requests to Kubernetes, 99 %", (Query(_REQUEST_SECONDS, "{{verb}}"),), unit="s"),
        ),
        (
            Panel(
                "Requests to Kubernetes",
                (Query("sum by (job, result) (rate(slipway_kubernetes_requests_total{@}[5m]))", "{{job}} {{result}}"),),
                unit="reqps",
            ),
            Panel(
                "Memory",
                (Query('process_resident_memory_bytes{@, job=~"nodeset-controller|guard|metrics"}', "{{job}} {{instance}}"),),
                unit="bytes",
            ),
            Panel("CPU", (Query("rate(process_cpu_seconds_total{@}[5m])", "{{job}} {{instance}}"),), unit="percentunit"),
        ),
        (
            Panel(
                "Objects that the guard restored",
                (Query("sum by (kind) (increase(slipway_guard_restored_total{@}[1h])) or vector(0)", "{{kind}}"),),
            ),
            Panel(
                "Age of the last success of each CronJob",
                (Query("time() - max by (cronjob) (slipway_cronjob_last_success_timestamp_seconds{@})", "{{cronjob}}"),),
                unit="s",
            ),
        ),
    ),
)

DASHBOARDS = (_CLUSTER, _JOBS, _NODES, _GPUS, _SLURM, _CONTROLLERS)


def build_dashboards() -> dict[str, str]:
    """The files of the dashboards, by name."""
    return {f"slipway-{dashboard.name}.json": render(dashboard) for dashboard in DASHBOARDS}
