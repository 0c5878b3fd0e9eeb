"""Config of the cluster's keys: their generations."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from configs.models.fields import AtMost, Model, Positive, Whole


class Keys(Model):
    """Generations of the cluster's keys: one more makes a new key; 1 again makes none. docs/operate/accounting.md says what restarts; jobs
    run on."""

    munge: Annotated[Positive, AfterValidator(AtMost(1000))] = Field(default=1, examples=[2])
    """Generation of the munge key, with which Slurm's daemons and clients authenticate."""
    jwt: Annotated[Positive, AfterValidator(AtMost(1000))] = Field(default=1, examples=[2])
    """Generation of the JWT key, which signs the tokens for Slurm's REST API."""
    database: Annotated[Positive, AfterValidator(AtMost(1000))] = Field(default=1, examples=[2])
    """Generation of the accounting database's password; for an external one, raise it when its Secret has changed."""
    keep: tuple[Literal["munge", "jwt"], ...] = ()
    """Keys that stay as they are in the cluster, whatever their generation. The preview reports them; docs/start/pulumi.md explains which
    stacks need this key."""
    spread_s: Annotated[Whole, Field(ge=10, le=240)] = 120
    """Time in which all kubelets bring a changed Secret to their pods, in seconds: twice their syncFrequency, which is a minute by
    default."""
