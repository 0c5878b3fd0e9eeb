"""The rules of `.vale/styles/Slipway`, by the rewrites that they ask for. The real Vale reads all rows at once."""

import json
import subprocess
from pathlib import Path

import pytest

from local.prose import program

ROOT = Path(__file__).parents[2]

REWRITES = [
    pytest.param(
        "SentenceLength",
        "A listener that is full drops a client that has been silent for longest, and where none has been silent for a second it turns the "
        "new client away at once.",
        "A full listener drops the client that was silent for longest. If no client was silent for a second, it rejects the new one.",
        id="two-sentences-for-one",
    ),
    pytest.param(
        "BareSubject", "What does not answer keeps its last reading", "Sources that do not answer show their last reading", id="what"
    ),
    pytest.param("BareSubject", "What a user wrote is not changed.", "The user's text is not changed.", id="what-of-somebody"),
    pytest.param("BareSubject", "what it said is above.", "Its output is above.", id="what-it-said"),
    pytest.param("BareSubject", "Every process learns from Slurm who it is and where", "Slurm tells each process its rank", id="who-it-is"),
    pytest.param("BareSubject", "One that is off is in order.", "A node that is off is healthy.", id="one-that"),
    pytest.param(
        "BareSubject",
        "those of GPUs and InfiniBand not yet seen on hardware",
        "GPU and InfiniBand checks are untested on real hardware",
        id="those-of",
    ),
    pytest.param("BareSubject", "It explains the ones that people meet", "It explains the common ones", id="the-ones-that"),
    pytest.param(
        "BareSubject",
        "sshd's processes of sessions: of each two, and one of a login that is not through yet",
        "Counts sshd processes: two per session, one per login in progress",
        id="of-each-two",
    ),
    pytest.param("BareSubject", "all that Slurm has up, or wakes", "nodes that are up, waking or unknown to Slurm", id="all-that"),
    pytest.param(
        "BareSubject", "Of paths on one file system each is named", "If several paths share a file system, all are listed", id="of-each"
    ),
    pytest.param("BareSubject", "Every other end is `unknown`", "Any other outcome is `unknown`", id="every-other-end"),
    pytest.param("Nobody", "With a tie nobody is named", "If there is a tie, no node is reported", id="nobody-is"),
    pytest.param("Nobody", "a token, without which the notebook answers nobody", "requests without it are rejected", id="answers-nobody"),
    pytest.param(
        "Nobody", "Nobody foresaw that, so please report it", "This is a bug. Please report it and attach the log", id="nobody-foresaw"
    ),
    pytest.param("Says", "whatever KUBECONFIG says", "even if KUBECONFIG is set", id="whatever-says"),
    pytest.param("Says", "image as the user says it", "the image the user configured", id="as-the-user-says"),
    pytest.param("Says", "or says nothing of", "or unknown to Slurm", id="says-nothing"),
    pytest.param("Says", "Say so, or leave it out", "Set that or remove this key", id="say-so"),
    pytest.param("Says", "Slurm does not tell capitals", "Slurm's keys are case-insensitive", id="does-not-tell"),
    pytest.param("Says", "the driver does not tell which GPUs are present", "the driver did not report its GPUs", id="not-tell-which"),
    pytest.param("Says", "the controller is told of the change", "Kubernetes notifies the controller of the change", id="is-told"),
    pytest.param("Imperative", "Say at least its region", "Set at least region. Say which version you run.", id="say-at-least"),
    pytest.param("Goes", "goes with machines: Webhook only.", "is only valid with `machines: Webhook`.", id="goes-with"),
    pytest.param("Goes", "The same command again goes on from here", "Run the same command to resume", id="goes-on-from"),
    pytest.param("Goes", "stands in this list twice", "is listed twice", id="stands-in"),
    pytest.param("Puts", "would put off the nodes", "would power the nodes down", id="put-off"),
    pytest.param("Puts", "a version that the cleaner had put out of reach", "a version whose removal was interrupted", id="put-out-of"),
    pytest.param("Puts", "Versions of `storage.root` are not looked into", "The shared root is not searched", id="looked-into"),
    pytest.param("Puts", "could not look after the registration", "could not check the node's registration", id="look-after"),
    pytest.param("Puts", "came on a way that is not recorded", "was registered in an unsupported way", id="came-on-a-way"),
    pytest.param(
        "Puts",
        "A stage that fails takes the later ones out of the queue",
        "If a stage fails, Slurm cancels the stages after it",
        id="out-of-the-queue",
    ),
    pytest.param("Puts", "`after: [gpu]` has a check look only at some nodes", "the check skips nodes that failed", id="has-a-check-look"),
    pytest.param("Puts", "A session is announced to end", "A login warns that the session will end", id="announced-to"),
    pytest.param("IsNo", "Silence is no pass", "A missing result does not count as a pass", id="is-no"),
    pytest.param("Archaic", "is no time that there is", "is not a valid time", id="that-there-is"),
    pytest.param("SoMany", "So many nodes of the set may be drained.", "The number of nodes of the set that may be drained.", id="so-many"),
    pytest.param("AsFarAs", "can run afterwards, as far as slurm.conf tells", "can still run (judging by slurm.conf)", id="as-far-as"),
    pytest.param(
        "NewsLast",
        "If the node is drained, and when its jobs have ended, the pod is deleted.",
        "The pod is deleted when the node is drained and its jobs have ended.",
        id="news-after-two-clauses",
    ),
    pytest.param("Archaic", "`sbatch` sees them all the same", "You can submit to them at any time", id="all-the-same"),
    pytest.param("Archaic", "a job that Slurm gave them would wait in vain", "a job scheduled there would never start", id="in-vain"),
    pytest.param(
        "Archaic",
        "The condition is there from the first difference on",
        "The condition appears when the first mismatch is found",
        id="from-x-on",
    ),
    pytest.param("Archaic", "not the power limit, which work reaches as a rule", "as busy GPUs normally reach it", id="as-a-rule"),
    pytest.param("Archaic", "In production: not that we know", "No known production use", id="not-that-we-know"),
    pytest.param("Archaic", "it is to be a JSON object of texts by path", "must be a JSON object of path: content", id="is-to-be"),
    pytest.param("Traffic", "In: nothing. Out: names, LDAP", "No ingress; egress to DNS and LDAP only", id="in-and-out"),
    pytest.param("Terms", "Slurmctld and Kubectl read it", "slurmctld and kubectl read it", id="programs"),
    pytest.param("Terms", "a nodeset with a pvc", "a NodeSet with a PVC", id="kinds"),
    pytest.param("Terms", "each gpu of the slurm cluster", "each GPU of the Slurm cluster", id="names"),
]
"""The rule, the text that alarms it, and the text that alarms no rule.

No pattern finds these: "figures that miss their promise", "neither reads nor changes", "After reading the entry of one symptom you know".
"""

GOOD_ENGLISH = [
    pytest.param("What happens if the node is lost?", id="question"),
    pytest.param("What clients of one listener may take. What the change of the files does to running jobs.", id="noun-phrase"),
    pytest.param("One of the nodes is drained. One node is left.", id="one-of"),
    pytest.param(
        "Slurm tells each process its rank. It cannot tell whether a job is running, and that cannot be told.", id="tells-somebody"
    ),
    pytest.param("There is no node set of this name, and where there is no need for one it is no longer created.", id="there-is-no"),
    pytest.param("The directory has so many files that apt fails. MPI stands for Message Passing Interface.", id="so-many-that"),
    pytest.param("The key is in `/etc/slurm/slurm.conf` and `nodeset.gpu`: run `kubectl get pvc`. See slurm.conf.", id="code-and-paths"),
    pytest.param("From then on, from now on, the pod goes to the node that goes down if something goes wrong.", id="goes"),
    pytest.param("When the node is ready, the controller uncordons it.", id="one-clause-first"),
    pytest.param("The user nobody owns it. Nobody but root can read it.", id="user-nobody"),
    pytest.param("For data that many nodes read, if it is right to remove so many users.", id="many"),
    pytest.param("Host names for the page: those of its Service. Everything about the Debian machine it runs on.", id="those-after-colon"),
    pytest.param("While the node is down, nobody is alerted. It must not stand in the way of a rollback.", id="usual-idioms"),
    pytest.param("Do not look into a user's folder. The first look after the start is later.", id="look"),
    pytest.param("The update is small, as there\nare no versions of it. As a rule of thumb, use two.", id="idioms-over-two-lines"),
    pytest.param("When you use a GPU, if possible, name its model. After that, once it runs, look at it.", id="short-clauses"),
    pytest.param("All that remains is to delete the claim.", id="all-that-remains"),
]
"""No rule may alarm."""


@pytest.fixture(scope="module")
def alarms() -> dict[str, set[str]]:
    """The rules that alarm, by the text: each is a paragraph of one document."""
    texts = [str(text) for row in REWRITES for text in row.values[1:]] + [str(row.values[0]) for row in GOOD_ENGLISH]
    done = subprocess.run(
        [program(), "--config", ROOT / ".vale.ini", "--ext", ".md", "--minAlertLevel", "warning", "--output", "JSON", "--no-exit"],
        input="\n\n".join(texts),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    by_line = [text for text in texts for _ in range(text.count("\n") + 2)]
    by_text: dict[str, set[str]] = {text: set() for text in texts}
    for alert in json.loads(done.stdout).get("stdin.md", []):
        by_text[by_line[alert["Line"] - 1]].add(alert["Check"].removeprefix("Slipway."))
    return by_text


@pytest.mark.parametrize(("rule", "bad", "good"), REWRITES)
def test_rule_finds_the_bad_and_spares_the_good(alarms: dict[str, set[str]], rule: str, bad: str, good: str) -> None:
    assert rule in alarms[bad]
    assert not alarms[good]


@pytest.mark.parametrize("text", GOOD_ENGLISH)
def test_good_english_is_silent(alarms: dict[str, set[str]], text: str) -> None:
    assert not alarms[text]
