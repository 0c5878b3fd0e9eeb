"""Config of monitoring: where Prometheus is, what it keeps, whom Alertmanager tells, and when an alert is one."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.models.fields import AtMost, Count, DnsLabel, Line, Matching, Model, ObjectName, Positive, Seconds, Whole, dns_label
from configs.models.notifications import MailAddress
from configs.models.storage import Disk

ReceiverName = Annotated[StrictStr, AfterValidator(dns_label(20, "ops"))]
"""Part of the name of a volume."""
LabelKey = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
            "a label key of Kubernetes, such as grafana_dashboard",
            316,
            "grafana_dashboard",
        )
    ),
]
LabelText = Annotated[
    StrictStr, AfterValidator(Matching(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", "a label value of Kubernetes", 63, "1"))
]
AlertLabel = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-zA-Z_][a-zA-Z0-9_]*", "a label of an alert, such as nodeset", 64, "nodeset"))
]
Percent = Annotated[Whole, Field(ge=1), AfterValidator(AtMost(100))]

ReceiverKind = Literal["slack", "webhook", "mail"]


class Receiver(Model):
    """A receiver of Alertmanager's alerts. An alert is repeated after a day, and its end is reported."""

    name: ReceiverName
    """Name of the receiver."""
    kind: ReceiverKind
    """slack: a webhook that takes Slack's format, as Slack, Mattermost and others do. webhook: Alertmanager's own JSON. mail: through the
    relay of `notifications.smtp`."""
    url_secret: ObjectName | None = Field(default=None, examples=["slack-ops"])
    """With slack and webhook: name of a Secret in the cluster's namespace, whose key `url` has the address to send to."""
    to: tuple[MailAddress, ...] = Field(default=(), examples=[["ops@example.com"]])
    """With mail: the addresses."""
    severities: tuple[Literal["critical", "warning", "info", "none"], ...] = ("critical", "warning")
    """Severities of the alerts that it gets. critical: jobs do not run, act now. warning: act today. info: worth to know.
    none: Watchdog, which always fires; a receiver of nothing else gets it every five minutes."""
    match: dict[AlertLabel, Line] = Field(default={}, examples=[{"account": "vision"}])
    """Labels that an alert must have, each with its value: `nodeset`, `account`, `partition`, `check` or `alertname`. Default: any."""


class Thresholds(Model):
    """When an alert is one. Each alert's section in docs/operate/runbooks.md names its threshold."""

    reading_age_s: Seconds = Field(default=120, examples=[300])
    """Age from which a reading of Slurm is too old, in seconds: SlurmReadingOld."""
    drained_minutes: Positive = Field(default=15, examples=[30])
    """Minutes that a node may be out of service: NodesOutOfService, NodesDown, GpusMissing."""
    systemic_percent: Percent = Field(default=10, examples=[25])
    """Percentage of the nodes of a check that fail at once, from which what they share is broken: CheckFailsEverywhere."""
    check_age_hours: Positive = Field(default=48, examples=[96])
    """Hours since a check last ran: CheckOld."""
    gpus_unavailable_percent: Percent = Field(default=10, examples=[25])
    """Percentage of a node set's GPUs that may be out of service for an hour: GpusUnavailable."""
    queue_minutes: Positive = Field(default=30, examples=[60])
    """Minutes in which no job starts although jobs wait and nodes are idle: QueueBlocked."""
    update_minutes: Positive = Field(default=60, examples=[120])
    """Minutes that workers may be missing or not ready: NodeSetNotReady, NodeSetPodsMissing."""
    key_age_days: Positive = Field(default=365, examples=[90])
    """Days that slurmctld may have the same munge key or JWT key: KeyOld."""
    backup_age_hours: Positive = Field(default=26, examples=[52])
    """Hours since the last backup: BackupOld."""
    claim_percent: Percent = Field(default=90, examples=[80])
    """Percentage of a volume claim that may be full: ClaimNearlyFull."""
    wasted_gpu_hours: Count = Field(default=24, examples=[48])
    """GPU hours of an account in one day, from which it counts that most of them went to jobs that did not complete: GpuHoursWasted."""


class Dashboards(Model):
    """The dashboards for Grafana, in one ConfigMap."""

    labels: dict[LabelKey, LabelText] = {"grafana_dashboard": "1"}
    """Labels by which Grafana's sidecar finds the ConfigMap."""
    folder: Line = Field(default="Slurm", examples=["Clusters"])
    """Folder of Grafana that the sidecar puts them into: the annotation `grafana_folder`."""


class Monitoring(Model):
    """Metrics, alerts and dashboards of the cluster."""

    prometheus: Literal["Own", "Operator"] = "Own"
    """Own: a Prometheus and an Alertmanager of the cluster's own. Operator: ServiceMonitor, PodMonitor and PrometheusRule objects, for a
    Kubernetes cluster with the Prometheus Operator."""
    scrape_interval_s: Seconds = Field(default=30, examples=[60])
    """Time between two readings of all metrics, in seconds."""
    accounts: Positive = Field(default=100, examples=[50])
    """Number of accounts that have series of their own: the largest. The others are summed up as the account `other`."""
    retention_days: Positive = Field(default=15, examples=[30])
    """With Own: days that metrics are kept. The oldest go earlier where they would fill the disk."""
    storage: Disk = Disk(size="20Gi")
    """With Own: the disk of Prometheus and Alertmanager."""
    readers: tuple[DnsLabel, ...] = Field(default=(), examples=[["grafana"]])
    """With Own: namespaces whose pods may ask Prometheus, where the network heeds NetworkPolicies. Default: none but a port-forward."""
    receivers: tuple[Receiver, ...] = ()
    """With Own: whom Alertmanager tells. Default: nobody; alerts are shown by Prometheus and Alertmanager."""
    labels: dict[LabelKey, LabelText] = Field(default={}, examples=[{"release": "kube-prometheus-stack"}])
    """With Operator: labels by which its Prometheus selects the objects."""
    thresholds: Thresholds = Thresholds()
    """When an alert is one."""
    runbooks: Line | None = Field(default=None, examples=["https://git.example.com/team/slipway/docs/operate/runbooks.md"])
    """Address of the page that alerts link to. Default: the path docs/operate/runbooks.md."""
    without: tuple[Line, ...] = Field(default=(), examples=[["GpuHoursWasted"]])
    """Names of alerts that are left out."""
    dashboards: Dashboards = Dashboards()
    """The dashboards for Grafana."""
