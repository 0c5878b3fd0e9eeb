"""The dev stack on the local cluster, as the cluster tests see it: the product's own verbs, kubectl, ssh as a plain user, Slurm as root.

Nothing here knows how a thing is made; it runs what a user would run, and waits for conditions with a deadline.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from cli.check.facts import WAIT_FOR_ACCOUNT
from configs.models.health_checks import HealthCheck
from tests.support import ssh
from tests.support.cluster.inside import Way, way_into
from tests.support.cluster.reads import Reads
from tests.support.cluster.warm import warm
from tests.support.patience import patience
from tests.support.report import last_words, node_set_trouble, pod_trouble

T = TypeVar("T")

ROOT = Path(__file__).parents[3]
STATE = ROOT / ".slipway"
KEY = STATE / "ssh" / "id_ed25519"
NAMESPACE = "slurm"
NODE_PORT = "30022"
CONTROLLER = "app.kubernetes.io/component=nodeset-controller"
UP_S = 300.0
"""How long `up` waits for what it has changed, unless told otherwise."""
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}


def eventually(what: str, probe: Callable[[], T], deadline_s: float = 120.0, every_s: float = 0.25) -> T:
    """The first true value of `probe`, asked every `every_s` seconds, and what takes long less often: others want the processor. Fails
    after the deadline, by the machine's pace, with `what` and what was last seen."""
    began = time.monotonic()
    while True:
        last: object = None
        try:
            value = probe()
        except (subprocess.SubprocessError, AssertionError, LookupError, ValueError, StopIteration) as error:
            last = error
        else:
            if value:
                return value
            last = value
        if (waited_s := time.monotonic() - began) > deadline_s * patience():
            raise AssertionError(f"not within {waited_s:.0f} s: {what}; last seen: {last!r}")
        time.sleep(max(every_s, min(waited_s / 20, 1.5)))


class DevStack:
    """Handles to one running dev stack. Every call has a deadline, by the machine's pace; a failed command raises with its output."""

    is_settled = True
    is_lost = False

    def __init__(self) -> None:
        self._ways: dict[str, Way] = {}

    def run(
        self, *argv: str, check: bool = True, timeout_s: float = 120, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command from the project root, with the local cluster's kubeconfig or other variables; its whole output is in the failure."""
        variables = {**os.environ, "KUBECONFIG": str(STATE / "kubeconfig")} if env is None else env
        limit_s = timeout_s * patience()
        done = subprocess.run(argv, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=limit_s, check=False, input=stdin)
        return _checked(done) if check else done

    def slipway(self, verb: str, *options: str, check: bool = True, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
        """`slipway VERB --stack dev` with further options; its whole output is in the failure."""
        variables = {**os.environ, "KUBECONFIG": str(STATE / "kubeconfig")}
        waits = ("--timeout", f"{UP_S * patience():.0f}") if verb == "up" else ()
        done = warm().run((verb, "--stack", "dev", *waits, *options), variables, timeout_s * patience())
        return _checked(done) if check else done

    def kubectl(self, *arguments: str, check: bool = True, timeout_s: float = 60, stdin: str = "") -> str:
        """kubectl in the stack's namespace; its standard output."""
        done = self.run(str(STATE / "bin" / "kubectl"), "--namespace", NAMESPACE, *arguments, check=check, timeout_s=timeout_s, stdin=stdin)
        return done.stdout

    def wait(self, *what: str, deadline_s: float) -> None:
        """`kubectl wait`: objects, and `--for` what."""
        self.kubectl("wait", *what, f"--timeout={deadline_s * patience():.0f}s", timeout_s=deadline_s + 30)

    @cached_property
    def reads(self) -> Reads:
        """What the API server has, in the stack's namespace."""
        return Reads(STATE / "kubeconfig", NAMESPACE)

    def get(self, kind: str, name: str = "", labels: str = "", fields: str = "") -> Any:
        """An object of the stack, or a list of a kind: what `kubectl get -o json` gives."""
        return self.reads.get(kind, name, labels, fields)

    def inside(self, pod: str, program: str, command: str, check: bool = True, timeout_s: float = 60) -> str:
        """A shell command in the container of a pod whose first process runs this program of ours, as `kubectl exec` would run it."""
        way = self._ways.get(pod)
        if way is None or not way.is_open():
            way = way_into(NAMESPACE, pod, program)
        if way is None:
            assert not check, f"no {program} runs in {pod} on this machine"
            return ""
        self._ways[pod] = way
        return self.run(*way.words, "bash", "-c", command, check=check, timeout_s=timeout_s, env=way.variables).stdout

    def slurm(self, command: str, check: bool = True, timeout_s: float = 60) -> str:
        """A shell command beside slurmctld: an administrator's view."""
        return self.inside("dev-slurmctld-0", "programs.slurmctld", command, check, timeout_s)

    def worker(self, pod: str, command: str, check: bool = True) -> str:
        """A shell command beside a slurmd: an administrator's view."""
        return self.inside(pod, "programs.worker", command, check)

    @cached_property
    def address(self) -> str:
        """A node's address that the login NodePort answers on; asked once, as tests take the API server away."""
        return self.run(
            str(STATE / "bin" / "kubectl"),
            *("get", "node", "system", "-o", 'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}'),
        ).stdout

    def ssh(self, command: str, user: str = "alice", check: bool = True, timeout_s: float = 120, stdin: str = "") -> str:
        """A command of a plain user over ssh, from outside the pods; its standard output."""
        options = ssh.options(f"ConnectTimeout={20 * patience():.0f}")
        done = self.run(
            *("ssh", "-i", str(KEY), "-p", NODE_PORT, *options, f"{user}@{self.address}", command),
            check=check,
            timeout_s=timeout_s,
            stdin=stdin,
        )
        return done.stdout

    def submit(self, script: str, *options: str) -> int:
        """`sbatch` of a script as the plain user; the job's id."""
        done = self.ssh(f"cat > job.$$ && sbatch --parsable {' '.join(options)} job.$$", stdin=script)
        return int(done.strip().split(";")[0])

    def hold(self, *options: str, begins: str = "true") -> int:
        """A job that runs a command, then until `let_go`; its id."""
        self.ssh("rm -f go")
        return self.submit(f"#!/bin/bash\n{begins}\nuntil [[ -e go ]]; do sleep 0.5; done\n", *options)

    def let_go(self) -> None:
        """Lets all held jobs end."""
        self.ssh("touch go")

    def job_states(self, job: int) -> list[str]:
        """The job's state as slurmctld has it, for instance RUNNING or COMPLETED; of an array, that of each task."""
        shown = self.slurm(f"scontrol show job {job} -o")
        return [word.partition("=")[2] for word in shown.split() if word.startswith("JobState=")]

    def job_state(self, job: int) -> str:
        """The state of a job that is no array."""
        return self.job_states(job)[0]

    def wait_for_job(self, job: int, state: str = "COMPLETED", deadline_s: float = 120) -> None:
        """Waits until the job, or each task of the array, is in `state`; fails at once when it has ended otherwise."""

        def there() -> bool:
            states = {*self.job_states(job)}
            if ended := states & ENDED - {state}:
                raise RuntimeError(f"job {job} is {' and '.join(ended)}, not {state}:\n{self.slurm(f'scontrol show job {job}')}")
            return states == {state}

        eventually(f"job {job} {state}", there, deadline_s)

    def declared(self) -> dict[str, Any]:
        """What was declared of the stack's objects: of each its annotations, with the generation of its spec, or its content where it has
        no generation. Where this is as before, `up` has nothing to put back."""
        workloads = "deployments statefulsets cronjobs jobs nodesets"
        others = "services configmaps secrets persistentvolumeclaims networkpolicies roles rolebindings"
        ours = "app.kubernetes.io/part-of=slipway"
        found = [(kind, one) for kind in f"{workloads} {others}".split() for one in self.get(kind, labels=ours)["items"]]
        about = {f"{kind}/{one['metadata']['name']}": one for kind, one in found if "ownerReferences" not in one["metadata"]}
        content = ("data", "spec", "rules", "subjects")
        return {
            name: (one["metadata"].get("annotations"), one["metadata"].get("generation") or [one.get(part) for part in content])
            for name, one in about.items()
        }

    def nodes(self) -> dict[str, str]:
        """Slurm node names and their states, for instance {"cpu-0": "IDLE+CLOUD"}."""
        shown = self.slurm("scontrol show node -o")
        pairs = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in shown.splitlines() if line]
        return {pair["NodeName"]: pair["State"] for pair in pairs}

    def wait_until_new(self, pod: str, before: str, deadline_s: float = 120) -> None:
        """Waits until a worker's pod is another than the one with the uid `before`, and its slurmd has registered: until then Slurm says of
        the node what it knew of the old one, and may lose a job there."""

        def there() -> bool:
            about = self.get("pod", pod)["metadata"]
            [node] = json.loads(self.slurm(f"scontrol show node {pod} --json"))["nodes"]
            made = datetime.fromisoformat(about["creationTimestamp"]).timestamp()
            return about["uid"] != before and node["slurmd_start_time"]["number"] >= made

        eventually(f"another {pod}, which has registered", there, deadline_s)

    def wait_until_idle(self, deadline_s: float = 180) -> None:
        """Waits until every Slurm node is plainly IDLE: registered, undrained, without jobs. Elastic ones may be off instead."""
        eventually("all nodes idle", lambda: all(_is_quiet(name, state) for name, state in self.nodes().items()), deadline_s)

    def wait_until_open(self) -> None:
        """As `wait_until_idle`, after a stack was made: also until the plain user may submit jobs, for which `make up` waits as well."""
        self.wait_until_idle()
        self.ssh(f"bash -c {shlex.quote(WAIT_FOR_ACCOUNT)}")

    def wait_until_settled(self, deadline_s: float = 180) -> None:
        """Waits until no node set is in a change any more, its roll included, and all nodes are idle: `up` waits for no roll."""
        self.is_settled = False
        eventually("all node sets up to date", lambda: all(_is_settled(one) for one in self.get("nodesets")["items"]), deadline_s)
        self.wait_until_idle(deadline_s)
        self.is_settled = True

    def put_to_sleep(self) -> None:
        """Has Slurm power the elastic nodes down now, which it does by itself 30 s after their last job."""
        idle = "sinfo -h -N -n burst-[0-1] -t idle -o '%N %T' | awk '$2 == \"idle\" {print $1}'"
        self.slurm(f"{idle} | xargs -rI@ scontrol update nodename=@ state=power_down")
        eventually("asleep", lambda: all("POWERED_DOWN" in state for node, state in self.nodes().items() if node.startswith("burst-")), 200)

    def look_at(self, *nodes: str) -> None:
        """Runs the nodes' own checks as often as a failure that is mended takes to end: what slurmd does each minute. The nodes do not rely
        on what they told before, as the test may have noted a failure for them."""
        for name in nodes:
            self.worker(name, "rm -f /run/slurm/slipway-checks.json")
        for _ in range(HealthCheck.model_fields["passes"].default):
            for name in nodes:
                self.worker(name, f"SLURMD_NODENAME={name} /run/slurm/conf/slipway-checks.sh")

    def quiet(self) -> None:
        """No jobs, and all nodes idle."""
        self.is_settled = False
        self.slurm("scancel --state=PENDING --user=alice; scancel --user=alice; scancel --user=carol")
        self.wait_until_settled()

    def ready(self) -> None:
        """As `quiet`, which the test before has waited for. What a failed test left in pieces is mended by the verbs of `make up`, by
        cancelled jobs and lifted drains.

        Where that does not help, the tests after it fail at once: one fault is to cost minutes, not the whole run.
        """
        assert not self.is_lost, "a test before this one left the stack in pieces"
        if not self.is_settled:
            self.is_lost = True
            self.run(sys.executable, "-m", "local", "prepare", timeout_s=600)
            self.mend()
            self.is_lost = False

    def forget_repairs(self, nodeset: str) -> None:
        """Has a set know of no repair, as after a day: the steps of an earlier test would hold up the next."""
        self.kubectl("patch", "nodeset", nodeset, "--subresource=status", "--type=merge", "--patch", '{"status": {"repairs": null}}')

    def undeclare_repairs(self, nodeset: str, check: bool = True) -> None:
        """Takes away what tests declare of repairs and checks with kubectl, and the stack's file does not: `up` leaves that alone."""
        spec = dict.fromkeys(("remedies", "checkJobs", "checksBeforeJobs"))
        self.kubectl("patch", "nodeset", nodeset, "--type=merge", "--patch", json.dumps({"spec": spec}), check=check)

    def pause_guard(self, *objects: str) -> None:
        """Has the guard leave objects as the test changes them by hand: `kind/name`."""
        self.kubectl("annotate", "--overwrite", *objects, "slipway.dev/guard=paused")

    def resume_guard(self, *objects: str) -> None:
        """Lets the guard bring objects back to what was deployed."""
        self.kubectl("annotate", *objects, "slipway.dev/guard-")

    def mend(self) -> None:
        """`up`, also where a test that was killed left changes by hand, jobs and drains."""
        self.kubectl("annotate", "--all", "deployments,statefulsets,services,configmaps,nodesets", "slipway.dev/guard-", check=False)
        self.undeclare_repairs("gpu", check=False)
        self.slipway("up", "--force-conflicts", "--adopt", timeout_s=600)
        drained = "sinfo -h -N -t drain -o %N | sort -u"
        self.slurm("sinfo -h -N -o %N | sort -u | xargs -rI@ scontrol update nodename=@ extra={}")
        self.slurm(f"scancel --state=PENDING,RUNNING,SUSPENDED; {drained} | xargs -rI@ scontrol update nodename=@ state=undrain")
        self.quiet()

    def let_controller_look(self, nodeset: str, times: int = 3) -> None:
        """Has the controller look at a set and decide again, as many sweeps would, but without the half minute between them."""
        for look in range(times):
            before = self._rounds()
            self.kubectl("annotate", "nodeset", nodeset, f"test/look={look}-{time.time()}", "--overwrite")
            eventually("a round of the controller", lambda before=before: self._rounds() > before, 60)
        self.kubectl("annotate", "nodeset", nodeset, "test/look-")

    def _rounds(self) -> float:
        """Rounds that the leading controller has ended."""
        pods = [pod["metadata"]["name"] for pod in self.get("pods", labels=CONTROLLER)["items"]]
        texts = [self.reads.text(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics") for pod in pods]
        lines = [line for text in texts for line in text.splitlines() if line.startswith("slipway_queue_work_seconds_count")]
        return sum(float(line.split()[-1]) for line in lines)

    def trouble(self) -> list[str]:
        """What is not as in a settled stack, a line each, with the last words of containers: the head of a failed test's report."""
        try:
            pods, node_sets = (self.get(kind)["items"] for kind in ("pods", "nodesets"))
            lines = [*node_set_trouble(node_sets), *pod_trouble(pods)]
            for line in [line for line in lines if ", container " in line][:2]:
                pod, _, container = line.removeprefix("pod ").partition(", container ")
                words = self.kubectl("logs", pod, "-c", container.split()[0], "--tail=3", check=False, timeout_s=10)
                lines[lines.index(line) + 1 : lines.index(line) + 1] = [f"| {word}" for word in last_words(words)]
            slurm = "sinfo -hN -t down,drain,fail,no_respond -o 'Slurm node %N is %T: %E' | sort -u; squeue -ah -o 'job %i is %T: %R'"
            return [*lines, *self.slurm(slurm, check=False, timeout_s=20).splitlines()]
        except (subprocess.SubprocessError, AssertionError, ValueError, OSError) as error:
            return [f"the stack cannot be looked at: {error}"]

    def look(self) -> str:
        """What is to be seen of the stack now, for the report of a failed test."""
        kubectl = str(STATE / "bin" / "kubectl")
        slurm = ("exec", "dev-slurmctld-0", "-c", "slurmctld", "--", "bash", "-c", "sinfo -N -o '%N %T %E' | sort -u; squeue -a")
        looks = (
            ("get", "nodes"),
            ("get", "nodesets,pods", "-o", "wide"),
            slurm,
            ("get", "events", "--sort-by=.lastTimestamp", "-o", "custom-columns=:.lastTimestamp,:.involvedObject.name,:.reason,:.message"),
            ("logs", f"--selector={CONTROLLER}", "--prefix", "--tail=15"),
        )
        shown: list[str] = []
        for one in looks:
            try:
                done = self.run(kubectl, "--namespace", NAMESPACE, "--request-timeout=10s", *one, check=False, timeout_s=30)
                shown += (done.stdout + done.stderr).splitlines()[-30:]
            except (subprocess.SubprocessError, OSError) as error:
                shown.append(str(error))
        return "\n".join(shown)


def _checked(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    assert done.returncode == 0, f"{' '.join(done.args)} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done


def _is_settled(nodeset: Any) -> bool:
    status = nodeset.get("status", {})
    updated = next((one["status"] for one in status.get("conditions", []) if one["type"] == "Updated"), "Unknown")
    is_whole = status.get("ready", 0) >= nodeset["spec"].get("replicas", 0)  # Slurm calls a node idle whose pod is only being made
    return is_whole and status.get("observedGeneration") == nodeset["metadata"]["generation"] and updated == "True"


def _is_quiet(node: str, state: str) -> bool:
    return state == "IDLE+CLOUD" or (node.startswith("burst-") and state in ("IDLE+CLOUD+POWERED_DOWN", "IDLE+CLOUD+POWERING_DOWN"))
