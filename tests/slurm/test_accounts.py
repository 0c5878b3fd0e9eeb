"""Accounts, users, QOS and limits from the config, kept by the real program in the real MariaDB, slurmdbd and slurmctld.

The cluster is one for all tests; each declares what it wants and waits until Slurm has it. What jobs feel of it: test_account_jobs.py.
"""

import time
from typing import Any

from tests.support.slurm.accounts_cluster import ALICES, DONE, ENFORCE, FOLDER, AccountsCluster, cluster, empty, fill_and_empty
from tests.support.slurm.image_pods import wait_for

FIXTURES = (cluster, empty)


def test_everything_that_can_be_said_is_in_slurm_and_taken_back(cluster: AccountsCluster) -> None:
    shared = {
        "grpTres": "cpu=64,mem=512G,gres/gpu=8,gres/gpu:h100=8,node=2,billing=9",
        "grpTresMins": "cpu=100000,mem=1T",
        "grpTresRunMins": "cpu=50000",
        "grpJobs": 10,
        "grpJobsAccrue": 11,
        "grpSubmitJobs": 12,
        "grpWall": "100-00:00:00",
        "maxTresPerJob": "cpu=32,mem=1500",
        "maxTresPerNode": "cpu=2",
        "maxTresMinsPerJob": "gres/gpu=600",
        "maxWall": "1-12:00:30",
    }
    limits = {**shared, "priority": 5, "maxJobs": 3, "maxJobsAccrue": 4, "maxSubmitJobs": 5}
    qos_limits = {
        **shared,
        "maxTresPerUser": "gres/gpu=4",
        "maxTresPerAccount": "gres/gpu=6",
        "maxTresRunMinsPerUser": "cpu=7",
        "maxTresRunMinsPerAccount": "cpu=8",
        "maxJobsPerUser": 1,
        "maxJobsPerAccount": 2,
        "maxJobsAccruePerUser": 3,
        "maxJobsAccruePerAccount": 4,
        "maxSubmitJobsPerUser": 5,
        "maxSubmitJobsPerAccount": 6,
        "minTresPerJob": "gres/gpu=1",
    }
    high = {
        "name": "high",
        "description": "In a hurry",
        "priority": 100,
        "preempt": ["low", "normal"],
        "preemptMode": "requeue",
        "preemptExemptTime": "00:10:00",
        "graceTimeS": 120,
        "flags": ["NoDecay", "DenyOnLimit", "EnforceUsageThreshold"],
        "usageFactor": 2.5,
        "usageThreshold": 0.5,
        "limitFactor": 1.5,
        "limits": qos_limits,
    }
    whole = {"fairshare": 10, "limits": limits, "qos": ["normal", "high"], "defaultQos": "high"}
    accounts = [
        {"name": "vision", "parent": "ml", "users": ["alice"], "perUser": {"alice": whole}},
        {"name": "ml", "description": "Machine Learning", "organization": "Lab", "users": ["bob"], **whole, "fairshare": "parent"},
    ]
    everything = {"enforce": ENFORCE, "accounts": accounts, "qos": [high, {"name": "low"}], "defaultAccount": "guests"}
    settings = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE", "PriorityWeightAssoc": 1000}
    preempting: dict[str, Any] = {"slurm": {"cgroupVersion": "auto", "settings": settings}}
    cluster.declare(everything, **preempting)
    cluster.settled()
    cluster.settled()
    assert cluster.changes() == []  # what Slurm shows is read back as what was wanted
    row = "vision|ml|1-12:01:00|cpu=32,mem=1500M|billing=9,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=512G,node=2|high,normal|high"
    columns = "account,parentname,maxwall,maxtres,grptres,qos,defaultqos"
    [alice] = cluster.rows("assoc", columns, "WOPLimits", "where", "user=alice")
    assert alice == row.replace("|ml|", "||")
    assert cluster.rows("account", "account,description,organization") >= {
        "ml|machine learning|lab",
        "vision|vision|ml",
        "guests|guests|guests",
    }
    bare = [{"name": "vision", "users": ["alice"]}, {"name": "ml", "users": ["bob"]}]
    cluster.declare({"accounts": bare, "qos": [{"name": "high"}, {"name": "low"}]})
    cluster.settled()
    cluster.settled()
    assert "vision|root|||||" in cluster.rows("assoc", columns, "WOPLimits")
    assert cluster.changes() == []
    assert len(cluster.rows("qos", "priority,preempt,flags,grptres,maxwall,gracetime,usagefactor,maxjobspu,preemptmode")) == 1


def test_changed_config_is_in_slurm_within_seconds(cluster: AccountsCluster) -> None:
    cluster.declare({"enforce": ENFORCE, "accounts": [ALICES]})
    wait_for("the account", lambda: "ml|alice" in cluster.members(), deadline_s=10)
    cluster.declare({"enforce": ENFORCE, "accounts": [{**ALICES, "limits": {"maxJobs": 7}}]})
    wait_for("the limit", lambda: "ml||7" in cluster.rows("assoc", "account,user,maxjobs", "WOPLimits"), deadline_s=10)


def test_what_an_administrator_made_stays(cluster: AccountsCluster) -> None:
    cluster.sacctmgr("add", "account", "byhand", "MaxJobs=4")
    cluster.sacctmgr("add", "qos", "handmade", "Priority=7")
    cluster.sacctmgr("add", "user", "bob", "account=byhand", "MaxJobs=2")
    cluster.declare({"accounts": [ALICES, {"name": "vision"}], "qos": [{"name": "ours"}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.sacctmgr("add", "user", "bob", "account=vision")
    cluster.declare({"accounts": []})
    wait_for("our account's end", lambda: cluster.accounts_there() == {"byhand", "vision"})
    wait_for("our QOS' end", lambda: cluster.qos_there() == {"handmade"})
    wait_for("a clear line", lambda: "account vision: stays, others have put into it: user bob" in cluster.keeper.log)
    shown = cluster.rows("assoc", "account,user,maxjobs", "WOPLimits")
    assert shown == {"byhand||4", "byhand|bob|2", "vision||", "vision|bob|"}
    assert cluster.rows("qos", "name,priority") == {"handmade|7"}
    cluster.sacctmgr("delete", "user", "where", "name=bob")
    wait_for("the end of vision", lambda: cluster.accounts_there() == {"byhand"}, deadline_s=45)
    cluster.sacctmgr("delete", "account", "byhand")
    cluster.sacctmgr("delete", "qos", "handmade")


def test_what_an_administrator_changed_of_ours_is_put_right(cluster: AccountsCluster) -> None:
    cluster.declare({"accounts": [{**ALICES, "fairshare": 5}]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.sacctmgr("modify", "account", "ml", "set", "Fairshare=9", "MaxJobs=1")
    cluster.sacctmgr("delete", "user", "alice", "account=ml")
    wait_for(
        "the config's", lambda: {"ml||5|", "ml|alice|1|"} == cluster.rows("assoc", "account,user,share,maxjobs", "WOPLimits"), deadline_s=45
    )


def test_outage_of_slurmdbd_is_told_once_and_ends_by_itself(cluster: AccountsCluster) -> None:
    cluster.containers["t-slurmdbd-0/slurmdbd"].stop()
    try:
        cluster.declare({"accounts": [ALICES]})
        wait_for("a clear line", lambda: "slurmdbd does not answer" in cluster.keeper.log, deadline_s=60)
        wait_for("further tries", lambda: time.time() - (cluster.keeper.bundle / "log").stat().st_mtime > 12, deadline_s=60)
        assert cluster.keeper.log.count("slurmdbd does not answer") == 1
    finally:
        cluster.slurmdbd()
    wait_for("the account", lambda: "ml|alice" in cluster.members(), deadline_s=60)


def test_nothing_goes_while_slurmctld_is_silent(cluster: AccountsCluster) -> None:
    cluster.declare({"accounts": [ALICES]})
    wait_for("the account", lambda: "ml|alice" in cluster.members())
    cluster.containers["t-slurmctld-0/slurmctld"].stop()
    try:
        cluster.declare({"accounts": []})
        wait_for("a clear line", lambda: "slurmctld does not answer, so everything counts as in use" in cluster.keeper.log, deadline_s=90)
        assert "ml|alice" in cluster.members()
    finally:
        cluster.slurmctld()
    wait_for("no account", lambda: cluster.accounts_there() == set(), deadline_s=90)


def test_program_killed_before_any_command_is_finished_by_its_next_run(cluster: AccountsCluster) -> None:
    """A stand-in for sacctmgr stops the program before its n-th change; what it passes on is the real one's work."""
    script = FOLDER / "sacctmgr"
    script.write_text(
        "#!/bin/bash\n"
        "if [[ $1 == -i ]]; then echo x >>/tmp/count; [[ $(wc -l </tmp/count) -le $(</tmp/most) ]] || { touch /tmp/held; sleep 600; }; fi\n"
        'exec /usr/bin/sacctmgr "$@"\n'
    )
    script.chmod(0o755)
    tmp = FOLDER / "volume-t-slurmdbd-0-accounts-tmp"
    wanted: dict[str, Any] = {
        "enforce": ["associations"],
        "accounts": [{**ALICES, "fairshare": 4}, {"name": "vision", "parent": "ml", "users": ["alice", "bob"]}],
        "qos": [{"name": "high"}],
    }
    nothing: dict[str, Any] = {"accounts": []}
    for accounting, members in ((wanted, {"ml|alice", "vision|alice", "vision|bob"}), (nothing, set[str]())):
        cluster.keeper.stop("KILL")
        cluster.declare(accounting)
        kills = 0
        for most in range(20):
            for name in ("count", "held"):
                (tmp / name).unlink(missing_ok=True)
            (tmp / "most").write_text("1" if most else "0")  # one more command each time, and at first none
            program = cluster.accounts({"/usr/local/sbin/sacctmgr": (script, True)})
            wait_for("an end", lambda: (tmp / "held").exists() or DONE in cluster.keeper.log, deadline_s=60)
            if DONE in program.log:
                break
            kills += 1
            program.stop("KILL")
        assert kills > 3
        assert cluster.members() == members
    assert (cluster.accounts_there(), cluster.qos_there()) == (set(), set())


def test_users_follow_their_unix_group(cluster: AccountsCluster) -> None:
    accounting = {"accounts": [{"name": "vision", "groups": ["research"]}]}
    cluster.declare(accounting, groups={"research": ["alice"]})
    wait_for("alice", lambda: cluster.members() == {"vision|alice"})
    cluster.declare(accounting, groups={"research": ["bob"]})
    wait_for("bob instead", lambda: cluster.members() == {"vision|bob"}, deadline_s=45)


def test_many_users_in_many_accounts_come_stay_and_go(cluster: AccountsCluster) -> None:
    """tests/soak/test_accounts.py has two thousand."""
    fill_and_empty(cluster, users=60, accounts=6)
