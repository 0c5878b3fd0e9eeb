"""The message of `make up` when the first jobs do not run."""

from pathlib import Path

import pytest

from local.first_job import FirstJobError, Login, run_jobs


def test_first_jobs_that_wait_end_in_a_sentence_and_stay_in_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are busy with other users' jobs, for instance."""
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexec sleep 60\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(FirstJobError, match=r"^the first jobs did not end within 1 s\. They stay in the queue; `squeue --me` says"):
        run_jobs(Login("127.0.0.1", 22, "alice", tmp_path / "key"), timeout_s=1)
