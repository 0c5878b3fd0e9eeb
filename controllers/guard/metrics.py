"""What `/metrics` shows of the guard. Alert on `slipway_guard_stopped > 0`."""

from prometheus_client import Counter, Gauge

RESTORED = Counter("slipway_guard_restored", "Objects brought back to what was deployed.", ["kind"])
STOPPED = Gauge("slipway_guard_stopped", "Objects that are changed again and again, and are left as they are.")
PAUSED = Gauge("slipway_guard_paused", "Objects that an annotation keeps the guard away from; all of them where it is on the record.")
GUARDED = Gauge("slipway_guard_objects", "Objects that are guarded.")
LAST_SUCCESS = Gauge(
    "slipway_cronjob_last_success_timestamp_seconds", "When a CronJob of the stack last succeeded, in seconds since 1970.", ["cronjob"]
)
