"""Rules of monitoring: what only one kind of Prometheus has, and receivers that can be reached."""

from collections.abc import Iterator

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.monitoring import Monitoring, Receiver
from configs.render.alerts import alert_names
from configs.rules.names import check_distinct, check_unique
from configs.rules.notifications import check_address

_PATH = "cluster.monitoring"
_OF_OWN = ("retention_days", "storage", "readers", "receivers")
_KEYS = {"retention_days": "retentionDays"}
_RESERVED = ("nobody", "relay-ca", "relay-credentials")


def check_monitoring(cluster: Cluster) -> list[Fault]:
    """Faults of `monitoring`."""
    monitoring = cluster.monitoring
    if monitoring is None:
        return []
    return [*_check_kind(monitoring), *_check_receivers(cluster, monitoring), *_check_alerts(monitoring)]


def _check_kind(monitoring: Monitoring) -> Iterator[Fault]:
    is_own = monitoring.prometheus == "Own"
    for field in ("labels",) if is_own else _OF_OWN:
        if field in monitoring.model_fields_set:
            key = _KEYS.get(field, field)
            remedy = (
                "Leave it out, or say prometheus: Operator." if is_own else "Set it in the Operator's own objects, or say prometheus: Own."
            )
            yield Fault(f"{_PATH}.{key}", f"does nothing with prometheus: {monitoring.prometheus}. {remedy}", (f"{_PATH}.prometheus",))


def _check_receivers(cluster: Cluster, monitoring: Monitoring) -> Iterator[Fault]:
    yield from check_unique(f"{_PATH}.receivers", "receiver", [receiver.name for receiver in monitoring.receivers])
    for at, receiver in enumerate(monitoring.receivers):
        path = f"{_PATH}.receivers[{at}]"
        yield from _check_receiver(path, receiver, cluster)
        name = receiver.match.get("alertname")
        if name is not None and name not in alert_names():
            yield Fault(f"{path}.match.alertname", f"no alert is called {quoted(name)}. {did_you_mean(name, alert_names())}")


def _check_receiver(path: str, receiver: Receiver, cluster: Cluster) -> Iterator[Fault]:
    if receiver.name in _RESERVED:
        yield Fault(f"{path}.name", f"{quoted(receiver.name)} is a name of Slipway's own. Take another.")
    yield from check_address(path, receiver, cluster)
    if not receiver.severities:
        yield Fault(f"{path}.severities", "is empty, so that the receiver gets no alert. Name severities, or remove the receiver.")


def _check_alerts(monitoring: Monitoring) -> Iterator[Fault]:
    names = alert_names()
    for at, name in enumerate(monitoring.without):
        if name not in names:
            yield Fault(f"{_PATH}.without[{at}]", f"no alert is called {quoted(name)}. {did_you_mean(name, names)}")
    yield from check_distinct(f"{_PATH}.without", monitoring.without)
