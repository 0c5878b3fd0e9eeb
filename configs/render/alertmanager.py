"""alertmanager.yml: which receiver gets which alert. Addresses and passwords stay in their Secrets; Alertmanager reads them from files."""

from typing import Any

import yaml

from configs.models.cluster import Cluster
from configs.models.monitoring import Monitoring, Receiver
from configs.models.notifications import Smtp
from names import paths

SECRETS_PATH = paths.RECEIVERS
"""A folder below for each receiver with a Secret, and for those of the mail relay."""
RELAY_CREDENTIALS, RELAY_CA = "relay-credentials", "relay-ca"
USER_NAME = "@username@"
"""Stands for the user of the mail relay, which Alertmanager reads from no file: the pod's start fills it in."""
_NOBODY = "nobody"
_TITLE = "{{ or .CommonAnnotations.summary .CommonLabels.alertname }}"
_TEXT = (
    "{{ range .Alerts }}*{{ .Labels.alertname }}* ({{ .Labels.slurm_cluster }}, {{ .Labels.severity }}, {{ .Status }}): "
    "{{ .Annotations.summary }}. {{ .Annotations.description }} {{ .Annotations.runbook_url }}\n{{ end }}"
)
_SUBJECT = "[{{ .CommonLabels.slurm_cluster }}] {{ .Status }}: {{ .CommonLabels.alertname }}"


def render(cluster: Cluster, monitoring: Monitoring) -> str:
    """The text of alertmanager.yml. An alert goes to every receiver that takes it; alerts of one name are one message."""
    receivers = monitoring.receivers
    config: dict[str, Any] = {
        "route": {
            "receiver": _NOBODY,
            "group_by": ["slurm_cluster", "alertname"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "24h",
            "routes": [_route(receiver) for receiver in receivers],
        },
        # While Slurm is silent, what its readings say is old, and each such alert would be one more message.
        "inhibit_rules": [
            {
                "source_matchers": ['alertname="SlurmSilent"'],
                "target_matchers": ['alertname=~"SlurmReadingOld|QueueBlocked|NodesDown|ChecksNotNoted|CheckOld"'],
                "equal": ["slurm_cluster"],
            }
        ],
        "receivers": [{"name": _NOBODY}, *(_receiver(receiver, cluster.notifications.smtp) for receiver in receivers)],
    }
    return yaml.safe_dump(config, sort_keys=False, width=1000, allow_unicode=True)


def _route(receiver: Receiver) -> dict[str, Any]:
    often = {"repeat_interval": "5m"} if receiver.severities == ("none",) else {}  # a service that waits for Watchdog
    return {"receiver": receiver.name, "matchers": _matchers(receiver), "continue": True, **often}


def _matchers(receiver: Receiver) -> list[str]:
    matchers = [f"{label}={_quoted(value)}" for label, value in sorted(receiver.match.items())]
    return [*matchers, f'severity=~"{"|".join(receiver.severities)}"']


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _receiver(receiver: Receiver, smtp: Smtp | None) -> dict[str, Any]:
    url = f"{SECRETS_PATH}/{receiver.name}/url"
    if receiver.kind == "slack":
        return {"name": receiver.name, "slack_configs": [{"api_url_file": url, "title": _TITLE, "text": _TEXT, "send_resolved": True}]}
    if receiver.kind == "webhook":
        return {"name": receiver.name, "webhook_configs": [{"url_file": url, "send_resolved": True}]}
    assert smtp is not None  # a rule of the config
    return {"name": receiver.name, "email_configs": [{"to": ", ".join(receiver.to), **_relay(smtp), "send_resolved": True}]}


def _relay(smtp: Smtp) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "from": smtp.sender,
        "smarthost": f"[{smtp.host}]:{smtp.port}" if ":" in smtp.host else f"{smtp.host}:{smtp.port}",
        "require_tls": smtp.tls == "starttls",
        "headers": {"Subject": _SUBJECT},
    }
    if smtp.tls == "tls":
        settings["force_implicit_tls"] = True
    if smtp.ca_secret is not None:
        settings["tls_config"] = {"ca_file": f"{SECRETS_PATH}/{RELAY_CA}/ca.crt"}
    if smtp.credentials_secret is not None:
        settings["auth_username"] = USER_NAME
        settings["auth_password_file"] = f"{SECRETS_PATH}/{RELAY_CREDENTIALS}/password"
    return settings
