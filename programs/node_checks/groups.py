"""Runs a check of the network between nodes, in jobs of two nodes or of all, and traces failures to a node or a link.

`python3 -m programs.node_checks.groups '<spec>'`, as SlurmUser. It prints a JSON line for each pair, and then, as run.py does, one for each
node. pairs.py decides what is tested next and what that proves; plan.py decides what becomes of a node.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from names import variables
from slurm import logs
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN
from slurm.commands import SlurmError
from slurm.pump import take_stderr
from slurm.scontrol import Node

from .allowance import Allowance, held_by_checks
from .measured import Measured, baseline, judge
from .order import Budget, in_order
from .pairs import PROOF, Pair, Verdict, pair, plan_pairs, verdict
from .plan import BUSY, ENDED, PREEMPTED, Done, Outcome, Reservation, Reserve, Run, Step, next_step, plan_checks
from .run import OTHERS_S, PAUSE_S, Notes, Spec, budget_of, check_node, end_on_signal, exit_code, read_spec, write_line
from .slurm import Slurm

_TURN_S = 900
"""Each quarter of an hour begins with other pairs."""
_PARTNERS = 4
"""Idle nodes that a run for some nodes only takes beside them: two pairs say what is usual."""
_AWAY = (BUSY, PREEMPTED)
_LIMITS = {"minBandwidthMBs": 0, "maxLatencyUs": 0}


class Tests:
    """The tests of one run, and their results so far. `report` is called for each."""

    def __init__(
        self,
        spec: Spec,
        slurm: Slurm,
        budget: Budget,
        report: Callable[[Pair, str, str], None],
        clock: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._spec, self._slurm, self._budget, self._report, self._parallel = spec, slurm, budget, report, spec.parallel
        self._clock, self._pause = clock, pause
        self._program = Path(__file__).with_name(f"{spec.check}.py")
        target = next(iter(spec.targets.values()))
        self._settings, self._gpus = {**target.settings}, target.gpus
        # An all-reduce over MPI is slower than a ping-pong, so its limits do not hold for pairs. NCCL's pairs have an all-reduce, too.
        self._limits = self._settings | (_LIMITS if spec.per == "set" else {})
        self.results: dict[Pair, str] = {}
        self.words: dict[Pair, str] = {}
        self.away: set[str] = set()
        """Nodes that jobs have taken meanwhile."""
        self._usual: float | None = None
        self._measured: dict[Pair, Measured] = {}

    def all_at_once(self, nodes: Sequence[Node]) -> tuple[str, str]:
        """The result of one test over all nodes, and what was found."""
        settings = self._settings | {"test": "all-reduce"}
        if refused := self._budget.refusal():
            return refused.result, refused.found
        began = time.monotonic()
        answer = self._slurm.run_together(self._spec.name, nodes, self._program, settings, self._spec.timeout_s, self._gpus, None)
        self._budget.spend((time.monotonic() - began) * len(nodes))
        return judge(answer, None, self._settings) if isinstance(answer, Measured) else (answer.result, answer.found)

    def round_of(self, pairs: Sequence[Pair], nodes: Mapping[str, Node]) -> None:
        """Tests these pairs side by side. The first round gives the usual figures; if it has a single pair, the first two do."""

        def test(names: Pair) -> Measured | Outcome:
            return self._test([nodes[name] for name in names], None)

        with ThreadPoolExecutor(max_workers=self._parallel) as pool:
            answers = dict(zip(pairs, pool.map(test, pairs), strict=True))
        self._measured |= {names: answer for names, answer in answers.items() if isinstance(answer, Measured)}
        if self._usual is None and (usual := baseline(self._measured.values())) is not None:
            self._usual = usual
            answers = {**self._measured, **answers}
        for names, answer in answers.items():
            if answer in _AWAY:
                self.away |= {
                    name for name, node in self._slurm.nodes(",".join(names)).items() if not isinstance(_step(self._spec, node), Run)
                }
            result, text = self._judged(answer)
            self.results[names], self.words[names] = result, text
            self._report(names, result, text)

    def with_good_nodes(self, node: Node, held: Reservation, nodes: Mapping[str, Node]) -> Outcome:
        """Tests a node in its reservation, with the good nodes there."""
        against: list[str] = []
        for name in held.partners:
            result, text = self._judged(self._test([node, nodes[name]], held))
            self._report(pair(node.name, name), result, text)
            if result == PASSED:
                return Outcome(PASSED, f"{text} with {name}")
            against += [f"{text} with {name}"] if result == FAILED else []
        return Outcome(FAILED if len(against) >= PROOF else UNKNOWN, "; ".join(against) or "no test gave an answer")

    def _test(self, nodes: Sequence[Node], held: Reservation | None) -> Measured | Outcome:
        """Tests again after meeting another check, or a job of this check that is ending: either is over soon."""
        began = self._clock()
        answer = self._test_once(nodes, held)
        while answer == BUSY and self._clock() <= began + OTHERS_S and self._are_checked([node.name for node in nodes], held):
            self._pause(PAUSE_S)
            answer = self._test_once(nodes, held)
        return answer

    def _are_checked(self, names: Sequence[str], held: Reservation | None) -> bool:
        """True if only jobs of checks are on these nodes. In a reservation no others can come."""
        steps = [_step(self._spec, node) for node in self._slurm.nodes(",".join(names)).values()]
        is_open = held is not None or all(isinstance(step, Run) or step == Done(BUSY) for step in steps)
        return is_open and not self._slurm.is_ending and all(map(self._slurm.is_held_by_checks, names))

    def _test_once(self, nodes: Sequence[Node], held: Reservation | None) -> Measured | Outcome:
        settings = self._settings | {"test": "ping-pong"}
        if refused := self._budget.refusal():
            return refused
        began = time.monotonic()
        try:
            return self._slurm.run_together(self._spec.name, nodes, self._program, settings, self._spec.timeout_s, self._gpus, held)
        except SlurmError as error:
            return Outcome(UNKNOWN, f"Slurm: {error}")
        finally:
            self._budget.spend((time.monotonic() - began) * len(nodes))

    def _judged(self, answer: Measured | Outcome) -> tuple[str, str]:
        return judge(answer, self._usual, self._limits) if isinstance(answer, Measured) else (answer.result, answer.found)


def run_groups(
    spec: Spec,
    slurm: Slurm,
    report: Callable[[str, Outcome], None],
    report_pair: Callable[[Pair, str, str], None],
    at: str,
    turn: int,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Runs the check on all idle nodes of its sets. Raises SlurmError if Slurm cannot be read. `turn` chooses the first pairs."""
    end = clock() + spec.deadline_s
    _finish(spec, slurm, at)
    budget = budget_of(spec, slurm)
    steps = _wait_for_others(spec, slurm, min(end, clock() + OTHERS_S), clock, pause)
    nodes = slurm.nodes()
    steps = in_order(spec.name, spec.after, steps, nodes)
    notes = Notes(spec, slurm, Allowance(held_by_checks(nodes, at, slurm.reservations())), at)
    free = [name for name, step in steps.items() if isinstance(step, Run)]
    tests = Tests(spec, slurm, budget, report_pair, clock, pause)
    outcomes = {name: step.outcome for name, step in steps.items() if isinstance(step, Done)}
    outcomes |= _test_free(spec, tests, free, nodes, turn, lambda: slurm.is_ending or clock() > end)
    for name in free:
        tested = outcomes[name]
        outcomes[name] = check_node(spec, name, Run(None), slurm, notes, lambda _node, _held, tested=tested: tested)
    good = [name for name in free if outcomes[name].result == PASSED]
    for name, step in steps.items():
        if isinstance(step, Reserve) and clock() <= end and not slurm.is_ending:
            partners = _partners(spec, slurm, good, min(end, clock() + OTHERS_S), clock, pause)
            outcomes[name] = _look_again(spec, slurm, notes, tests, name, step, partners)
        elif isinstance(step, Reserve):
            outcomes[name] = Outcome(UNKNOWN, "no time left in this run")
    if slurm.is_ending:  # what has no answer yet is not unknown: it was not looked at
        ended = {
            name: replace(outcome, result=SKIPPED, found=ENDED.found) for name, outcome in outcomes.items() if outcome.result == UNKNOWN
        }
        outcomes |= ended
    for name, outcome in outcomes.items():
        report(name, outcome)
    notes.write(outcomes)


def _test_free(
    spec: Spec, tests: Tests, free: Sequence[str], nodes: Mapping[str, Node], turn: int, is_over: Callable[[], bool]
) -> dict[str, Outcome]:
    """Tests the nodes that no job and no drain has."""
    if len(free) < 2:
        return {name: Outcome(UNKNOWN, "no other idle node to test with") for name in free}
    set_text = ""
    if spec.per == "set":
        result, set_text = tests.all_at_once([nodes[name] for name in free])
        set_text = f"{len(free)} nodes together: {set_text}"
        if result == PASSED:
            return {name: Outcome(PASSED, set_text) for name in free}
        if result == SKIPPED:
            return {name: Outcome(SKIPPED, set_text) for name in free}
    # Three nodes make one pair in a round, which has nothing to be compared with.
    screening, round_ = max(tests_rounds(spec), 2 if len(free) == 3 else 1), 0
    while not is_over():
        planned = plan_pairs([name for name in free if name not in tests.away], tests.results, round_, screening, turn)
        if not planned:
            break
        tests.round_of(planned, nodes)
        round_ += 1
    return {name: _outcome(name, verdict(free, tests.results), tests, set_text) for name in free}


def tests_rounds(spec: Spec) -> int:
    """Rounds of the tournament in each run."""
    return max(1, next(iter(spec.targets.values())).settings.get("rounds", 1))


def _outcome(name: str, told: Verdict, tests: Tests, set_text: str) -> Outcome:
    """What the tests prove of one node. `set_text` is what a failed test of all nodes said: some node or link has to be at fault."""
    partners = {names: next(partner for partner in names if partner != name) for names in tests.results if name in names}
    texts = {
        result: [f"{tests.words[names]} with {partner}" for names, partner in partners.items() if tests.results[names] == result]
        for result in (PASSED, FAILED)
    }
    if name in told.faulty:
        return Outcome(FAILED, "; ".join(texts[FAILED]))
    links = [f"the link to {partner} is at fault: {tests.words[names]}" for names, partner in partners.items() if names in told.links]
    if links:
        return Outcome(FAILED, "; ".join(links), is_spared=True)
    if name in tests.away:
        return BUSY
    if name in told.good and set_text and not (told.faulty or told.links):
        return Outcome(UNKNOWN, f"{set_text}; no node and no link of these is slow by itself")
    if name in told.good:
        return Outcome(PASSED, texts[PASSED][0])
    if texts[FAILED]:
        return Outcome(UNKNOWN, f"this node, the other one or their link is at fault: {'; '.join(texts[FAILED])}")
    if partners and all(tests.results[names] == SKIPPED for names in partners):
        return Outcome(SKIPPED, tests.words[next(iter(partners))])
    open_texts = [f"{tests.words[names]} with {partner}" for names, partner in partners.items()]
    return Outcome(UNKNOWN, "; ".join(open_texts) or "no good node was left to test with")


def _partners(
    spec: Spec, slurm: Slurm, good: Sequence[str], until: float, clock: Callable[[], float], pause: Callable[[float], None]
) -> dict[str, Node]:
    """Up to PROOF good nodes without a job. A node completes a job of this check for some time after srun has ended."""
    while True:
        seen = slurm.nodes(",".join(good)) if good else {}
        steps = {name: _step(spec, node) for name, node in seen.items()}
        idle = {name: seen[name] for name, step in steps.items() if isinstance(step, Run)}
        checked = [name for name, step in steps.items() if step == Done(BUSY) and slurm.is_held_by_checks(name)]
        if len(idle) >= PROOF or not checked or slurm.is_ending or clock() > until:
            return dict(list(idle.items())[:PROOF])
        pause(PAUSE_S)


def _look_again(spec: Spec, slurm: Slurm, notes: Notes, tests: Tests, name: str, step: Reserve, partners: Mapping[str, Node]) -> Outcome:
    """Tests a node that a check holds drained, with good nodes."""
    if not partners:
        return Outcome(UNKNOWN, "no good node was left to test with")
    reserve = Reserve(replace(step.reservation, partners=tuple(partners)))
    try:
        return check_node(spec, name, reserve, slurm, notes, lambda node, held: _in_reservation(tests, node, held, partners))
    except SlurmError as error:
        return Outcome(UNKNOWN, f"Slurm: {error}")


def _in_reservation(tests: Tests, node: Node, held: Reservation | None, nodes: Mapping[str, Node]) -> Outcome:
    # Another run has lifted the drain meanwhile: it looks at the node.
    return tests.with_good_nodes(node, held, nodes) if held else BUSY


def _finish(spec: Spec, slurm: Slurm, at: str) -> None:
    """Puts back what a killed run left. This comes first: its reservations have good nodes, too."""
    nodes, reservations = slurm.nodes(), slurm.reservations()
    notes = Notes(spec, slurm, Allowance(held_by_checks(nodes, at, reservations)), at)
    left = Outcome(UNKNOWN, "an earlier run was killed here")
    for name in [name for name, held in reservations.items() if held.is_of(spec.name) and spec.is_for(name)]:
        is_asked = name in spec.asked_nodes
        step = next_step(spec.name, name, nodes.get(name), reservations[name], None, is_asked=is_asked, longest_s=spec.longest_s)
        check_node(spec, name, step, slurm, notes, lambda _node, _held: left)


def _wait_for_others(spec: Spec, slurm: Slurm, until: float, clock: Callable[[], float], pause: Callable[[float], None]) -> dict[str, Step]:
    """The first step for each node, once no other check has a node. Schedules often name the same minute."""
    while True:
        steps = _chosen(spec, plan_checks(spec.name, spec.targets, slurm.nodes(), slurm.reservations(), spec.asked_nodes, spec.longest_s))
        busy = [name for name, step in steps.items() if step == Done(BUSY)]
        if slurm.is_ending or clock() > until or not any(slurm.is_held_by_checks(name) for name in busy):
            return steps
        pause(PAUSE_S)


def _chosen(spec: Spec, steps: dict[str, Step]) -> dict[str, Step]:
    """All nodes; in a run for some nodes, those and idle ones to test them with."""
    partners = [name for name, step in steps.items() if not spec.is_for(name) and isinstance(step, Run)][:_PARTNERS]
    return {name: step for name, step in steps.items() if spec.is_for(name) or name in partners}


def _step(spec: Spec, node: Node) -> Step:
    return next_step(spec.name, node.name, node, None, None)


def main() -> int:
    spec, slurm, now = read_spec(sys.argv[1], os.environ.get(variables.ASKED_NODES, "")), Slurm(), time.time()
    end_on_signal(slurm)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    try:
        run_groups(
            spec,
            slurm,
            lambda name, outcome: write_line(spec.name, {"node": name}, at, outcome),
            lambda names, result, text: write_line(spec.name, {"pair": names}, at, Outcome(result, text)),
            at,
            int(now // _TURN_S),
        )
    except SlurmError as error:
        logs.write(logs.line("check", f"check {spec.name}: {error}", logs.ERROR, check=spec.name))
        return 1
    return exit_code(slurm)


if __name__ == "__main__":
    take_stderr("check")
    sys.exit(main())
