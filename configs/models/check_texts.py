"""What the pages docs/reference/stack-file.md and docs/reference/checks.md say of health checks: from programs/node_checks/kinds.py."""

from collections.abc import Iterable

from programs.node_checks.kinds import ALWAYS, KINDS, Check, Context, FaultKind


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def kinds() -> str:
    """What each kind fails at, and which of them need a program of others."""
    each = " ".join(f"{name}: {check.fails_where}." for name, check in KINDS.items())
    others = [name for name, check in KINDS.items() if check.takes_command and name != "command"]
    return f"{each} {listed(others)} run programs of others, which have to be in the worker: see docs/reference/checks.md."


def causes() -> str:
    """The default of `cause`."""
    hardware: FaultKind = "hardware"
    return f"{hardware} for {listed(name for name, check in KINDS.items() if check.cause == hardware)}, else node"


def contexts() -> str:
    """The kinds that do not run in all contexts."""
    groups: dict[tuple[Context, ...], list[str]] = {}
    for name, check in KINDS.items():
        groups.setdefault(check.contexts, []).append(name)
    groups.pop(ALWAYS)
    return ". ".join(f"{listed(names)}: {listed(where)} only" for where, names in groups.items())


def limits() -> str:
    """The limits of each kind, with their defaults."""
    return " ".join(f"{name}: {_limits(check, '`{}` ({})')}." for name, check in KINDS.items() if check.limits)


def table() -> str:
    """The table of docs/reference/checks.md: a line each."""
    heads = ["| `check` | fails where | `settings`, with their defaults |", "|---|---|---|"]
    return "\n".join([*heads, *(f"| `{name}` | {_fails(check)} | {_cell(check)} |" for name, check in KINDS.items()), ""])


def _fails(check: Check) -> str:
    return check.fails_where + (f": see [below](#{check.section})" if check.section else "")


def _cell(check: Check) -> str:
    return _limits(check, "`{}` ({})") or "none"


def _limits(check: Check, form: str) -> str:
    return ", ".join(form.format(name, check.limit_text(name)) for name in check.limits)
