"""What `/metrics` shows of the runtime. Labels are bounded: kinds, verbs and results, never the names of objects."""

from prometheus_client import Counter, Gauge, Histogram

_WAITS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60)

REQUESTS = Counter(
    "slipway_kubernetes_requests",
    "Requests to the API server. A refused or unreachable write may be tried again later.",
    ["verb", "resource", "result"],
)
REQUEST_SECONDS = Histogram(
    "slipway_kubernetes_request_duration_seconds",
    "Time of a request to the API server; for a watch, until it begins.",
    ["verb"],
    buckets=_WAITS,
)
INFORMER_OBJECTS = Gauge("slipway_informer_objects", "Objects in the local store.", ["resource"])
INFORMER_EVENTS = Counter("slipway_informer_events", "Changes heard from watches.", ["resource", "type"])
INFORMER_LISTS = Counter(
    "slipway_informer_lists", "Full lists begun: at the start, periodic, or because the watch could not go on.", ["resource", "why"]
)
INFORMER_FAILURES = Counter("slipway_informer_failures", "Lists and watches that failed.", ["resource", "result"])
INFORMER_UNREADABLE = Counter(
    "slipway_informer_unreadable", "Objects that could not be decoded; the last readable state is kept.", ["resource"]
)
INFORMER_CONTACT = Gauge(
    "slipway_informer_last_contact_timestamp_seconds", "When the API server was last heard, in seconds since 1970.", ["resource"]
)
QUEUE_DEPTH = Gauge("slipway_queue_keys", "Keys that wait for a worker.", ["queue"])
QUEUE_RETRIES = Counter("slipway_queue_retries", "Keys added again after a failure.", ["queue"])
QUEUE_WAIT_SECONDS = Histogram(
    "slipway_queue_wait_seconds", "Time from when a key was due until a worker took it.", ["queue"], buckets=_WAITS
)
QUEUE_WORK_SECONDS = Histogram("slipway_queue_work_seconds", "Time that a worker took for a key.", ["queue"], buckets=_WAITS)
EXPECTATIONS_EXPIRED = Counter(
    "slipway_expectations_expired", "Writes whose effect was never seen; the next look at the cluster decides again."
)
WRITER_WAIT_SECONDS = Counter("slipway_writer_wait_seconds", "Time that writes have waited for the rate limit.")
LEASE_HELD = Gauge("slipway_lease_held", "1 while this process leads.", ["lease"])
