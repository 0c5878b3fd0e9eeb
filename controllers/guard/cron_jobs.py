"""When each CronJob of the stack last did its work, for `/metrics`: backups among them. Decides nothing."""

from datetime import datetime

import msgspec

from controllers.guard import metrics
from controllers.runtime.structs import ObjectMeta, Resource


class CronJobStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Only what is counted."""

    last_successful_time: str | None = None


class CronJob(msgspec.Struct, frozen=True, gc=False):
    """A CronJob."""

    metadata: ObjectMeta
    status: CronJobStatus = CronJobStatus()


CRON_JOBS = Resource("batch/v1", "cronjobs", "CronJob", CronJob)


def last_success(cron_job: CronJob) -> float:
    """In seconds since 1970. A CronJob that never succeeded counts from its creation, so that its age shows that, too."""
    return datetime.fromisoformat(
        cron_job.status.last_successful_time or cron_job.metadata.creation_timestamp or "1970-01-01T00:00:00Z"
    ).timestamp()


def note(old: CronJob | None, new: CronJob | None) -> None:
    """Takes a change of an informer."""
    if new is not None:
        metrics.LAST_SUCCESS.labels(new.metadata.name).set(last_success(new))
    elif old is not None:
        metrics.LAST_SUCCESS.remove(old.metadata.name)
