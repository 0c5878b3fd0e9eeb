"""Runs the checks over ssh: submits all jobs at once, waits for them, reads their output, and removes everything."""

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from cli.check.facts import QUESTION, Facts, read_facts
from cli.check.login import Login
from cli.check.tasks import TAKE_PACKAGE_AWAY, Result, Row, Task, judge, judge_accounting, judge_files, judge_missing, plan
from engine.faults import SlipwayError

_ANSWER_S = 120
"""Limit of a session that waits for no job: to read facts, compile a small program or install a small package."""
_RECORDED_S = 20
"""slurmctld sends a job's record to slurmdbd some seconds after its end."""
_OUTPUT_BYTES = 20_000
"""What is read of each job's output."""


def check(login: Login, timeout_s: float) -> list[Row]:
    """The rows of the table. Jobs that have not ended after `timeout_s` are cancelled. Raises SlipwayError if the login fails."""
    began = monotonic()
    try:
        facts = read_facts(_session(login, QUESTION, _ANSWER_S))
    except KeyError as error:
        raise SlipwayError(f"The answer of the login session lacks {error}. Check that {login.host} is a login node of Slipway.") from None
    rows = [Row("login", True, f"{facts.user}@{login.host}, port {login.port}", seconds=monotonic() - began)]
    tasks, unchecked = plan(facts)
    results: dict[str, Result] = {}
    try:
        results |= _submit(login, facts, tasks)
        _wait(login, results, timeout_s)
        _collect(login, facts, results)
        rows += [judge(task, results[task.name], facts.user) for task in tasks]
        unchecked += judge_missing(tasks, results)
        rows.append(_recorded(login, facts, [result.job for result in results.values() if result.state == "COMPLETED"]))
    finally:
        _tidy(login, facts, [result.job for result in results.values() if result.job])
    if files := judge_files(rows, tasks):
        rows.append(Row("shared home", True, f"files from {files} nodes"))
    return [*rows, *unchecked]


def _session(login: Login, script: str, timeout_s: float, check: bool = True) -> str:
    """The output of a bash script in a login session, with its errors. Raises SlipwayError."""
    command = [*login.command("BatchMode=yes", "ConnectTimeout=10"), "bash -l -s"]
    try:
        result = subprocess.run(command, input=f"exec 2>&1\n{script}", capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise SlipwayError(f"A login session on {login.host} did not answer within {timeout_s:.0f} s.") from None
    except OSError as error:
        raise SlipwayError(f"ssh cannot be started: {error}") from error
    if check and result.returncode:
        raise SlipwayError(
            f"A login session on {login.host} ended with exit code {result.returncode}: {(result.stderr or result.stdout).strip()}"
        )
    return result.stdout


def _submit(login: Login, facts: Facts, tasks: Sequence[Task]) -> dict[str, Result]:
    """Submits every job. The result of a refused one has the output of what refused it."""
    scripts = [f"cd {shlex.quote(facts.folder)}"]
    for task in tasks:
        sbatch = shlex.join(["sbatch", "--parsable", f"--job-name=check-{task.name}", f"--output={task.name}.out", *task.options])
        body = shlex.quote(f"#!/bin/bash\n{task.script}")
        scripts += [
            f"said=$( (set -e\n{task.before}\n) 2>&1) && said=$(printf %s {body} | {sbatch} 2>&1)",
            f'if [ $? = 0 ]; then echo "job|{task.name}|${{said%%;*}}|$EPOCHREALTIME"',
            f'else printf "%s\\n" "refused|{task.name}" "$said" "end|"; fi',
        ]
    results: dict[str, Result] = {task.name: Result() for task in tasks}
    refused: str | None = None
    for line in _session(login, "\n".join(scripts), _ANSWER_S).splitlines():
        word, _, fields = line.partition("|")
        if word == "job":
            name, job, submitted = fields.split("|")
            results[name] = Result(job, float(submitted))
        elif word == "refused":
            refused = fields
        elif word == "end":
            refused = None
        elif refused:
            results[refused] = replace(results[refused], output=f"{results[refused].output}{line}\n")
    return results


def _wait(login: Login, results: dict[str, Result], timeout_s: float) -> None:
    """Waits until the jobs have ended, and stores state and duration of each."""
    names = {result.job: name for name, result in results.items() if result.job}
    if not names:
        return
    listed = ",".join(names)
    script = f"""end=$((SECONDS + {int(timeout_s)})); declare -A done
while [ ${{#done[@]}} -lt {len(names)} ] && [ $SECONDS -lt $end ]; do
  left=$(squeue --noheader --format=%i --jobs={listed} 2>/dev/null) || left=
  for job in {" ".join(names)}; do
    if [ -z "${{done[$job]-}}" ] && ! grep -qx "$job" <<<"$left"; then done[$job]=1; echo "ended|$job|$EPOCHREALTIME"; fi
  done
  sleep 0.3
done
for job in {" ".join(names)}; do
  scontrol --oneliner show job $job | sed -nE "s/.* JobState=([A-Z_]+) Reason=(\\S+) .*/state|$job|\\1|\\2/p"
done
"""
    output = _session(login, script, timeout_s + _ANSWER_S)
    ended: dict[str, float] = {}
    for line in output.splitlines():
        word, *values = line.split("|")
        if word == "ended":
            ended[values[0]] = float(values[1])
        elif word == "state":
            job, state, reason = values
            result = results[names[job]]
            seconds = ended[job] - result.submitted if job in ended else timeout_s
            results[names[job]] = replace(result, state=state, reason=reason, seconds=seconds)


def _collect(login: Login, facts: Facts, results: dict[str, Result]) -> None:
    for name, result in results.items():
        if result.job:
            folder = shlex.quote(facts.folder)
            output = _session(login, f"cd {folder} && head -c {_OUTPUT_BYTES} {name}.out", _ANSWER_S, check=False)
            files = _session(login, f"cd {folder} && cat {name}.files/* 2>/dev/null", _ANSWER_S, check=False)
            results[name] = replace(result, output=output, files=files)


def _recorded(login: Login, facts: Facts, jobs: Sequence[str]) -> Row:
    states: dict[str, str] = {}
    end = monotonic() + _RECORDED_S
    while facts.has_accounting and jobs:
        script = f"sleep 0.3; sacct --allocations --noheader --parsable2 --format=JobID,State --jobs={','.join(jobs)}"
        lines = _session(login, script, _ANSWER_S, check=False).splitlines()
        states = dict(line.split("|", 1) for line in lines if "|" in line)
        if all(states.get(job) == "COMPLETED" for job in jobs) or monotonic() > end:
            break
    return judge_accounting(facts, jobs, states)


def _tidy(login: Login, facts: Facts, jobs: Sequence[str]) -> None:
    cancel = f"scancel {' '.join(jobs)}" if jobs else "true"
    remove_package = f"{TAKE_PACKAGE_AWAY} >/dev/null" if not facts.sudo else "true"
    _session(login, f"{cancel}; {remove_package}; rm -rf {shlex.quote(facts.folder)}", _ANSWER_S, check=False)
