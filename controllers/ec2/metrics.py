"""What `/metrics` shows of the program for EC2. Alert on the age of the last answer."""

from prometheus_client import Counter, Gauge

ANSWERED = Gauge(
    "slipway_ec2_last_answer_timestamp_seconds", "When EC2 last answered for all machines, or the program began: seconds since 1970."
)
FAILURES = Counter(
    "slipway_ec2_failures", "Questions about the machines that EC2 did not answer, and conditions that could not be written."
)
MACHINES = Gauge("slipway_ec2_machines", "Kubernetes nodes by what EC2 says of their instances.", ["state"])
STEPS = Counter("slipway_ec2_steps", "Requests for a reboot or a replacement, by what became of them.", ["step", "result"])
