"""Config of the web page that shows the cluster. Its content is in controllers/page."""

from typing import Literal

from pydantic import Field

from configs.models.fields import Host, Model

Hideable = Literal["jobs", "nodes"]
"""What the page can leave out."""


class Page(Model):
    """A read-only web page of the cluster for people without Grafana, as the Service `<cluster>-page`. It asks nobody who they are: reach
    it through an ssh tunnel, or put an OIDC proxy in front (docs/operate/page.md)."""

    hide: tuple[Hideable, ...] = Field(default=(), examples=[["jobs"]])
    """What the page leaves out, for everybody: names and users of jobs, or nodes. What PrivateData in `slurm.settings` hides is left out
    in any case. Default: nothing more."""
    hosts: tuple[Host, ...] = Field(default=(), examples=[["slurm.example.com"]])
    """Further host names by which browsers reach the page, such as a proxy's. The page always answers its Service's names, `localhost`
    and addresses. It answers no other name, so that no other website can read it in a user's browser. Default: no others."""
