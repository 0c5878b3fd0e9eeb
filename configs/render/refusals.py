"""From one config to the Lua script that refuses what Slurm would accept from a job and then ignore on this cluster.

One text under two names: slurmctld and the clients each read their own. The plugins that run it are defaults of slurm.conf, so
`slurm.settings` may replace them, and a MailProg or a TmpDisk of the user's own lifts the refusal that stands for its lack.
"""

from configs.models.cluster import Cluster
from configs.models.slurm_keys import known, pairs_of
from configs.render.wording import template

FILES = ("job_submit.lua", "cli_filter.lua")
NO_MAIL = "/bin/true"
"""MailProg of a cluster that sends no mail: the image has no mailer."""


def render_refusals(cluster: Cluster) -> dict[str, str]:
    """The script, by file name."""
    mailers = [value for key, value in cluster.slurm.settings.items() if known(key, ("MailProg",))]
    text = template("refusals.lua.j2").render(sends_mail=any(each != NO_MAIL for each in mailers), has_disk=_declares_disk(cluster))
    return dict.fromkeys(FILES, text)


def _declares_disk(cluster: Cluster) -> bool:
    """True when a node set or a raw line says how much local disk its nodes have: then Slurm can tell which nodes fit `--tmp`."""
    given = [pair for node_set in cluster.node_sets for pair in node_set.slurmd.items()]
    given += [pair for line in cluster.slurm.raw for pair in pairs_of(line) or ()]
    return any(known(key, ("TmpDisk",)) and value != "0" for key, value in given)
