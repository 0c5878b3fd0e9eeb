"""Health checks beside users' jobs: slurmd runs this on its node, as HealthCheckProgram every minute, and as Prolog and Epilog of jobs.

`python3 -m programs.node_checks.beside`, as root, with the checks as JSON on standard input (configs/render/health_checks.py). Exit code: 9
if a prolog's check fails and the job may not start here, else 0. An outage of the checks themselves holds up no job.
"""

import json
import os
import select
import signal
import sys
import time

from slurm.collector import tell
from slurm.retelling import TELL_AGAIN_S

TYPE_CHECKING = False
if TYPE_CHECKING:  # each job pays for what is imported here
    from typing import Any, NoReturn

REFUSED = 9
"""The exit code for a job that may not start here."""
_CONTEXTS = {"prolog_slurmd": "prolog", "epilog_slurmd": "epilog"}
"""By what slurmd calls them in SLURM_SCRIPT_CONTEXT; a HealthCheckProgram has no such variable."""
_TOLD = "/run/slurm/slipway-checks.json"
"""The last report to the collector, so that later ones have changes only."""
_PACKAGE = __package__


def due(spec: "dict[str, Any]", node: str, context: str, user: int | None) -> "list[dict[str, Any]]":
    """The checks to run now. None for jobs of Slurm's own user: they are checks, and must not be kept from the node that they look at."""
    if context != "interval" and user == spec["slurmUser"]:
        return []
    return [check for check in spec["nodeSets"].get(node.rpartition("-")[0], ()) if context in check["contexts"]]


def by_state(checks: "list[dict[str, Any]]", state: str, told: "dict[str, Any]") -> "tuple[list[dict[str, Any]], list[dict[str, Any]]]":
    """The checks that look at a node in that state, or all without a state; and results of the others, as `skipped`. A check that has found
    something before keeps that result, as nodes change their state with each job."""
    looking = [check for check in checks if not state or state in check.get("nodeStates", (state,))]
    silent = [check for check in checks if check not in looking and check["name"] not in told.get("results", {})]
    return looking, [_result(check, "skipped", f"looks at nodes that are {check['nodeStates'][0]}") for check in silent]


def is_news(results: "list[dict[str, Any]]", told: "dict[str, Any]", context: str, now: float) -> bool:
    """True if the collector has to hear of these results.

    It has to hear of each pass that a failure needs to end. It has to hear of each failure at every look, as more nodes may be drained by
    then.
    """
    held = told.get("held", ())
    if any(outcome["result"] == "passed" and outcome["check"] in held for outcome in results):
        return True
    if any(outcome["result"] == "failed" or told.get("results", {}).get(outcome["check"]) != outcome["result"] for outcome in results):
        return True
    return context == "interval" and not 0 <= now - told.get("at", 0) < TELL_AGAIN_S


def read_answer(code: int, output: str) -> "tuple[str, str, Any] | None":
    """The result, what was found, and the driver that a check of GPUs has met, from a check's last line:
    `{"result": "passed" | "failed" | "unknown" | "skipped", "found": "..."}`. None for all else."""
    try:
        answer = json.loads(output.strip().splitlines()[-1])
        if code == 0 and answer["result"] in ("passed", "failed", "unknown", "skipped"):
            return answer["result"], str(answer["found"]), answer.get("driver")
    except (IndexError, KeyError, TypeError, ValueError):
        pass
    return None


def could_not_run(code: int, errors: str) -> str:
    """What was found if a check gave no answer."""
    last = (errors.strip().splitlines() or ["no output"])[-1]
    return f"could not run: {last} (exit code {code})"


def run_checks(checks: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """Runs the checks at once. A late check is killed and not waited for: it may hang in the kernel."""
    if len(checks) > 1:
        # What nearly all of them import: once here, not once in each. It is half of their processor time.
        import dataclasses  # noqa: F401 # pyright: ignore[reportUnusedImport]
        import pathlib  # noqa: F401 # pyright: ignore[reportUnusedImport]
        import typing  # noqa: F401 # pyright: ignore[reportUnusedImport]
    began = time.monotonic()
    running = [_begin(check) for check in checks]
    results: list[dict[str, Any]] = []
    for check, (process, pipe) in zip(checks, running, strict=True):
        output = _read(pipe, began + check["timeoutS"])
        _end(process)
        if output is None:
            result, found, driver = "unknown", f"did not end within {check['timeoutS']} s", None
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            result, found, driver = read_answer(code, output) or ("unknown", could_not_run(code, output), None)
        results.append({**_result(check, result, found), **({"driver": driver} if driver else {})})
    return results


def _result(check: "dict[str, Any]", result: str, found: str) -> "dict[str, Any]":
    about = {"kind": check["causeKind"], "maxDrained": check["maxDrained"], "passes": check.get("passes", 1)}
    about |= {"wish": check["wish"]} if "wish" in check else {}
    return {"check": check["name"], "result": result, "found": found, **about}


def _begin(check: "dict[str, Any]") -> tuple[int, int]:
    """Forks a process for a check, without the start of another Python. Returns it, and the pipe into which it prints."""
    pipe, into = os.pipe()
    process = os.fork()
    if process == 0:
        _be(check, into)
    os.close(into)
    return process, pipe


def _be(check: "dict[str, Any]", into: int) -> "NoReturn":
    """The process of a check. Its children are in its group, so that they end with it."""
    code = 1
    try:
        os.setsid()
        os.dup2(into, 1)  # slurmd waits for whoever has its file, also for a check that cannot be killed
        os.dup2(into, 2)
        sys.stdout = open(into, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        os.environ["SLURM_CONF"] = "/run/slurm/conf/slurm.conf"
        sys.argv[1:] = [json.dumps(check["settings"])]
        __import__(f"{_PACKAGE}.{check['check']}", fromlist=["main"]).main()
        code = 0
    except BaseException as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
    sys.stdout.flush()
    os._exit(code)


def _end(process: int) -> None:
    """Ends a check, with what it has left running."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return  # it has ended before it had a group of its own


def _read(pipe: int, end: float) -> str | None:
    """The text from a pipe until its last writer ends; None if that is after `end`, in monotonic seconds."""
    text = b""
    try:
        # Another check may have been waited for until then, while this one has ended.
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            part = os.read(pipe, 65536)
            if not part:
                return text.decode(errors="replace")  # a driver's message may have any byte
            text += part
    finally:
        os.close(pipe)
    return None


def _read_told() -> "dict[str, Any]":
    try:
        with open(_TOLD, encoding="utf-8") as file:
            told: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return {}
    return told


def _write_told(told: "dict[str, Any]") -> None:
    with open(f"{_TOLD}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.replace(file.name, _TOLD)


def main() -> int:
    spec = json.load(sys.stdin)
    context = _CONTEXTS.get(os.environ.get("SLURM_SCRIPT_CONTEXT", ""), "interval")
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    user = os.environ.get("SLURM_JOB_UID", "")
    checks = due(spec, node, context, int(user) if user.isdecimal() else None)
    if not checks:
        return 0
    told, now = _read_told(), time.time()
    state = ""
    if context == "interval" and any("nodeStates" in check for check in checks):
        from .node_states import node_state

        state = node_state(spec["slurmUser"])
    looking, skipped = by_state(checks, state, told)
    results = [*run_checks(looking), *skipped]
    told = _read_told()  # a prolog or an epilog may have told something meanwhile
    if not is_news(results, told, context, now):
        return 0
    report = {"node": node, "context": context, "job": os.environ.get("SLURM_JOB_ID", ""), "results": results}
    try:
        host, port = spec["collector"]
        answer = tell(host, port, spec["slurmUser"], report)
        if error := answer.get("error"):
            raise ValueError(error)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"checks: what was found is not noted: {error}\n")
        return 0
    known = {**told.get("results", {}), **{outcome["check"]: outcome["result"] for outcome in results}}
    names = {outcome["check"] for outcome in results}
    held = sorted({*answer.get("held", ())} | ({*told.get("held", ())} - names))
    _write_told({"at": now if context == "interval" else told.get("at", 0), "results": known, "held": held})
    if refused := answer.get("refused"):
        found_by_check = {outcome["check"]: outcome["found"] for outcome in results}
        sys.stderr.write("".join(f"check {name} failed: {found_by_check[name]}\n" for name in refused))
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
