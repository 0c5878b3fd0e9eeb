"""Config of the Kubernetes cluster to deploy to."""

from configs.models.fields import ClusterText, Flag, Model


class Kubernetes(Model):
    """Which cluster the provider talks to. The kubeconfig comes from KUBECONFIG or the provider's own default."""

    context: ClusterText | None = None
    """Context of the kubeconfig. Default: the kubeconfig's current one."""
    cluster_identifier: ClusterText | None = None
    """Name by which the provider tells this Kubernetes cluster from others; a change replaces every object. Default: the cluster's
    `name`."""
    install_crds: Flag = True
    """False: the custom resource definitions of NodeSet and SlurmNode come from elsewhere, such as another stack in the same Kubernetes
    cluster."""
    wait_for_drains: Flag = False
    """True: `pulumi up` waits until a removed node set is drained, and fails after `slurm.resumeTimeoutS` and five minutes."""
    guard: Flag = True
    """False: what somebody edits or deletes by hand stays so until the next `up`. Turn it off where Argo CD or Flux heals the objects."""
