"""Runs the checks over ssh: asks, submits all jobs at once, waits for them, reads what they wrote, and leaves nothing behind."""

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
"""For what needs no job: the facts, a small program to compile, a small package to install."""
_RECORDED_S = 20
"""slurmctld sends records of jobs to slurmdbd some seconds after their end."""
_OUTPUT_BYTES = 20_000
"""Of each job."""


def check(login: Login, timeout_s: float) -> list[Row]:
    """The table's rows. Jobs that have not ended after `timeout_s` are cancelled. Raises SlipwayError where nobody gets in."""
    began = monotonic()
    try:
        facts = read_facts(_session(login, QUESTION, _ANSWER_S))
    except KeyError as error:
        raise SlipwayError(f"the login session answers without {error}: is {login.host} a login node of Slipway?") from None
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
    """What a script of bash prints in a login session, its errors included. Raises SlipwayError."""
    command = [*login.command("BatchMode=yes", "ConnectTimeout=10"), "bash -l -s"]
    try:
        done = subprocess.run(command, input=f"exec 2>&1\n{script}", capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise SlipwayError(f"no answer from a login session on {login.host} within {timeout_s:.0f} s") from None
    except OSError as error:
        raise SlipwayError(f"ssh does not run: {error}") from error
    if check and done.returncode:
        raise SlipwayError(f"a login session ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _submit(login: Login, facts: Facts, tasks: Sequence[Task]) -> dict[str, Result]:
    """Submits every job. One that does not get so far has the words of what refused it."""
    scripts = [f"cd {shlex.quote(facts.folder)}"]
    for task in tasks:
        sbatch = shlex.join(["sbatch", "--parsable", f"--job-name=check-{task.name}", f"--output={task.name}.out", *task.options])
        body = shlex.quote(f"#!/bin/bash\n{task.script}")
        scripts += [
            f"said=$( (set -e\n{task.before}\n) 2>&1) && said=$(printf %s {body} | {sbatch} 2>&1)",
            f'if [ $? = 0 ]; then echo "job|{task.name}|${{said%%;*}}|$EPOCHREALTIME"',
            f'else printf "%s\\n" "refused|{task.name}" "$said" "end|"; fi',
        ]
    found: dict[str, Result] = {task.name: Result() for task in tasks}
    refused: str | None = None
    for line in _session(login, "\n".join(scripts), _ANSWER_S).splitlines():
        word, _, rest = line.partition("|")
        if word == "job":
            name, job, submitted = rest.split("|")
            found[name] = Result(job, float(submitted))
        elif word == "refused":
            refused = rest
        elif word == "end":
            refused = None
        elif refused:
            found[refused] = replace(found[refused], output=f"{found[refused].output}{line}\n")
    return found


def _wait(login: Login, results: dict[str, Result], timeout_s: float) -> None:
    """Waits until the jobs have ended, and keeps how each ended and when."""
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
    """Reads what the jobs wrote, on the login node."""
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
        ask = f"sleep 0.3; sacct --allocations --noheader --parsable2 --format=JobID,State --jobs={','.join(jobs)}"
        lines = _session(login, ask, _ANSWER_S, check=False).splitlines()
        states = dict(line.split("|", 1) for line in lines if "|" in line)
        if all(states.get(job) == "COMPLETED" for job in jobs) or monotonic() > end:
            break
    return judge_accounting(facts, jobs, states)


def _tidy(login: Login, facts: Facts, jobs: Sequence[str]) -> None:
    cancel = f"scancel {' '.join(jobs)}" if jobs else "true"
    away = f"{TAKE_PACKAGE_AWAY} >/dev/null" if not facts.sudo else "true"
    _session(login, f"{cancel}; {away}; rm -rf {shlex.quote(facts.folder)}", _ANSWER_S, check=False)
