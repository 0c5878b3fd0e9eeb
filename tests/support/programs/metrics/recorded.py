"""What Slurm 26.05 prints, as recorded on the dev stack, with the fields that matter as parameters; and the metrics of a page by name."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from programs.metrics.jobs import FIELDS

NOW = 1_795_541_000


def node(
    name: str,
    state: str = "IDLE+CLOUD",
    cpus: tuple[int, int] = (0, 2),
    gpus: tuple[int, int] = (0, 0),
    extra: str = "{}",
    comment: str = "",
    has_tres: bool = True,
) -> str:
    """A line of `scontrol --oneliner show nodes`; of cpus and gpus what jobs have, and all. Without TRES as with `--details`."""
    used, there = gpus
    gres = f"gpu:h100:{there}(S:0)" if there else "(null)"
    detail = "" if has_tres else f"GresDrain=N/A GresUsed={f'gpu:h100:{used}(IDX:0)' if there else '(null)'} "
    allocated = ",".join(
        [*([f"cpu={cpus[0]}"] if cpus[0] else []), *([f"gres/gpu={used},gres/gpu:h100={used}"] if used and has_tres else [])]
    )
    configured = f"cpu={cpus[1]},mem=2G,billing=2" + (f",gres/gpu={there},gres/gpu:h100={there}" if there and has_tres else "")
    said = f" Comment={comment}" if comment else ""
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=2  CPUAlloc={cpus[0]} CPUEfctv={cpus[1]} CPUTot={cpus[1]} CPULoad=2.05 "
        f"AvailableFeatures=h100 ActiveFeatures=h100 Gres={gres} {detail}NodeAddr=198.18.130.2 NodeHostName={name} Version=26.05.5 "
        f"OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=2048 AllocMem=0 FreeMem=16070 Sockets=1 Boards=1 State={state} "
        "ThreadsPerCore=1 TmpDisk=0 Weight=317 Owner=N/A MCS_label=N/A Partitions=main,gpu  BootTime=1795538237 "
        "SlurmdStartTime=1795540687 LastBusyTime=1795540864 ResumeAfterTime=None SuspendTime=INFINITE "
        f"CfgTRES={configured} AllocTRES={allocated} CurrentWatts=0 AveWatts=0{said} Extra={extra} Topology=fabric:fabric:local"
    )


def job(number: str = "1", state: str = "RUNNING", **more: Any) -> str:
    """A line of squeue, with the separators that jobs.COMMAND asks for."""
    values = {
        **dict.fromkeys(FIELDS, ""),
        "JobArrayID": number,
        "State": state,
        "Partition": "main",
        "Account": "research",
        "NumCPUs": "2",
        "NumNodes": "1",
        "EligibleTime": str(NOW - 100),
        "StartTime": "N/A" if state == "PENDING" else str(NOW - 50),
        "EndTime": "N/A" if state == "PENDING" else str(NOW + 3600),
        "tres-alloc": "cpu=2,mem=2G,node=1" + ("" if state == "PENDING" else ",billing=2"),
        "tres-per-job": "N/A",
        "tres-per-node": "N/A",
        "Reason": "Resources" if state == "PENDING" else "None",
        **{key.replace("_", "-") if key.startswith("tres") else key: str(value) for key, value in more.items()},
    }
    return "".join(f"{values[field]}\x1f" for field in FIELDS)


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a page, as Prometheus' own parser reads it; each series once."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(text: str, name: str) -> dict[str, float]:
    """The samples of one metric, by the values of their labels in the order of the labels' names."""
    return {"/".join(value for _, value in labels): amount for (each, labels), amount in samples(text).items() if each == name}
