"""The age of each CronJob's last success: what BackupOld goes by."""

import pytest
from prometheus_client import REGISTRY

from controllers.guard.cron_jobs import CronJob, CronJobStatus, last_success, note
from controllers.runtime.structs import ObjectMeta

NAME = "slipway_cronjob_last_success_timestamp_seconds"


def cron_job(succeeded: str | None) -> CronJob:
    meta = ObjectMeta(name="dev-backup", namespace="slurm", creation_timestamp="2026-11-01T00:00:00Z")
    return CronJob(meta, CronJobStatus(succeeded))


@pytest.mark.parametrize(
    ("succeeded", "expected"),
    [
        pytest.param("2026-11-23T00:00:00Z", 1795392000.0, id="succeeded"),
        pytest.param(None, 1793491200.0, id="never: since it was made"),
    ],
)
def test_last_success(succeeded: str | None, expected: float) -> None:
    assert last_success(cron_job(succeeded)) == expected


def test_deleted_cron_job_is_counted_no_more() -> None:
    made = cron_job("2026-11-23T00:00:00Z")
    note(None, made)
    assert REGISTRY.get_sample_value(NAME, {"cronjob": "dev-backup"}) == 1795392000.0
    note(made, None)
    assert REGISTRY.get_sample_value(NAME, {"cronjob": "dev-backup"}) is None
