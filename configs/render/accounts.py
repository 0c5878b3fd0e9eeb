"""Limits of accounts, users and QOS in sacctmgr's own words."""

from configs.models.accounts import Account, Qos, UserInAccount
from configs.models.fields import seconds


def settings_of(limited: Account | UserInAccount | Qos) -> dict[str, str]:
    """Limits and the like, as options of sacctmgr to their values; only those that are set."""
    limits = {option(key): _value(key, value) for key, value in limited.limits if value is not None}
    if isinstance(limited, Qos):
        return {**_qos_settings(limited), **{key: value for key, value in limits.items() if value}}
    more = {
        "Fairshare": "" if limited.fairshare is None else str(limited.fairshare),
        "QosLevel": ",".join(limited.qos),
        "DefaultQOS": limited.default_qos or "",
    }
    return {key: value for key, value in {**more, **limits}.items() if value}


def option(key: str) -> str:
    """sacctmgr's name of a limit: `grp_tres_run_mins` is GrpTRESRunMins."""
    return "".join("TRES" if part == "tres" else part.capitalize() for part in key.split("_"))


def _qos_settings(qos: Qos) -> dict[str, str]:
    settings = {
        "Priority": str(qos.priority or ""),
        "Preempt": ",".join(qos.preempt),
        "PreemptMode": qos.preempt_mode or "",
        "PreemptExemptTime": _clock(qos.preempt_exempt_time) if qos.preempt_exempt_time else "",
        "GraceTime": str(qos.grace_time_s or ""),
        "Flags": ",".join(qos.flags),
        **{
            option(key): "" if value is None else f"{value:g}"
            for key, value in (
                ("usage_factor", qos.usage_factor),
                ("usage_threshold", qos.usage_threshold),
                ("limit_factor", qos.limit_factor),
            )
        },
    }
    return {key: value for key, value in settings.items() if value}


def _value(key: str, value: str | int) -> str:
    """Times in minutes, rounded up as Slurm does; empty for no limit."""
    if key not in ("max_wall", "grp_wall"):
        return str(value)
    total = seconds(str(value))
    return "" if total == float("inf") else str(-(-int(total) // 60))


def _clock(time: str) -> str:
    total = seconds(time)
    return "" if total == float("inf") else f"{int(total) // 3600:02}:{int(total) // 60 % 60:02}:{int(total) % 60:02}"
