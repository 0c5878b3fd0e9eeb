"""Config of the web page that shows the cluster. What it shows is in controllers/page."""

from configs.models.fields import Model


class Page(Model):
    """A read-only web page of the cluster for people without Grafana, as the Service `<cluster>-page`. It asks nobody who they are: reach
    it through an ssh tunnel, or put an OIDC proxy in front (docs/page.md)."""
