"""Why a node is drained or down, and who set the reason. Slurm keeps one reason per node, which all our programs read.

A reason is a prefix: slurmctld appends ` : Not responding` or ` : ResumeTimeout reached` to it (measured on 26.05).
"""

OWN = "slipway: "
"""Start of every reason that Slipway writes. Reasons without it are others': only `Kill task failed` is ever cleared."""
POD_STOPPING = f"{OWN}pod stopping"
"""By a worker's stop hook: the pod is about to end."""
POD_REPLACED = f"{OWN}pod was replaced"
"""By a worker that starts where an earlier pod ended under jobs; the node is DOWN then, and comes back by registering."""
GPUS = f"{OWN}gpus: "
"""Start of a worker's drain of a node whose GPUs are not those of the config: `slipway: gpus: <both values>`. slurmd waits meanwhile."""
NODESET = f"{OWN}nodeset "
"""Start of the NodeSet controller's drains that take a worker away."""
SCALE_IN = f"{NODESET}scale-in"
UPDATE = f"{NODESET}update"
DELETE = f"{NODESET}delete"
REMEDY = f"{OWN}remedy"
"""The NodeSet controller's drain of a node that is to be repaired, and that no check holds.

The repair replaces its pod or machine, or reboots the machine. The drain is about the machine: no pod lifts it.
"""
BEFORE_JOBS = f"{OWN}admission"
"""A worker's drain before its slurmd starts, where health checks come before jobs: the NodeSet controller lifts it once they have passed on
that machine. It is about the machine: no pod lifts it."""
CORDON = f"{OWN}cordon "
"""Start of a drain that follows a cordoned Kubernetes node: `slipway: cordon <machine>`, and an administrator's words after a colon."""
MAINTENANCE = f"{OWN}maintenance "
"""Start of a drain that follows what was announced for a machine: `slipway: maintenance <machine>: <cause>`."""
REQUESTED = f"{OWN}requested: "
"""Start of a drain that an annotation of the worker's pod asks for: `slipway: requested: <its text>`. The NodeSet controller lifts it once
the annotation is gone, or the pod."""
CHECK = f"{OWN}check "
"""Start of a drain for what a health check has found: `slipway: check <name>: <what it found>`. The NodeSet controller lifts it, once no
check says that the node fails."""

NOT_RESPONDING = "Not responding"
RESUME_FAILED = "ResumeTimeout reached"
"""Slurm's own reason for a node that did not register in time; it is DOWN and POWERED_DOWN then. Source: measured on 26.05."""
KILL_FAILED = "Kill task failed"
"""slurmd could not end the processes of a job within UnkillableStepTimeout, and Slurm has drained the node."""
SLURM_USERS = frozenset({"root", "slurm"})
"""Who gives Slurm's own reasons: slurmd and slurmctld."""
_AUTOMATIC = (
    *(NOT_RESPONDING, RESUME_FAILED, KILL_FAILED, "Node unexpectedly rebooted", "Duplicate jobid", "batch job complete failure"),
    *("Prolog error", "Epilog error", "Prolog/Epilog failure", "Low ", "gres/", POD_REPLACED),
)
"""Starts of the reasons that Slurm gives by itself. All others are those of people. Source: the calls of drain_nodes and set_node_down in
Slurm's src/slurmctld (agent.c, job_mgr.c, node_mgr.c, proc_req.c, power_save.c), src/slurmd and src/interfaces/gres.c."""
_LONGEST = 240
_APPENDED = (f" : {NOT_RESPONDING}", f" : {RESUME_FAILED}")


def written(reason: str) -> str:
    """The reason as it was written, without what slurmctld has appended since."""
    while reason.endswith(_APPENDED):
        reason = reason[: reason.rindex(" : ")]
    return reason


def check(name: str, finding: str) -> str:
    """The reason of a drain for what a health check has found."""
    return _reason(f"{CHECK}{name}: {finding}")


def plain(text: str) -> str:
    """A text as Slurm's fields take it: one line of printable ASCII without quotes."""
    return " ".join("".join(letter if " " <= letter <= "~" and letter not in "\"'" else " " for letter in text).split())[:_LONGEST]


def printable(text: str) -> str:
    """A text of others as one line for people: without what a terminal obeys instead of showing it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _reason(text: str) -> str:
    """A reason of ours that quotes others. It must not end as slurmctld's own do: it would not be read back as it was written."""
    return written(plain(text))


def is_check(reason: str) -> bool:
    """True for the drain of a health check."""
    return reason.startswith(CHECK)


def awaits_checks(reason: str) -> bool:
    """True for a drain that the NodeSet controller lifts once checks that it starts have passed."""
    return reason.startswith((REMEDY, BEFORE_JOBS))


def is_lost(reason: str) -> bool:
    """True if the drain's reason is gone.

    slurmctld clears it when a node registers from power saving, keeps the drain, and may write its own reason later.
    """
    return written(reason) in ("", NOT_RESPONDING, RESUME_FAILED)


def is_drain_of_a_pod(reason: str) -> bool:
    """True for a drain that concerns the pod, not the machine: the node's next pod lifts it."""
    return reason.startswith((POD_STOPPING, GPUS, NODESET))


def is_automatic(reason: str) -> bool:
    """True for a reason that Slurm sets by itself, such as for a node that falls silent or does not come up."""
    return reason.startswith(_AUTOMATIC)


def is_on_purpose(reason: str) -> bool:
    """True for the words of a person or a health check."""
    ours = (NODESET, POD_STOPPING, GPUS, CORDON, MAINTENANCE, REQUESTED, REMEDY, BEFORE_JOBS)
    return bool(reason) and not is_automatic(reason) and not reason.startswith(ours)


def cordon(machine: str, message: str = "") -> str:
    """The reason of a drain that follows a cordoned Kubernetes node, with the administrator's words if there are any."""
    return _reason(f"{CORDON}{machine}: {message}" if message else f"{CORDON}{machine}")


def maintenance(machine: str, cause: str) -> str:
    """The reason of a drain that follows what was announced for a machine."""
    return _reason(f"{MAINTENANCE}{machine}: {cause}")


def requested(message: str) -> str:
    """The reason of a drain that an annotation of the worker's pod asks for."""
    return _reason(f"{REQUESTED}{message}")


def is_of_machine(reason: str) -> bool:
    """True for a drain that follows a cordoned Kubernetes node, or what was announced for one."""
    return reason.startswith((CORDON, MAINTENANCE))


def machine_in(reason: str) -> str:
    """The Kubernetes node that such a reason names; empty for any other reason."""
    return written(reason).removeprefix(CORDON).removeprefix(MAINTENANCE).partition(":")[0].strip() if is_of_machine(reason) else ""


def gpus(fault: str) -> str:
    """The reason of a worker's drain for GPUs that are not those of the config."""
    return written(f"{GPUS}{fault}")


def gpu_fault(reason: str) -> str:
    """What such a reason says of the GPUs; empty for any other reason."""
    return written(reason).removeprefix(GPUS) if reason.startswith(GPUS) else ""


def gpu_remark(comment: str) -> str:
    """What a node's comment says of its GPUs, if a worker wrote it; empty for any other comment."""
    return comment.removeprefix(GPUS) if comment.startswith(GPUS) else ""


def has_failed_to_resume(reason: str) -> bool:
    """True if Slurm gave the node up because it did not register in time, whatever its earlier reason."""
    return reason.startswith(RESUME_FAILED) or reason.endswith(f" : {RESUME_FAILED}")
