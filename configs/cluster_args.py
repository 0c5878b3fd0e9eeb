"""The arguments of `SlurmCluster`: the keys of a stack file's `slipway:cluster` with their types and descriptions.

Generated from the models by `make reference`, which runs `configs/typed_dicts.py`.
"""

from typing import Any, NotRequired, TypedDict


class Kubernetes(TypedDict):
    """Which cluster the provider talks to. The kubeconfig comes from KUBECONFIG or the provider's own default."""

    context: NotRequired[str]
    """Context of the kubeconfig. Type: string (a name without spaces, at most 253 characters). Default: the kubeconfig's current one."""
    clusterIdentifier: NotRequired[str]
    """Name by which the provider tells this Kubernetes cluster from others; a change replaces every object. Type: string (a name without spaces, at most 253 characters). Default: the cluster's `name`."""
    installCrds: NotRequired[bool]
    """False: the custom resource definitions of NodeSet and SlurmNode come from elsewhere, such as another stack in the same Kubernetes cluster. Type: true or false. Default: `true`."""
    waitForDrains: NotRequired[bool]
    """True: `pulumi up` waits until a removed node set is drained, and fails after `slurm.resumeTimeoutS` and five minutes. Type: true or false. Default: `false`."""
    guard: NotRequired[bool]
    """False: what somebody edits or deletes by hand stays so until the next `up`. Turn it off where Argo CD or Flux heals the objects. Type: true or false. Default: `true`."""


class Images(TypedDict):
    """The images of the pods. The wheel of a release has other defaults: the images of that release, by their digests."""

    slurm: NotRequired[str]
    """Image of every Slurm role. Type: string (an image with its tag or digest, such as registry.example/slurm:26.05, at most 500 characters). Default: localhost/slipway/slurm with the content tag of images/slurm."""
    root: NotRequired[str]
    """Image that versions of the shared root are filled from, unless they name another source. Type: string (an image with its tag or digest, such as registry.example/slurm:26.05, at most 500 characters). Default: localhost/slipway/root with the content tag of images/root, images/slurm and examples."""
    controllers: NotRequired[str]
    """Image of the controllers. Type: string (an image with its tag or digest, such as registry.example/slurm:26.05, at most 500 characters). Default: localhost/slipway/controllers with the content tag of images/controllers and controllers/."""
    observability: NotRequired[str]
    """Image of Prometheus and Alertmanager, for `monitoring`. Type: string (an image with its tag or digest, such as registry.example/slurm:26.05, at most 500 characters). Default: localhost/slipway/observability with the content tag of images/observability."""
    pullPolicy: NotRequired[str]
    """When the kubelet pulls the images: Kubernetes' imagePullPolicy. Type: one of `Always`, `IfNotPresent`, `Never`. Default: `IfNotPresent`."""
    pullSecrets: NotRequired[list[str]]
    """Names of image pull Secrets in the cluster's namespace. Type: list of string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: `[]`."""


class HardwareGpus(TypedDict):
    """The GPUs of one machine, all of one model."""

    vendor: NotRequired[str]
    """Vendor of the GPUs. Type: one of `nvidia`, `amd`. Default: `nvidia`."""
    model: str
    """Model, in lower case, as in Slurm's `Gres=gpu:<model>:<count>`. Type: string (a GPU model: lower case, as in h100 or a10g, at most 32 characters). Required."""
    count: int
    """GPUs of one machine. Type: integer, 1 to 2,147,483,647. Required."""
    memoryMiB: NotRequired[int]
    """Memory of one GPU, in MiB. Type: integer, 1 to 1,000,000,000. Unit: MiB. Default: not set."""


class Hardware(TypedDict):
    """What one machine has, where its type is not in the catalogue: all of it, not only what Slurm may use."""

    sockets: NotRequired[int]
    """Processor sockets. Type: integer, 1 to 2,147,483,647. Default: `1`."""
    coresPerSocket: int
    """Cores of one socket. Type: integer, 1 to 2,147,483,647. Required."""
    threadsPerCore: NotRequired[int]
    """Hardware threads of one core. Type: integer, 1 to 2,147,483,647. Default: `1`."""
    memoryMiB: int
    """All memory of the machine, in MiB. Type: integer, 1 to 1,000,000,000. Unit: MiB. Required."""
    gpus: NotRequired[HardwareGpus]
    """The machine's GPUs. Type: [`HardwareGpus`](#hardwaregpus). Default: it has none."""


class Taint(TypedDict):
    """A Kubernetes taint; pods of the cluster tolerate it."""

    key: str
    """Key of the taint. Type: string (a Kubernetes label key, at most 317 characters). Required."""
    value: NotRequired[str]
    """Value of the taint. Type: string (a Kubernetes label value, at most 63 characters). Default: `""`."""
    effect: NotRequired[str]
    """Effect of the taint on pods that do not tolerate it. Type: one of `NoSchedule`, `PreferNoSchedule`, `NoExecute`. Default: `NoSchedule`."""


class ExistingNodes(TypedDict):
    """Nodes that are in the Kubernetes cluster already, found by label."""

    labels: dict[str, str]
    """Labels that a Kubernetes node must have to belong to the pool. At least one is needed. Type: mapping. Name: string (a Kubernetes label key, at most 317 characters). Value: string (a Kubernetes label value, at most 63 characters). Required."""
    taints: NotRequired[list[Taint]]
    """Taints of these nodes, which the pods of the cluster are to tolerate. Type: list of [`Taint`](#taint). Default: `[]`."""
    count: NotRequired[int]
    """Least number of such nodes that a deployment expects to find. Type: integer, 1 to 2,147,483,647. Default: `1`."""
    gpuResource: NotRequired[str]
    """The extended resource under which the nodes offer their GPUs. Type: string (a Kubernetes label key, at most 317 characters). Default: `nvidia.com/gpu`."""


class EksNodes(TypedDict):
    """A managed node group of EKS; its machine type is the pool's `machine`, its upper size the pool's `max`."""

    clusterName: str
    """Name of the EKS cluster. Type: string (a name without spaces, at most 253 characters). Required."""
    nodeRoleArn: str
    """ARN of the IAM role of the machines. Type: string (a role's ARN, such as arn:aws:iam::123456789012:role/node, at most 2,048 characters). Required."""
    subnetIds: list[str]
    """Subnets of the machines. A placement group needs a single one, as it lives in one zone. Type: list (at least 1 item) of string (a subnet's id, such as subnet-0a1b2c3d4e5f60718, at most 40 characters). Required."""
    min: NotRequired[int]
    """Least number of machines in the node group. Type: integer, 0 to 2,147,483,647. Default: `0`."""
    desired: NotRequired[int]
    """Number of machines of a new group. Later it is the autoscaler's, and a change is not applied: the preview reports that, with the command that sets it. Type: integer, 0 to 2,147,483,647. Default: `min`."""
    amiType: NotRequired[str]
    """EKS's name for the machine image. Machines without GPUs need one without NVIDIA, such as AL2023_x86_64_STANDARD. Type: string (one of EKS' machine images for Linux, such as AL2023_x86_64_NVIDIA or CUSTOM, at most 60 characters). Default: `AL2023_x86_64_NVIDIA`."""
    capacityType: NotRequired[str]
    """How EC2 sells the machines. Type: one of `ON_DEMAND`, `SPOT`, `CAPACITY_BLOCK`. Default: `ON_DEMAND`."""
    capacityReservationId: NotRequired[str]
    """Capacity reservation that the machines come from; a capacity block needs one. Type: string (a capacity reservation's id, such as cr-0a1b2c3d4e5f60718, at most 40 characters). Default: none."""
    placementGroup: NotRequired[bool]
    """True: all machines of the pool are in one cluster placement group. Type: true or false. Default: `false`."""
    efa: NotRequired[bool]
    """True: an Elastic Fabric Adapter on every network card that can carry one. Type: true or false. Default: `false`."""
    securityGroupIds: NotRequired[list[str]]
    """Security groups of the machines. Type: list of string (a security group's id, such as sg-0a1b2c3d4e5f60718, at most 40 characters). Default: `[]` (the EKS cluster's own)."""
    diskGiB: NotRequired[int]
    """Root disk of a machine, in GiB. Type: integer, 20 to 65,536. Unit: GiB. Default: `200`."""
    labels: NotRequired[dict[str, str]]
    """Labels of the Kubernetes nodes, in addition to `slipway.dev/pool`, which is always set. Type: mapping. Name: string (a Kubernetes label key, at most 317 characters). Value: string (a Kubernetes label value, at most 63 characters). Default: `{}`."""
    taints: NotRequired[list[Taint]]
    """Taints of the Kubernetes nodes; the pods of the cluster tolerate them. Type: list of [`Taint`](#taint). Default: `[]`."""


class NodePool(TypedDict):
    """Machines of one kind. Exactly one of `machine` and `hardware`, exactly one of `existing` and `eks`."""

    name: str
    """Name of the pool; node sets refer to it. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 30 characters). Required."""
    machine: NotRequired[str]
    """Machine type of the catalogue in `configs/models/machines.py`. Type: one of 83 names. Default: not set."""
    hardware: NotRequired[Hardware]
    """What one machine has, where its type is not in the catalogue. Type: [`Hardware`](#hardware). Default: not set."""
    max: int
    """Machines that the pool can hold, at most. Type: integer, 1 to 10,000. Required."""
    existing: NotRequired[ExistingNodes]
    """Nodes that are in the Kubernetes cluster already. Type: [`ExistingNodes`](#existingnodes). Default: not set."""
    eks: NotRequired[EksNodes]
    """A managed node group that Slipway makes in an EKS cluster. Type: [`EksNodes`](#eksnodes). Default: not set."""
    runtimeClass: NotRequired[str]
    """RuntimeClass of the pods on the pool's nodes, such as `nvidia`. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: none."""


class GpuOperator(TypedDict):
    """NVIDIA's GPU Operator, as a Helm release."""

    enabled: NotRequired[bool]
    """True: install the operator. Type: true or false. Default: `false`."""
    version: NotRequired[str]
    """Version of the operator's Helm chart. Type: string (a chart version, such as v25.3.4, at most 20 characters). Default: `v25.3.4`."""
    driver: NotRequired[bool]
    """Install the GPU driver. False where the machine image has it. Type: true or false. Default: `true`."""
    toolkit: NotRequired[bool]
    """Install the container toolkit. False where the machine image has it. Type: true or false. Default: `true`."""


class SystemNodes(TypedDict):
    """Where the control plane, the login pods and the health checks run. Without labels: on any node without a taint."""

    labels: NotRequired[dict[str, str]]
    """Labels that a Kubernetes node must have. Type: mapping. Name: string (a Kubernetes label key, at most 317 characters). Value: string (a Kubernetes label value, at most 63 characters). Default: `{}`."""
    taints: NotRequired[list[Taint]]
    """Taints of these nodes, which the pods are to tolerate. Type: list of [`Taint`](#taint). Default: `[]`."""


class Update(TypedDict):
    """How a change of the worker's pod reaches running nodes. Each node is drained first, whatever the type."""

    type: NotRequired[str]
    """RollingUpdate: a few nodes at a time. OnDelete: a node changes when its pod is deleted. Maintenance: as RollingUpdate, while the reservation is active. Type: one of `RollingUpdate`, `OnDelete`, `Maintenance`. Default: `RollingUpdate`."""
    maxUnavailable: NotRequired[Any]
    """Most nodes that may be unavailable at once: a number, or a percentage of the set. Type: integer or string (a number of at least 1, or a percentage). Default: `1`."""
    minReadyS: NotRequired[int]
    """How long a node has to be registered with a ready pod, without a break, before it counts as available, in seconds. A roll goes on only then: nodes that fail soon after their start stop it. Type: integer, 0 to 86,400. Unit: seconds. Default: `0`."""
    reservation: NotRequired[str]
    """Name of a Slurm reservation over the nodes; type Maintenance needs it, and no other type takes it. Type: string (a reservation's name: letters, digits and any of _ . -, first a letter, at most 64 characters). Default: not set."""


class Drain(TypedDict):
    """What happens to the jobs of a node that is to be removed, updated or repaired."""

    action: NotRequired[str]
    """Wait: for as long as the jobs run. Requeue, Cancel: done to jobs that still run after the deadline. Type: one of `Wait`, `Requeue`, `Cancel`. Default: `Wait`."""
    deadlineS: NotRequired[int]
    """How long a draining node waits for its jobs before the action, in seconds. Type: integer, 1 to 31,536,000. Unit: seconds. Default: no deadline."""


class Remedies(TypedDict):
    """What is done about nodes that stay faulty, and how often. No step is taken where a job may run."""

    steps: list[str]
    """The steps, in their order; each is taken once for a fault. RecreatePod: the worker's pod is replaced. RebootMachine, ReplaceMachine: in the way that `machines` names. Type: list, each one of `RecreatePod`, `RebootMachine`, `ReplaceMachine`. Required."""
    causes: NotRequired[list[str]]
    """Kinds of causes that are acted on. Type: list, each one of `hardware`, `node`. Default: `[hardware, node]`."""
    confirmedBy: NotRequired[str]
    """A health check that has to find the node failing, too, before the first step. If it runs as a job, it is started as soon as the fault has lasted for `waitS`. Type: string. Default: none."""
    verifiedBy: NotRequired[list[str]]
    """Health checks that have to pass after a step before the node returns to service. They run as jobs, one after another, as soon as the step is done. For fixed sets. Type: list of string. Default: `[]` (none; the checks that had failed are run again)."""
    waitS: NotRequired[int]
    """How long a fault has to last before the next step, in seconds. The time doubles with each step that the node has had within a day. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `300`."""
    machineTimeoutS: NotRequired[int]
    """How long a reboot or a replacement may take, in seconds. After that the next step is due. At least 900 with RebootMachine, as EC2 forces a reboot late. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `3600`."""
    maxPerDay: NotRequired[int]
    """Most steps of each sort in 24 hours, over the whole set. Type: integer, 1 to 65,536. Default: `10`."""
    systemicPercent: NotRequired[int]
    """Where more nodes than this percentage of the set (at least one) begin to fail within the window, the cause is systemic. Then nothing is repaired, and the controller drains nothing more for checks, until half as many fail. Type: integer, 1 to 100. Unit: percent. Default: `10`."""
    windowS: NotRequired[int]
    """The window, in seconds. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `600`."""
    machines: NotRequired[str]
    """How machines are rebooted and replaced. DeleteNode: the Kubernetes node is deleted, for the cloud to replace its machine; it cannot reboot. EC2: the instance is rebooted or terminated, which needs `cluster.ec2`. Webhook: your program at `webhook` does it. RebootMachine and ReplaceMachine need one of them. Type: one of `DeleteNode`, `EC2`, `Webhook`. Default: not set."""
    webhook: NotRequired[str]
    """With `machines: Webhook`: where each step is posted as JSON, on port 443. An answer of 2xx means that it is accepted. Type: string (an address such as https://repairs.example.com/slipway, at most 500 characters). Default: not set."""


class MachineCause(TypedDict):
    """What conditions or taints of a Kubernetes node say against the Slurm nodes on it, as long as they are there."""

    condition: NotRequired[str]
    """Type of the conditions, as in `kubectl describe node`; `*` stands for any text. Kubernetes' own conditions are never causes. Type: string (a type of conditions, * for any text, at most 316 characters). Default: not set."""
    status: NotRequired[bool]
    """The status of such a condition that counts. False: for conditions that are good when they are True. Type: true or false. Default: `true`."""
    taint: NotRequired[str]
    """Key of the taints, likewise. A rule has either `condition` or `taint`. Type: string (a key of taints, * for any text, at most 316 characters). Default: not set."""
    kind: NotRequired[str]
    """hardware, node: a fault, which `remedies` may repair. maintenance: planned, or beyond repair, such as the end of a spot machine. Type: one of `hardware`, `node`, `maintenance`. Default: `node`."""
    wish: NotRequired[str]
    """none: it is only reported. Maintenance with `drain` drains the node until it is taken back. A fault with `drain`, `reboot` or `replace` is repaired after `waitS`, by the steps of `remedies` that do as much or more. Without `remedies` it is only reported. Type: one of `none`, `drain`, `reboot`, `replace`. Default: `none`."""


class VolumeClaim(TypedDict):
    """A disk of each node's own, kept when its pod is recreated."""

    name: str
    """Name of the disk, unique within the set. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 63 characters). Required."""
    mountPath: str
    """Where the worker pod has it. Type: string (a plain absolute path, without spaces, `..` or a slash at the end). Required."""
    size: str
    """Size of the disk. Disks that are there keep their size; the preview has the command that grows them. Type: string (a size such as 100Gi (units Mi, Gi, Ti, M, G, T), at most 12 characters). Required."""
    storageClass: NotRequired[str]
    """StorageClass of the disk. Disks that are there keep their class; with another `name`, each node gets a new disk. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: the Kubernetes cluster's own default class."""


class VolumeClaimRetention(TypedDict):
    """What becomes of the disks that `volumeClaims` asks for."""

    whenDeleted: NotRequired[str]
    """What becomes of the disks when the node set is deleted. Type: one of `Retain`, `Delete`. Default: `Retain`."""
    whenScaled: NotRequired[str]
    """What becomes of a node's disks when the set shrinks and the node is removed. Type: one of `Retain`, `Delete`. Default: `Retain`."""


class Tmp(TypedDict):
    """What each job has for /tmp and /var/tmp together on a node."""

    sizeMiB: int
    """Size, in MiB. A job that fills it up gets "No space left on device", and no other job notices. Type: integer, 1 to 1,000,000,000. Unit: MiB. Required."""
    medium: NotRequired[str]
    """Disk: room on the node's disk that is set aside when the job begins. Memory: a tmpfs, whose files count as the job's memory. Type: one of `Disk`, `Memory`. Default: `Disk`."""


class Scratch(TypedDict):
    """What each job has at /scratch on a node, removed at its end."""

    sizeMiB: int
    """Size, in MiB, set aside on the node's disk when the job begins. Type: integer, 1 to 1,000,000,000. Unit: MiB. Required."""


class Mig(TypedDict):
    """GPU instances of one profile, each with the whole of its compute. Slurm hands them out one by one."""

    profile: str
    """Profile of the instances, as `nvidia-smi mig -lgip` names it. In Slurm they are `gpu:<model>_<profile>`. Type: string (a profile of NVIDIA's MIG, as nvidia-smi writes it, at most 32 characters). Required."""
    count: int
    """Instances of this profile on each GPU. Type: integer, 1 to 7. Required."""


class Gpus(TypedDict):
    """The GPUs of one Slurm node; they must be what the pool's machine has."""

    vendor: NotRequired[str]
    """Vendor of the GPUs. Type: one of `nvidia`, `amd`. Default: `nvidia`."""
    model: str
    """Model, in lower case, as in Slurm's `Gres=gpu:<model>:<count>`. Type: string (a GPU model: lower case, as in h100 or a10g, at most 32 characters). Required."""
    count: int
    """GPUs of one Slurm node. Type: integer, 1 to 2,147,483,647. Required."""
    driverName: NotRequired[str]
    """The model as `nvidia-smi -L` or `amd-smi static` names it, where `model` is not in that name. Type: string (one line of printable characters). Default: any name that contains `model`."""
    sockets: NotRequired[list[int]]
    """The processor socket beside each GPU, counted from 0, in the order of the GPUs' device files. Type: list of integer, 0 to 2,147,483,647. Default: `[]` (GPUs evenly over the machine's sockets, the first ones beside socket 0)."""
    mig: NotRequired[list[Mig]]
    """The instances that each GPU is divided into by NVIDIA's MIG. Type: list of [`Mig`](#mig). Default: `[]` (whole GPUs)."""


class PodResources(TypedDict):
    """What a worker pod requests from Kubernetes, where that differs from what Slurm allocates. Its limits are those of the Slurm node."""

    cpu: NotRequired[str]
    """CPU request, as Kubernetes writes it: "500m" is half a CPU. Type: string (a CPU quantity such as "500m" or "2", at most 8 characters). Default: the node's CPUs."""
    memoryMiB: NotRequired[int]
    """Memory request, in MiB. Type: integer, 1 to 1,000,000,000. Unit: MiB. Default: the node's memory."""


class NodeSet(TypedDict):
    """Slurm nodes of one kind, one worker pod each: `<name>-0` and so on. Fixed (`size`) or elastic (`min` and `max`)."""

    name: str
    """Name of the set, and first part of its nodes' names. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 30 characters). Required."""
    pool: str
    """Name of the node pool whose machines the nodes run on. Type: string. Required."""
    size: NotRequired[int]
    """Number of Slurm nodes of a fixed set. 0 keeps the set in the file, without nodes. Type: integer, 0 to 65,536. Default: not set."""
    min: NotRequired[int]
    """Elastic set: nodes that stay up without a job, the first ones of the set. Type: integer, 0 to 65,536. Default: not set."""
    max: NotRequired[int]
    """Elastic set: most nodes that the queue may ask for. Type: integer, 1 to 65,536. Default: not set."""
    update: NotRequired[Update]
    """How a change of the worker pod reaches running nodes. Type: [`Update`](#update). Default: those of its keys."""
    drain: NotRequired[Drain]
    """What happens to the jobs of a node that is to be removed or updated. Type: [`Drain`](#drain). Default: those of its keys."""
    remedies: NotRequired[Remedies]
    """What is done about nodes that stay faulty. Type: [`Remedies`](#remedies). Default: nothing; they are drained, and wait for a person."""
    checksBeforeJobs: NotRequired[list[str]]
    """Health checks that a machine has to pass before its node takes jobs of users, run as jobs, one after another. A machine passes them once; another machine of the node passes them again. For fixed sets. Type: list of string. Default: `[]` (none)."""
    machineCauses: NotRequired[list[MachineCause]]
    """Which conditions and taints of Kubernetes nodes say something against the Slurm nodes on them. The first that matches decides; behind these stands the table of docs/operate/remedies.md. Type: list of [`MachineCause`](#machinecause). Default: `[]` (that table alone)."""
    placement: NotRequired[str]
    """Pinned: a node returns to the Kubernetes node where it first ran, as long as that exists. Any: wherever there is room. Type: one of `Any`, `Pinned`. Default: `Any`."""
    volumeClaims: NotRequired[list[VolumeClaim]]
    """Disks that each node has of its own. Type: list of [`VolumeClaim`](#volumeclaim). Default: `[]`."""
    volumeClaimRetention: NotRequired[VolumeClaimRetention]
    """When these disks are deleted. Type: [`VolumeClaimRetention`](#volumeclaimretention). Default: those of its keys."""
    tmp: NotRequired[Tmp]
    """Limit of each job's /tmp and /var/tmp. Type: [`Tmp`](#tmp). Default: none; jobs share the node's disk."""
    scratch: NotRequired[Scratch]
    """A /scratch of each job's own on the node's disk. Type: [`Scratch`](#scratch). Default: none."""
    maxPodsInFlight: NotRequired[int]
    """Most pods that may be created and not yet ready at the same time. Type: integer, 1 to 65,536. Default: `500`."""
    cpus: NotRequired[int]
    """Hardware threads of one node. Type: integer, 1 to 2,147,483,647. Default: those of the whole machine."""
    memoryMiB: NotRequired[int]
    """Memory of one node, in MiB. Type: integer, 1 to 1,000,000,000. Unit: MiB. Default: the machine's less 5 % (1,024 MiB at least), in proportion to `cpus`."""
    gpus: NotRequired[Gpus]
    """GPUs of one node. Type: [`Gpus`](#gpus). Default: none."""
    simulatedGpus: NotRequired[bool]
    """True: stand-in device files for GPUs that the machine lacks. For development only. Type: true or false. Default: `false`."""
    features: NotRequired[list[str]]
    """Slurm features of the nodes, for `sbatch --constraint`. Type: list of string (a feature: letters, digits and any of _ . = -, first no sign, at most 64 characters). Default: `[]`."""
    slurmd: NotRequired[dict[str, Any]]
    """Other keys of the node line in slurm.conf. Type: mapping. Name: string (a key of Slurm: letters, digits and underscores, at most 64 characters). Value: string or number or boolean (a value without `#`, `"` and `\\`). Default: `{}`."""
    resources: NotRequired[PodResources]
    """Kubernetes requests of the worker pod, where they differ from the node's CPUs and memory. Type: [`PodResources`](#podresources). Default: those of its keys."""
    drainGraceS: NotRequired[int]
    """How long a stopping pod waits for its jobs, in seconds; jobs that still run then end with it. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `604800` (a week)."""
    mounts: NotRequired[list[str]]
    """Names of the `storage.mounts` that this set's pods have. Type: list of string. Default: all."""


class Partition(TypedDict):
    """A Slurm partition over whole node sets."""

    name: str
    """Name of the partition. Type: string (a partition name: letters, digits and any of _ . -, first a letter or digit, at most 40 characters). Required."""
    nodeSets: list[str]
    """Names of the node sets that make up the partition. Type: list of string. Required."""
    default: NotRequired[bool]
    """True: the partition of jobs that name none. Type: true or false. Default: `false`."""
    maxTime: NotRequired[str]
    """Longest time limit that a job may have. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: `UNLIMITED`."""
    defaultTime: NotRequired[str]
    """Time limit of jobs that ask for none. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: `maxTime`."""
    state: NotRequired[str]
    """UP: jobs are queued and started. DOWN: queued only. DRAIN: running and queued jobs continue, new ones are refused. INACTIVE: nothing is queued or started. Type: one of `UP`, `DOWN`, `DRAIN`, `INACTIVE`. Default: `UP`."""
    priorityTier: NotRequired[int]
    """Jobs of a partition with a higher tier are scheduled first. Type: integer, 0 to 65,533. Default: `1`."""
    allowAccounts: NotRequired[list[str]]
    """Names of `accounting.accounts` whose jobs may run here, with the accounts below them. Type: list of string. Default: `[]` (all)."""
    allowQos: NotRequired[list[str]]
    """Names of `accounting.qos`, or `normal`. Type: list of string. Default: `[]` (all)."""
    qos: NotRequired[str]
    """Name of an `accounting.qos` whose limits all jobs of the partition share. Type: string. Default: none."""
    topology: NotRequired[str]
    """Name of the `topologies` by which jobs of the partition are placed. Type: string (a topology's name: letters, digits, dashes and underscores, first a letter, at most 40 characters). Default: the first."""
    settings: NotRequired[dict[str, Any]]
    """Other keys of the partition line in slurm.conf. With accounting, a partition with GPUs has default TRESBillingWeights, such as `CPU=1,GRES/gpu=80`. These are 1 for each CPU, and for each GPU its memory in GiB. Type: mapping. Name: string (a key of Slurm: letters, digits and underscores, at most 64 characters). Value: string or number or boolean (a value without `#`, `"` and `\\`). Default: `{}`."""


class Tree(TypedDict):
    """A network of switches."""

    labels: list[str]
    """Labels of the Kubernetes nodes, from the top of the network down to the switch that a machine is connected to. Type: list of string (a Kubernetes label key, at most 317 characters). Required."""


class Block(TypedDict):
    """Groups of nodes that are close to each other, such as the machines of an NVLink domain."""

    label: NotRequired[str]
    """Label of the Kubernetes nodes whose value names the group. Type: string (a Kubernetes label key, at most 317 characters). Default: `nvidia.com/gpu.clique` (the label that NVIDIA's GPU feature discovery writes)."""
    size: int
    """Nodes of a group: Slurm's block size. Type: integer, 1 to 65,536. Required."""
    count: int
    """Most groups that there can be. In Slurm they are `<topology>-0` and so on, in the order in which they are seen. Type: integer, 1 to 65,536. Required."""


class Topology(TypedDict):
    """A network as Slurm is to see it: a tree or blocks, by the labels of the machines that the nodes run on."""

    name: str
    """Name of the topology, which partitions refer to; also that of the top switch of a tree. Type: string (a topology's name: letters, digits, dashes and underscores, first a letter, at most 40 characters). Required."""
    preset: NotRequired[str]
    """A tree by labels that a cloud writes. `ec2`: layers of EC2's network. `gke`: block, sub-block and host. `coreweave`: its fabric, superpod and leaf group. `zones`: region and zone. Type: one of `ec2`, `gke`, `coreweave`, `zones`. Default: not set."""
    tree: NotRequired[Tree]
    """A tree of switches. Type: [`Tree`](#tree). Default: not set."""
    block: NotRequired[Block]
    """Blocks. Type: [`Block`](#block). Default: not set."""


class Nfs(TypedDict):
    """An NFS export."""

    server: str
    """Host name or IP address of the server. Type: string (a host name or an IP address, at most 253 characters). Required."""
    path: str
    """Path of the export on the server. Type: string (an absolute path on the NFS server, such as /export/data, at most 1,024 characters). Required."""
    options: NotRequired[list[str]]
    """Mount options. Type: list of string (one mount option, such as nfsvers=4.1, at most 100 characters). Default: `[]`."""


class Disk(TypedDict):
    """A disk of one pod (ReadWriteOnce)."""

    storageClass: NotRequired[str]
    """StorageClass of the disk. A daemon's disk that exists keeps its class, and the preview reports that. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: the Kubernetes cluster's own default class."""
    size: NotRequired[str]
    """Size of the disk. Type: string (a size such as 100Gi (units Mi, Gi, Ti, M, G, T), at most 12 characters). Default: `5Gi`."""


class Source(TypedDict):
    """Where a shared volume comes from: exactly one of the six, and with `storageClass` a `size`."""

    hostPath: NotRequired[str]
    """A folder on every node. It is shared only if something else shares it, or if there is only one machine. Type: string (a plain absolute path, without spaces, `..` or a slash at the end). Default: not set."""
    claim: NotRequired[str]
    """Name of an existing PersistentVolumeClaim in the cluster's namespace. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    storageClass: NotRequired[str]
    """A StorageClass that offers ReadWriteMany; Slipway makes a claim of it, of the `size` given. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    size: NotRequired[str]
    """Size of the volume of `storageClass`; the other sources take none. Type: string (a size such as 100Gi (units Mi, Gi, Ti, M, G, T), at most 12 characters). Default: not set."""
    nfs: NotRequired[Nfs]
    """An export of an NFS server that exists already. Type: [`Nfs`](#nfs). Default: not set."""
    nfsServer: NotRequired[bool]
    """True: a folder of its own on the NFS server that `storage.nfsServer` declares. Type: true or false. Default: `false`."""
    disk: NotRequired[Disk]
    """A disk that one machine at a time can mount (ReadWriteOnce): for clusters whose pods are all on one machine. Type: [`Disk`](#disk). Default: not set."""


class RootTar(TypedDict):
    """A tar of a root file system: plain, or compressed with gzip, xz or zstd."""

    url: str
    """Where the tar is: https://, http://, or file:///shared/... for a file on the shared volume. Type: string (where a tar is: https://host/path, http://host/path, or file:///shared/path for one on the shared volume, at most 2,000 characters). Required."""
    sha256: str
    """SHA-256 digest of the file as it is downloaded, as sha256sum prints it. Type: string (a SHA-256 digest: 64 hexadecimal digits, as sha256sum prints them, at most 64 characters). Required."""


class RootVersion(TypedDict):
    """One version of the root that jobs and logins see; filled once, from an image or a tar, and never again."""

    name: str
    """Name of the version, as in `srun --root-version`. Type: string (a version name: letters, digits, dots, dashes, underscores, first a letter or digit, at most 64 characters). Required."""
    image: NotRequired[str]
    """Image that it is filled from, with the same release of Slurm as the image of the Slurm roles. Type: string (an image with its tag or digest, such as registry.example/slurm:26.05, at most 500 characters). Default: `images.root`, unless `tar` is set."""
    tar: NotRequired[RootTar]
    """Tar that it is filled from, in place of an image. Type: [`RootTar`](#roottar). Default: not set."""
    carryFrom: NotRequired[str]
    """Version whose later changes are carried over when this one is filled: packages, files and system users that were added to it. Type: string. Default: none."""


class Root(TypedDict):
    """The versioned root: jobs and logins see one version of it as `/`, instead of their pod's image."""

    versions: NotRequired[list[RootVersion]]
    """The versions that exist side by side. Type: list of [`RootVersion`](#rootversion). Default: `[]` (one, filled from `images.root` and named after its tag)."""
    current: NotRequired[str]
    """Version that new jobs and sessions get; running jobs keep theirs. Type: string (a version name: letters, digits, dots, dashes, underscores, first a letter or digit, at most 64 characters). Default: the last of `versions`."""
    packages: NotRequired[list[str]]
    """Debian packages that the current version has beside those of its image. They are installed before it becomes current, and in the running one when the list grows; a package that leaves the list stays. Type: list of string (a Debian package: lower-case letters, digits, plus, dots and dashes, with =VERSION if fixed, at most 200 characters). Default: `[]`."""
    keepDays: NotRequired[int]
    """Days that a version stays after it is no longer declared, or longer while a job uses it. Older sessions lose their root. Type: integer, 0 to 3,650. Unit: days. Default: `7`."""


class Mount(TypedDict):
    """A further shared volume, in the login pods and in the workers that do not choose others."""

    hostPath: NotRequired[str]
    """A folder on every node. It is shared only if something else shares it, or if there is only one machine. Type: string (a plain absolute path, without spaces, `..` or a slash at the end). Default: not set."""
    claim: NotRequired[str]
    """Name of an existing PersistentVolumeClaim in the cluster's namespace. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    storageClass: NotRequired[str]
    """A StorageClass that offers ReadWriteMany; Slipway makes a claim of it, of the `size` given. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    size: NotRequired[str]
    """Size of the volume of `storageClass`; the other sources take none. Type: string (a size such as 100Gi (units Mi, Gi, Ti, M, G, T), at most 12 characters). Default: not set."""
    nfs: NotRequired[Nfs]
    """An export of an NFS server that exists already. Type: [`Nfs`](#nfs). Default: not set."""
    nfsServer: NotRequired[bool]
    """True: a folder of its own on the NFS server that `storage.nfsServer` declares. Type: true or false. Default: `false`."""
    disk: NotRequired[Disk]
    """A disk that one machine at a time can mount (ReadWriteOnce): for clusters whose pods are all on one machine. Type: [`Disk`](#disk). Default: not set."""
    name: str
    """Name of the mount; node sets refer to it. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 40 characters). Required."""
    mountPath: str
    """Where login pods, workers and jobs have it. Type: string (a plain absolute path, without spaces, `..` or a slash at the end). Required."""
    readOnly: NotRequired[bool]
    """True: nobody can write to it. Type: true or false. Default: `false`."""


class NfsServer(TypedDict):
    """An NFS server in the cluster, for those without a shared file system: one pod on one disk, which every `nfsServer: true` shares."""

    storageClass: NotRequired[str]
    """StorageClass of the server's disk. A disk that exists keeps its class, and the preview reports that. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: the Kubernetes cluster's own default class."""
    size: str
    """Size of the server's disk. Type: string (a size such as 100Gi (units Mi, Gi, Ti, M, G, T), at most 12 characters). Required."""
    clusterIP: str
    """A free address of the Kubernetes cluster's service range: the nodes mount the exports by it. Type: string (an IP address). Required."""
    options: NotRequired[list[str]]
    """Mount options of the nodes, in place of the default ones. Type: list of string (one mount option, such as nfsvers=4.1, at most 100 characters). Default: `[nfsvers=4.1, hard, timeo=100, retrans=2, nconnect=4]`."""
    networks: NotRequired[list[str]]
    """Networks that the nodes mount from; all others are refused. Type: list of string (a network). Default: `[]` (every network, from ports that only root may use)."""


class Storage(TypedDict):
    """All storage of the cluster."""

    sharedRoot: Source
    """The shared volume, at /shared in the login pods and workers; the versions of `root` are on it. Type: [`Source`](#source). Required."""
    root: NotRequired[Root]
    """The versioned root file system of jobs and logins. Type: [`Root`](#root). Default: none; jobs and logins see their pod's image, and /shared."""
    home: Source
    """Homes of the users, at /home. Type: [`Source`](#source). Required."""
    mounts: NotRequired[list[Mount]]
    """Further shared volumes. Type: list of [`Mount`](#mount). Default: `[]`."""
    projects: NotRequired[str]
    """Where the folders of accounts with `folder: true` are: a folder directly below /shared or below one of `mounts`, or such a mount itself. Type: string (a plain absolute path, without spaces, `..` or a slash at the end). Default: `/shared/projects`."""
    nfsServer: NotRequired[NfsServer]
    """An NFS server in the cluster, for sources that say `nfsServer: true`. Type: [`NfsServer`](#nfsserver). Default: none."""
    state: NotRequired[Disk]
    """Disk of slurmctld, which holds its state: the queue lives here. Type: [`Disk`](#disk). Default: those of its keys."""


class LoginService(TypedDict):
    """The Service in front of sshd."""

    type: NotRequired[str]
    """Type of the Service. Type: one of `ClusterIP`, `NodePort`, `LoadBalancer`. Default: `ClusterIP`."""
    nodePort: NotRequired[int]
    """Port on the nodes, from 30000 to 32767, for the types NodePort and LoadBalancer. Type: integer, 1 to 2,147,483,647. Default: Kubernetes chooses one."""
    annotations: NotRequired[dict[str, str]]
    """Annotations of the Service, such as those of the cloud's load balancer. Type: mapping. Name: string (one line of printable characters). Value: string (one line of printable characters). Default: `{}`."""
    sourceRanges: NotRequired[list[str]]
    """Networks that may connect to a LoadBalancer. Type: list of string (one line of printable characters). Default: `[]` (all)."""


class LoginLimits(TypedDict):
    """What each user may use of a login pod, over all sessions there. A change applies from the user's next login."""

    cpus: NotRequired[int]
    """CPUs of one user. Type: integer, 1 to 2,147,483,647. Default: no limit."""
    memoryMiB: NotRequired[int]
    """Memory of one user, in MiB. Type: integer, 1 to 1,000,000,000. Unit: MiB. Default: no limit."""
    tasks: NotRequired[int]
    """Processes and threads of one user, so that nobody locks others out. Type: integer, 1 to 2,147,483,647. Default: `2000`."""


class Group(TypedDict):
    """A group that users can share."""

    name: str
    """Name of the group. Type: string (a user name: lower-case letters, digits, dashes and underscores, first a letter, at most 32 characters). Required."""
    gid: int
    """Numeric id of the group. Type: integer, 0 to 2,147,483,647. Required."""


class User(TypedDict):
    """A person who can log in, with keys only."""

    name: str
    """Login name. Type: string (a user name: lower-case letters, digits, dashes and underscores, first a letter, at most 32 characters). Required."""
    uid: int
    """Numeric id of the user. Type: integer, 0 to 2,147,483,647. Required."""
    gid: NotRequired[int]
    """Numeric id of the user's own group. It is made with the user's name unless `login.groups` has this gid. Type: integer, 0 to 2,147,483,647. Default: the uid."""
    groups: NotRequired[list[str]]
    """Names of further groups, from `login.groups`. Type: list of string. Default: `[]`."""
    sshKeys: NotRequired[list[str]]
    """Public keys that may log in, each a line of an authorized_keys file. Type: list of string (one line of printable characters). Default: `[]`."""
    sshKeyFiles: NotRequired[list[str]]
    """Files with public keys that may log in, relative to the project's folder. Type: list of string (one line of printable characters). Default: `[]`."""
    shell: NotRequired[str]
    """Login shell. Type: string (a plain absolute path, without spaces, `..` or a slash at the end). Default: `/bin/bash`."""
    admin: NotRequired[bool]
    """True: the user may run anything as root with `sudo` in a login session. For example, they can install packages into the current version of `storage.root`, for everybody. Set it for people whom you trust with root on the machines of login pods and workers; see docs/explain/security.md. Type: true or false. Default: `false`."""


class Ldap(TypedDict):
    """Users and groups of an LDAP directory, with the attributes of rfc2307 or rfc2307bis, in addition to `login.users`, which win."""

    uris: list[str]
    """The servers, in the order in which they are tried. Type: list (at least 1 item) of string (the URI of an LDAP server). Required."""
    startTls: NotRequired[bool]
    """True: TLS is started on an ldap:// connection. ldaps:// is TLS from the start. Type: true or false. Default: `false`."""
    allowPlaintext: NotRequired[bool]
    """True: ldap:// without TLS is allowed, for networks that are trusted themselves. Type: true or false. Default: `false`."""
    caSecret: NotRequired[str]
    """Name of a Secret in the cluster's namespace whose key `ca.crt` has the CA of the servers' certificates. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: the public CAs of the image."""
    baseDn: str
    """Where users and groups are, at any depth. Type: string (a distinguished name, at most 500 characters). Required."""
    userBaseDn: NotRequired[str]
    """Where users are, at any depth. Type: string (a distinguished name, at most 500 characters). Default: `baseDn`."""
    groupBaseDn: NotRequired[str]
    """Where groups are, at any depth. Type: string (a distinguished name, at most 500 characters). Default: `baseDn`."""
    userFilter: NotRequired[str]
    """Which entries are users. Type: string (an LDAP filter, at most 2,000 characters). Default: `"(objectClass=posixAccount)"`."""
    groupFilter: NotRequired[str]
    """Which entries are groups. Type: string (an LDAP filter, at most 2,000 characters). Default: `"(objectClass=posixGroup)"`."""
    bindDn: NotRequired[str]
    """DN to bind as. Type: string (a distinguished name, at most 500 characters). Default: an anonymous bind."""
    bindSecret: NotRequired[str]
    """Name of a Secret in the cluster's namespace whose key `password` has the password of `bindDn`. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    keyAttribute: NotRequired[str]
    """Attribute with the public keys, one key a value. Type: string (the name of an attribute). Default: `sshPublicKey`."""
    refreshS: NotRequired[int]
    """Time between two queries, in seconds. A removed user cannot log in after this time and that of the answer. Type: integer, 5 to 3,600. Unit: seconds. Default: `20`."""
    minUid: NotRequired[int]
    """Users with a lower uid are left out. Type: integer, 500 to 1,999,999,999. Default: `1000`."""
    minGid: NotRequired[int]
    """Groups with a lower gid are left out, as are users whose own group has one. Debian's group users (100) is allowed as a user's own. Type: integer, 500 to 1,999,999,999. Default: `1000`."""
    maxRemovedPercent: NotRequired[int]
    """If more than this share of more than 10 users (or groups) disappears at once, LDAP counts as faulty and none is removed. An answer without any user counts as a fault, too. 100: every answer is believed. Type: integer, 0 to 100. Unit: percent. Default: `50`."""


class Login(TypedDict):
    """The login pods and who may use them."""

    replicas: NotRequired[int]
    """Number of login pods. Type: integer, 0 to 20. Default: `1`."""
    service: NotRequired[LoginService]
    """The Service in front of them. Type: [`LoginService`](#loginservice). Default: those of its keys."""
    sshToNodes: NotRequired[bool]
    """True: a user can `ssh` to the nodes where the user has a job, and is part of the job there. False: workers have no sshd. Type: true or false. Default: `true`."""
    banner: NotRequired[str]
    """Text shown at login, above the state of the cluster. Type: string (lines of printable characters, at most 4,000 characters). Default: `""`."""
    limits: NotRequired[LoginLimits]
    """What each user may use of a login pod. Type: [`LoginLimits`](#loginlimits). Default: those of its keys."""
    drainGraceS: NotRequired[int]
    """How long a stopping login pod waits for its open sessions, in seconds; new sessions go to other pods at once. Type: integer, 0 to 604,800. Unit: seconds. Default: `600`."""
    groups: NotRequired[list[Group]]
    """Groups that users can share. Type: list of [`Group`](#group). Default: `[]`."""
    users: NotRequired[list[User]]
    """The people who can log in. With `ldap`, these are in addition to its users, and take precedence. Type: list of [`User`](#user). Default: `[]`."""
    ldap: NotRequired[Ldap]
    """A directory with further users and groups. Type: [`Ldap`](#ldap). Default: none."""
    homeKeys: NotRequired[bool]
    """True: the keys in `~/.ssh/authorized_keys` may log in as well, on login pods only. A removed user is refused anyway. A user who stays can log in with the keys in the home even after all others are withdrawn. Type: true or false. Default: `false`."""
    adminGroups: NotRequired[list[str]]
    """Groups whose members are admins, as with `admin: true`. Type: list of string (a user name: lower-case letters, digits, dashes and underscores, first a letter, at most 32 characters). Default: `[]`."""


class ExternalDatabase(TypedDict):
    """A MariaDB or MySQL server that somebody else runs."""

    host: str
    """Host name or IP address of the server. Type: string (a host name or an IP address, at most 253 characters). Required."""
    port: NotRequired[int]
    """TCP port of the server. Type: integer, 1 to 65,535. Default: `3306`."""
    database: NotRequired[str]
    """Name of the database. It exists, or `user` may create it. Type: string (a database's name: letters, digits and underscores, first a letter, at most 64 characters). Default: `slurm_acct_db`."""
    user: NotRequired[str]
    """Database user with all rights on it. Type: string (a user of a database: letters, digits and any of _ . @ -, first a letter, at most 80 characters). Default: `slurm`."""
    passwordSecret: str
    """Name of a Secret in the cluster's namespace whose key `password` has the user's password. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Required."""
    tls: NotRequired[bool]
    """True: the connection is encrypted, and the server's certificate and name are checked. Type: true or false. Default: `true`."""
    caSecret: NotRequired[str]
    """Name of a Secret whose key `ca.crt` has the CA of the server's certificate. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: the public CAs that Debian ships."""


class Purge(TypedDict):
    """How long slurmdbd keeps records: a number with a unit, such as 12months, 30days or 48hours. Kinds left out are kept for ever."""

    events: NotRequired[str]
    """Events of nodes, such as down and drained. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""
    jobs: NotRequired[str]
    """Jobs. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""
    jobScript: NotRequired[str]
    """Batch scripts. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: as long as the job."""
    jobEnv: NotRequired[str]
    """Environments of jobs. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: as long as the job."""
    resvs: NotRequired[str]
    """Reservations. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""
    steps: NotRequired[str]
    """Job steps. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""
    suspend: NotRequired[str]
    """Suspensions of jobs. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""
    txn: NotRequired[str]
    """Transactions: changes that administrators made. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""
    usage: NotRequired[str]
    """Usage totals, which sreport shows. Type: string (an age that slurmdbd knows, such as 12months, 30days or 48hours, with a number of at most 65535, at most 12 characters). Default: not set."""


class Archive(TypedDict):
    """Files to which slurmdbd writes the records that it purges; `sacctmgr archive load` reads them back."""

    records: list[str]
    """Kinds of records to archive, in the words of `purge`, which must have an age for each. Type: list (at least 1 item), each one of `events`, `jobs`, `jobScript`, `jobEnv`, `resvs`, `steps`, `suspend`, `txn`, `usage`. Required."""
    volume: Source
    """Shared volume that the files are written to. Type: [`Source`](#source). Required."""


class Limits(TypedDict):
    """Limits of an account or of a user in it. Those whose name starts with max are for each user alone. A limit that is not set comes from the account above."""

    grpTres: NotRequired[str]
    """TRES of all running jobs together. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    grpTresMins: NotRequired[str]
    """TRES-minutes of all jobs together over time, which decay with PriorityDecayHalfLife. Slurm ends running jobs that reach it, unless `safe` is enforced. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    grpTresRunMins: NotRequired[str]
    """TRES-minutes that all running jobs together may still use until their time limits. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    grpJobs: NotRequired[int]
    """Running jobs together. Type: integer, 0 to 2,147,483,647. Default: not set."""
    grpJobsAccrue: NotRequired[int]
    """Waiting jobs together whose priority grows with age. Type: integer, 0 to 2,147,483,647. Default: not set."""
    grpSubmitJobs: NotRequired[int]
    """Running and waiting jobs together. 0: no new jobs, and waiting ones do not start. Type: integer, 0 to 2,147,483,647. Default: not set."""
    grpWall: NotRequired[str]
    """Wall-clock time of all jobs together over time, which decays with PriorityDecayHalfLife. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: not set."""
    maxTresPerJob: NotRequired[str]
    """TRES of one job. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    maxTresPerNode: NotRequired[str]
    """TRES of one job on each node. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    maxTresMinsPerJob: NotRequired[str]
    """TRES-minutes of one job. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    maxWall: NotRequired[str]
    """Wall-clock time of one job. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: not set."""
    priority: NotRequired[int]
    """Priority of the association; it counts with `PriorityWeightAssoc` in `slurm.settings`. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxJobs: NotRequired[int]
    """Running jobs of one user. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxJobsAccrue: NotRequired[int]
    """Waiting jobs of one user whose priority grows with age. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxSubmitJobs: NotRequired[int]
    """Running and waiting jobs of one user. Type: integer, 0 to 2,147,483,647. Default: not set."""


class UserInAccount(TypedDict):
    """What one user has in an account, where that differs from the account's other users."""

    fairshare: NotRequired[Any]
    """Shares of the user, relative to the other users of the account, or "parent". Type: integer or string (a whole number of shares, or "parent"). Default: 1."""
    limits: NotRequired[Limits]
    """Limits of the user in the account. Type: [`Limits`](#limits). Default: those of its keys."""
    qos: NotRequired[list[str]]
    """QOS that the user's jobs may have. Type: list of string. Default: `[]` (the account's)."""
    defaultQos: NotRequired[str]
    """QOS of the user's jobs that name none. Type: string. Default: the account's."""


class Account(TypedDict):
    """One account of Slurm: who may use it, its share, its limits."""

    name: str
    """Name of the account, as in `sbatch --account`. Type: string (a name for Slurm's database: lower-case letters, digits and any of _ . -, first a letter, at most 40 characters). Required."""
    parent: NotRequired[str]
    """Name of the account above it. Type: string. Default: `root`."""
    description: NotRequired[str]
    """Description in Slurm's database, in lower case there. Type: string (plain words, without quotes, `|`, `,`, `=`, `+` and `\\`). Default: `""` (the name)."""
    organization: NotRequired[str]
    """Organization in Slurm's database. Type: string (plain words, without quotes, `|`, `,`, `=`, `+` and `\\`). Default: `""` (the parent's name)."""
    fairshare: NotRequired[Any]
    """Shares of the account, relative to its siblings, or "parent". Type: integer or string (a whole number of shares, or "parent"). Default: 1."""
    limits: NotRequired[Limits]
    """Limits of the account and of each user in it. Type: [`Limits`](#limits). Default: those of its keys."""
    qos: NotRequired[list[str]]
    """QOS that jobs may have. Type: list of string. Default: `[]` (those of the account above, and at the top `normal`)."""
    defaultQos: NotRequired[str]
    """QOS of jobs that name none. Type: string. Default: the one of the account above."""
    users: NotRequired[list[str]]
    """Names of the account's users. Type: list of string. Default: `[]`."""
    groups: NotRequired[list[str]]
    """Names of unix groups. Their members are users of the account, and follow the group. Type: list of string. Default: `[]`."""
    perUser: NotRequired[dict[str, UserInAccount]]
    """What single users have in the account, by user name. Type: mapping. Name: string (a user name: lower-case letters, digits, dashes and underscores, first a letter, at most 32 characters). Value: [`UserInAccount`](#userinaccount). Default: `{}`."""
    folder: NotRequired[bool]
    """True: the members of the account's one group share the folder `<storage.projects>/<name>`. It stays when the account goes. Type: true or false. Default: `false`."""
    defaultFor: NotRequired[list[str]]
    """Users whose jobs go to this account when they name none. Type: list of string. Default: `[]` (the first account that has the user)."""


class QosLimits(TypedDict):
    """Limits of a QOS."""

    grpTres: NotRequired[str]
    """TRES of all running jobs together. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    grpTresMins: NotRequired[str]
    """TRES-minutes of all jobs together over time, which decay with PriorityDecayHalfLife. Slurm ends running jobs that reach it, unless `safe` is enforced. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    grpTresRunMins: NotRequired[str]
    """TRES-minutes that all running jobs together may still use until their time limits. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    grpJobs: NotRequired[int]
    """Running jobs together. Type: integer, 0 to 2,147,483,647. Default: not set."""
    grpJobsAccrue: NotRequired[int]
    """Waiting jobs together whose priority grows with age. Type: integer, 0 to 2,147,483,647. Default: not set."""
    grpSubmitJobs: NotRequired[int]
    """Running and waiting jobs together. 0: no new jobs, and waiting ones do not start. Type: integer, 0 to 2,147,483,647. Default: not set."""
    grpWall: NotRequired[str]
    """Wall-clock time of all jobs together over time, which decays with PriorityDecayHalfLife. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: not set."""
    maxTresPerJob: NotRequired[str]
    """TRES of one job. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    maxTresPerNode: NotRequired[str]
    """TRES of one job on each node. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    maxTresMinsPerJob: NotRequired[str]
    """TRES-minutes of one job. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    maxWall: NotRequired[str]
    """Wall-clock time of one job. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: not set."""
    maxTresPerUser: NotRequired[str]
    """TRES of one user's running jobs. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    maxTresPerAccount: NotRequired[str]
    """TRES of one account's running jobs. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""
    maxTresRunMinsPerUser: NotRequired[str]
    """TRES-minutes that one user's running jobs may still use until their time limits. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    maxTresRunMinsPerAccount: NotRequired[str]
    """TRES-minutes that one account's running jobs may still use until their time limits. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Unit: TRES-minutes. Default: not set."""
    maxJobsPerUser: NotRequired[int]
    """Running jobs of one user. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxJobsPerAccount: NotRequired[int]
    """Running jobs of one account. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxJobsAccruePerUser: NotRequired[int]
    """Waiting jobs of one user whose priority grows with age. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxJobsAccruePerAccount: NotRequired[int]
    """Waiting jobs of one account whose priority grows with age. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxSubmitJobsPerUser: NotRequired[int]
    """Running and waiting jobs of one user. Type: integer, 0 to 2,147,483,647. Default: not set."""
    maxSubmitJobsPerAccount: NotRequired[int]
    """Running and waiting jobs of one account. Type: integer, 0 to 2,147,483,647. Default: not set."""
    minTresPerJob: NotRequired[str]
    """Least TRES that a job must ask for. Type: string (amounts of cpu, mem, node, billing, gres/gpu or `gres/gpu:<model>`; mem in MiB without a unit). Default: not set."""


class Qos(TypedDict):
    """One QOS of Slurm."""

    name: str
    """Name of the QOS, as in `sbatch --qos`. Type: string (a name for Slurm's database: lower-case letters, digits and any of _ . -, first a letter, at most 40 characters). Required."""
    description: NotRequired[str]
    """Description in Slurm's database. Type: string (plain words, without quotes, `|`, `,`, `=`, `+` and `\\`). Default: `""`."""
    priority: NotRequired[int]
    """Priority that the jobs get from the QOS factor, relative to that of other QOS. Type: integer, 0 to 2,147,483,647. Default: `0`."""
    preempt: NotRequired[list[str]]
    """Names of QOS whose jobs this one may preempt. Needs `PreemptType: preempt/qos` in `slurm.settings`. Type: list of string. Default: `[]`."""
    preemptMode: NotRequired[str]
    """What happens to a job of this QOS that is preempted. Type: one of `cancel`, `requeue`, `suspend`, `"off"`. Default: the cluster's PreemptMode."""
    preemptExemptTime: NotRequired[str]
    """Time that a job of this QOS runs before it can be preempted. Type: string (a time as Slurm writes it: days-hours:minutes:seconds, minutes, or UNLIMITED; in quotes). Default: the cluster's PreemptExemptTime."""
    graceTimeS: NotRequired[int]
    """Time between the notice to a preempted job and its end, in seconds. Type: integer, 1 to 86,400. Unit: seconds. Default: 0."""
    flags: NotRequired[list[str]]
    """Flags of the QOS, as sacctmgr has them. Type: list, each one of `DenyOnLimit`, `EnforceUsageThreshold`, `NoDecay`, `NoReserve`, `OverPartQOS`, `PartitionMaxNodes`, `PartitionMinNodes`, `PartitionTimeLimit`, `Relative`, `RequiresReservation`, `UsageFactorSafe`. Default: `[]`."""
    usageFactor: NotRequired[float]
    """Factor by which the usage of its jobs counts. Type: number, 0 to 1,000,000. Default: 1."""
    usageThreshold: NotRequired[float]
    """Fair share factor below which jobs are held; it counts with the flag EnforceUsageThreshold. Type: number, 0 to 1,000,000. Default: none."""
    limitFactor: NotRequired[float]
    """Factor by which the TRES limits of an account count for jobs of this QOS. Type: number, 0 to 1,000,000. Default: 1."""
    limits: NotRequired[QosLimits]
    """Limits of the jobs with this QOS. Type: [`QosLimits`](#qoslimits). Default: those of its keys."""


class Accounting(TypedDict):
    """slurmdbd with a MariaDB server of its own, or with an external one, and what is kept in it: accounts, users and QOS."""

    enabled: NotRequired[bool]
    """False: no slurmdbd and no database; there are neither accounts nor fair share. Type: true or false. Default: `true`."""
    storage: NotRequired[Disk]
    """Disk of the cluster's own database. Type: [`Disk`](#disk). Default: one of 5Gi, unless `external` is set."""
    external: NotRequired[ExternalDatabase]
    """A database server that exists already, in place of the cluster's own. Type: [`ExternalDatabase`](#externaldatabase). Default: none."""
    purge: NotRequired[Purge]
    """How long records are kept. Type: [`Purge`](#purge). Default: those of its keys."""
    archive: NotRequired[Archive]
    """Files to which records are written when they are purged. Type: [`Archive`](#archive). Default: none."""
    enforce: NotRequired[list[str]]
    """Slurm's AccountingStorageEnforce. `associations`: only users of accounts may submit; the others include that. Type: list, each one of `associations`, `limits`, `qos`, `safe`. Default: `[]` (nothing is enforced)."""
    accounts: NotRequired[list[Account]]
    """Slurm's accounts. Those that an administrator makes in addition are left alone. Type: list of [`Account`](#account). Default: `[]`."""
    qos: NotRequired[list[Qos]]
    """Slurm's QOS. Those that an administrator makes in addition are left alone; `normal` always exists. Type: list of [`Qos`](#qos). Default: `[]`."""
    defaultAccount: NotRequired[str]
    """Account of all users who are in no other; made if `accounts` does not list it. Type: string (a name for Slurm's database: lower-case letters, digits and any of _ . -, first a letter, at most 40 characters). Default: none."""


class Backup(TypedDict):
    """Backups of the accounting database and of slurmctld's state, both on one volume, each cluster in a folder of its own name."""

    volume: Source
    """Shared volume that the backups are written to. Type: [`Source`](#source). Required."""
    schedule: NotRequired[str]
    """When the database is dumped: cron's five fields, in the time zone of the Kubernetes controller manager. Type: string (one line of printable characters). Default: `"30 2 * * *"`."""
    keep: NotRequired[int]
    """Number of database backups to keep. Of slurmctld's state, the last copy of each of as many days is kept, too. Type: integer, 1 to 1,000. Default: `14`."""
    stateIntervalS: NotRequired[int]
    """Time between copies of slurmctld's state, in seconds. Type: integer, 10 to 86,400. Unit: seconds. Default: `600`."""
    restoreFrom: NotRequired[str]
    """What an empty database, or an empty disk of slurmctld, is filled from: `latest`, the newest backup up to a time, or `nothing`. Existing data is never overwritten. Type: string (latest, nothing, or a time as backups are called, such as 2026-01-31T02-30-00Z, at most 20 characters). Default: while there are backups, neither starts until this key is set."""


class Keys(TypedDict):
    """Generations of the cluster's keys: one more makes a new key; 1 again makes none. docs/operate/accounting.md says what restarts; jobs run on."""

    munge: NotRequired[int]
    """Generation of the munge key, with which Slurm's daemons and clients authenticate. Type: integer, 1 to 1,000. Default: `1`."""
    jwt: NotRequired[int]
    """Generation of the JWT key, which signs the tokens for Slurm's REST API. Type: integer, 1 to 1,000. Default: `1`."""
    database: NotRequired[int]
    """Generation of the accounting database's password; for an external one, raise it when its Secret has changed. Type: integer, 1 to 1,000. Default: `1`."""
    keep: NotRequired[list[str]]
    """Keys that stay as they are in the cluster, whatever their generation. The preview reports them; docs/start/pulumi.md explains which stacks need this key. Type: list, each one of `munge`, `jwt`. Default: `[]`."""
    spreadS: NotRequired[int]
    """Time in which all kubelets bring a changed Secret to their pods, in seconds: twice their syncFrequency, which is a minute by default. Type: integer, 10 to 240. Unit: seconds. Default: `120`."""


class HealthCheck(TypedDict):
    """One check of the nodes of some sets. By default, a node that fails is drained until it passes."""

    name: str
    """Name of the check, and part of its CronJob's name. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 20 characters). Required."""
    check: str
    """What the check looks at. It fails in these cases. disk: `/`, the jobs' `/tmp` or slurmd's folder is full or read-only. memory: memory is missing, is in use on an idle node, or has errors. clock: the clock differs from slurmctld's. gpu: GPUs are missing, too hot, throttled by hardware, slow on PCIe under load, outside the NVLink fabric, used outside jobs, or have memory errors. mounts: `/home` or a folder of `storage.mounts` is not mounted, or does not answer. processes: processes hang in the kernel (state D), as on a disk or mount that does not answer. kernel: the kernel's log has a fault. network: InfiniBand, RoCE or EFA ports are down, missing or slow, lose their link, or count errors; an Ethernet bond is down or lacks ports. nvme: an NVMe disk is not live, or an array (md) lacks a disk. pcie: a GPU, network card or NVMe disk uses fewer lanes, or a lower speed, than both ends can. shm: users without a process on the node have files in `/dev/shm`. command: a command of yours ends with 1. stream: memory is slow: STREAM's Copy, by all CPUs. storage: a folder of `folders` is slow to write with fsync, or to read, or gives back other data. mpi: the network between nodes is slow, late or wrong. nccl: an all-reduce between GPUs is slow or wrong, in one node or over several. dcgm: NVIDIA's diagnostics fail a test. burn: a GPU under full load computes wrong, dies, or is slower than its neighbours. ib: an InfiniBand or RoCE port is slow between nodes. nccl, dcgm, burn and ib run programs of others, which have to be in the worker: see docs/reference/checks.md. Type: one of `disk`, `memory`, `clock`, `gpu`, `mounts`, `processes`, `kernel`, `network`, `nvme`, `pcie`, `shm`, `command`, `stream`, `storage`, `mpi`, `nccl`, `dcgm`, `burn`, `ib`. Required."""
    command: NotRequired[list[str]]
    """With `check: command`: the command, run on each node in the worker's pod. In the context job it runs as Slurm's user, with all of the node's GPUs; beside jobs, it runs as root. Only root may own and change it. Exit code 0: passed. 1: failed, and the last line printed is the finding. All others: unknown. With nccl, dcgm, burn and ib: the program that is run instead of all_reduce_perf, dcgmi, gpu_burn or ib_write_bw. Arguments that are given here come before those of the check. Type: list of string (one line of printable characters). Default: `[]`."""
    per: NotRequired[str]
    """With `check: mpi`, nccl and ib, how many nodes a job has. node: each one by itself, with all of its GPUs (nccl only). pair: the nodes two by two. set: all idle nodes at once, with an all-reduce, and in pairs where that is slow (mpi and nccl). Type: one of `node`, `pair`, `set`. Default: node for nccl, else pair."""
    folders: NotRequired[list[str]]
    """With `check: storage`: the folders that are written to and read from. Slurm's user needs to be able to write there. Type: list of string (a plain absolute path, without spaces, `..` or a slash at the end). Default: `[]` (/tmp)."""
    xids: NotRequired[list[int]]
    """With `check: kernel`: Xids of NVIDIA's driver that count as GPU errors, beside those that docs/reference/checks.md lists. Type: list of integer, 1 to 2,147,483,647. Default: `[]`."""
    ignoredXids: NotRequired[list[int]]
    """With `check: kernel`: Xids that do not count. Type: list of integer, 1 to 2,147,483,647. Default: `[]`."""
    patterns: NotRequired[dict[str, str]]
    """With `check: kernel`: further lines of the kernel's log that are a fault, as `name: regular expression`. The drain names the pattern and the line. The first 500 characters of a line are looked at, without names that users choose (docs/reference/checks.md). More than `maxPatterns` such lines fail the check. Type: mapping. Name: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 30 characters). Value: string (a regular expression of Python's that looks for a part of a line, without repeated groups, at most 200 characters). Default: `{}`."""
    after: NotRequired[list[str]]
    """Names of checks that come first: this one looks only at nodes that passed all of them when they last ran. Type: list of string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 20 characters). Default: `[]`."""
    budgetNodeMinutes: NotRequired[int]
    """Most node minutes that the jobs of this check may use in 24 hours; needs accounting. The nodes that have waited longest for it come first. Type: integer, 1 to 2,147,483,647. Default: no limit."""
    cause: NotRequired[str]
    """What is broken where the check fails: hardware, node (what runs on the machine) or maintenance. Of several failures the drain names the first in this order. Type: one of `hardware`, `node`, `maintenance`. Default: hardware for memory, gpu, kernel, network, nvme, pcie, stream, mpi, nccl, dcgm, burn and ib, else node."""
    contexts: NotRequired[list[str]]
    """When it runs. job: as a Slurm job that has an idle node for itself, at the `schedule`. interval: every minute, beside users' jobs (Slurm's HealthCheckProgram; `HealthCheckInterval` in slurm.settings). prolog: before each job on each of its nodes; where it fails, the job starts elsewhere. epilog: after each job. Some kinds do not run in all of these. clock, stream, storage, mpi, nccl, dcgm, burn and ib: job only. processes: job and interval only. kernel: interval, prolog and epilog only. shm: interval and epilog only. Type: list, each one of `job`, `interval`, `prolog`, `epilog`. Default: `[job]`."""
    nodeStates: NotRequired[list[str]]
    """With the context interval: it looks only at nodes in these states. idle: no job of a user is on the node. allocated: one is. A node in another state is skipped, and keeps what was found before. Type: list, each one of `idle`, `allocated`. Default: `[idle, allocated]`."""
    platforms: NotRequired[list[str]]
    """Vendors of GPUs on whose nodes the check makes sense: nvidia, amd, or none for nodes without GPUs. It leaves all other nodes of its `nodeSets` out. Type: list, each one of `nvidia`, `amd`, `none`. Default: `[]` (all nodes)."""
    schedule: NotRequired[str]
    """When it runs as a job: cron's five fields, in the time zone of the Kubernetes controller manager. Needed with the context job. Type: string (one line of printable characters). Default: not set."""
    nodeSets: list[str]
    """Names of the node sets whose nodes are checked. Type: list of string. Required."""
    timeoutS: NotRequired[int]
    """Time for one run on one node, in seconds. After that the result counts as unknown. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `60`."""
    maxDrained: NotRequired[Any]
    """This check drains a node only while all health checks together hold fewer nodes of the set drained than this. A number, or a percentage of the set (at least one node). Type: integer or string (a number of at least 1, or a percentage). Default: `"10%"`."""
    wish: NotRequired[str]
    """What a failure asks for. drain: the node takes no job until it passes. reboot, replace: as well, and the `remedies` of its node set begin with that step. none: the failure is reported, and the node keeps taking jobs. Type: one of `drain`, `reboot`, `replace`, `none`. Default: `drain`."""
    otherDrivers: NotRequired[str]
    """Of a gpu check: what becomes of a node whose GPU driver is not that of most nodes of its set. report: a cause is shown, and the node keeps taking jobs. drain: such nodes are drained, at most `maxDrained` of each set. Type: one of `report`, `drain`. Default: report."""
    passes: NotRequired[int]
    """Beside jobs: passes in a row that end a failure, so that a check that flaps drains its node once, and keeps it. As a job, one pass is enough. Type: integer, 1 to 100. Default: `3`."""
    settings: NotRequired[dict[str, int]]
    """Limits of the check, which docs/reference/checks.md explains. disk: `minFreeMiB` (1024), `minFreePercent` (0). memory: `minAvailablePercent` (50), `maxUncorrectableErrors` (0), `maxCorrectableErrors` (1000). clock: `maxOffsetS` (5). gpu: `maxUncorrectableErrors` (0), `maxTemperatureC` (90; 0: none), `maxThrottled` (0), `maxIdleMemoryMiB` (1024, as a job), `minNvlinks` (0), `maxForeignProcesses` (0, beside jobs). mounts: `maxAnswerS` (20). processes: `maxStuck` (0), `stuckS` (10). kernel: `maxAgeS` (3600; 0: since the machine started), `maxGpuErrors` (0), `maxMemoryErrors` (0), `maxPcieErrors` (0), `maxDiskErrors` (0), `maxFilesystemErrors` (0), `maxLinkDowns` (3), `maxHungTasks` (3), `maxOoms` (0), `maxPatterns` (0). network: `minPorts` (0), `maxPortsDown` (0), `minRateGbps` (0: none), `maxLinkDowns` (3), `maxSymbolErrors` (100), `maxIcrcErrors` (100), `maxSequenceErrors` (0: none), `maxAckTimeouts` (10000; 0: none), `maxDrops` (10000; 0: none), `maxRetransmitTimeouts` (10000; 0: none), `maxRemoteFaults` (10000; 0: none), `windowS` (3600), `minBondPorts` (0), `maxBondPortsDown` (0). nvme: `minDisks` (0), `maxDegraded` (0). pcie: `maxNarrow` (0), `maxSlow` (0). shm: `maxLeftoverMiB` (1024). stream: `minBandwidthMBs` (1000), `arrayMiB` (64, twice for each CPU), `seconds` (5). storage: `sizeMiB` (64), `minWriteMBs` (10), `minReadMBs` (10), `maxFsyncMs` (0: none). mpi: `minBandwidthMBs` (0), `maxLatencyUs` (0: none), `minShareOfMedianPercent` (50), `messageKiB` (1024), `seconds` (2), `rounds` (1). nccl: `minBusBandwidthGBs` (by the machine catalogue; 0: none), `minShareOfMedianPercent` (50), `messageMiB` (1024), `rounds` (1). dcgm: `level` (2, of `dcgmi diag`, 1 to 4). burn: `seconds` (60), `minShareOfMedianPercent` (80). ib: `minRateGbps` (0: none), `minShareOfRatePercent` (80), `seconds` (2 for each port), `rounds` (1). Without minBusBandwidthGBs, a limit comes from the machine catalogue if the pool names a machine of it. For one node it is two thirds of what the model's NVLink carries; between nodes with EFA, half of the network's bandwidth. Type: mapping. Name: string (the name of a limit, such as minFreeMiB, at most 64 characters). Value: integer, 0 to 2,147,483,647. Default: `{}` (the values in parentheses)."""


class Maintenance(TypedDict):
    """What becomes of running jobs before maintenance. It concerns jobs whose time limit lets them run into a future reservation of their nodes with Slurm's flag MAINT."""

    enabled: NotRequired[bool]
    """False: jobs are neither warned nor requeued. Type: true or false. Default: `true`."""
    warnBeforeS: NotRequired[int]
    """How long before the reservation starts jobs are warned, in seconds. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `3600`."""
    signal: NotRequired[str]
    """The signal of the warning, which a job's script and all of its steps get. A program that does not know URG or CONT runs on. USR1 and USR2 end every program that does not catch them. Type: one of `URG`, `USR1`, `USR2`, `CONT`, `none`. Default: `URG`."""
    requeueBeforeS: NotRequired[int]
    """How long before the reservation starts jobs are requeued, in seconds. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `60`."""
    requeue: NotRequired[str]
    """Which batch jobs are requeued. Declared: those submitted with --requeue, or with the `commentWord` in their --comment. Allowed: all but those with --no-requeue, while `slurm.jobRequeue` is on. Never: none. All others are left alone. Type: one of `Declared`, `Allowed`, `Never`. Default: `Declared`."""
    commentWord: NotRequired[str]
    """The word in a job's --comment by which it declares that it can be requeued. Type: string (one word of letters, digits, dots, dashes, colons and underscores, at most 64 characters). Default: `requeue-for-maintenance`."""
    reservationPrefix: NotRequired[str]
    """Reservations whose names begin so count as well, without the flag MAINT. Type: string (the start of a reservation's name, such as maint-, at most 64 characters). Default: `""` (only the flag counts)."""


class Ec2(TypedDict):
    """A program that reads scheduled events and status checks of the machines from EC2, and reboots and replaces machines where a node set says `remedies.machines: EC2`. docs/operate/remedies.md has the IAM policy that it needs."""

    region: str
    """Region of the machines. Type: string (a region of AWS, at most 32 characters). Required."""
    roleArn: NotRequired[str]
    """The IAM role for its ServiceAccount `<cluster>-ec2` (IRSA). Type: string (the ARN of an IAM role, at most 600 characters). Default: none; EKS Pod Identity needs nothing here."""
    everyS: NotRequired[int]
    """Time between two questions about all machines, in seconds. Type: integer, 15 to 3,600. Unit: seconds. Default: `60`."""
    topologyLabels: NotRequired[bool]
    """True: the machines get the labels of the topology preset `ec2` from DescribeInstanceTopology. EKS writes them itself; machines that have them from others keep theirs. Type: true or false. Default: `false`."""
    impairedS: NotRequired[int]
    """How long a status check has to fail before it counts, in seconds. Type: integer, 0 to 86,400. Unit: seconds. Default: `300`."""
    maxPerHour: NotRequired[int]
    """Most machines that are rebooted or terminated in one hour, over the whole cluster. `maxPerDay` of each set applies as well. Type: integer, 1 to 60. Default: `10`."""


class Smtp(TypedDict):
    """The SMTP relay that mail about jobs goes through: what `--mail-type` asks for."""

    host: str
    """Host name or IP address of the relay. Type: string (a host name or an IP address, at most 253 characters). Required."""
    port: NotRequired[int]
    """TCP port of the relay. Type: integer, 1 to 65,535. Default: `587`."""
    sender: str
    """Address that the mails come from. Type: string (a mail address, such as slurm@example.com, at most 254 characters). Required."""
    domain: str
    """Domain of users' addresses: mail for a job goes to `<user>@<domain>`, unless `--mail-user` gives another address. Type: string (a mail domain, such as example.com, at most 189 characters). Required."""
    tls: NotRequired[str]
    """How the connection is encrypted: `starttls`, after a plain greeting; `tls`, from the start, usually on port 465; `none`, not at all. The relay's certificate and name are checked. Type: one of `starttls`, `tls`, `none`. Default: `starttls`."""
    caSecret: NotRequired[str]
    """Name of a Secret whose key `ca.crt` has the CA of the relay's certificate. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: the public CAs that Debian ships."""
    credentialsSecret: NotRequired[str]
    """Name of a Secret whose keys `username` and `password` the relay asks for. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: no login."""


class NewsReceiver(TypedDict):
    """A receiver of news of jobs and nodes: a webhook, or mail addresses. docs/operate/notifications.md shows what arrives."""

    name: str
    """Name of the receiver. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 20 characters). Required."""
    kind: NotRequired[str]
    """slack: a webhook that takes Slack's format, as Slack, Mattermost and others do. webhook: JSON with the facts as fields. mail: through the relay of `notifications.smtp`. Type: one of `slack`, `webhook`, `mail`. Default: `slack`."""
    urlSecret: NotRequired[str]
    """With slack and webhook: name of a Secret in the cluster's namespace, whose key `url` has the address to send to. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    to: NotRequired[list[str]]
    """With mail: the addresses. Type: list of string (a mail address, such as slurm@example.com, at most 254 characters). Default: `[]`."""
    events: NotRequired[list[str]]
    """The news that it gets. jobEnd: each job that has ended. jobFail: those that neither completed nor were cancelled. jobRequeue: runs of jobs that were put back into the queue. nodeDrain: nodes that go out of service, with cause and evidence. nodeResume: nodes that are back. Type: list, each one of `jobEnd`, `jobFail`, `jobRequeue`, `nodeDrain`, `nodeResume`. Default: `[jobEnd]`."""
    accounts: NotRequired[list[str]]
    """Jobs of these accounts. Type: list of string. Default: `[]` (of all)."""
    users: NotRequired[list[str]]
    """Jobs of these users. Type: list of string. Default: `[]` (of all)."""
    partitions: NotRequired[list[str]]
    """Jobs and nodes of these partitions. Type: list of string. Default: `[]` (of all)."""
    onlyAsked: NotRequired[bool]
    """True: only jobs whose user asks for it, with the word `notify:NAME` in `--comment`. With or without it, a receiver of jobs' events whose name a job's comment has also hears of drains of the nodes under that job. Type: true or false. Default: `false`."""


class Notifications(TypedDict):
    """What the cluster tells people by itself."""

    smtp: NotRequired[Smtp]
    """The relay for mail about jobs. Type: [`Smtp`](#smtp). Default: none, and `--mail-type` is answered by a warning."""
    receivers: NotRequired[list[NewsReceiver]]
    """Webhooks and mail addresses that get news of ended jobs and of nodes out of service. Type: list of [`NewsReceiver`](#newsreceiver). Default: `[]` (none)."""


class Receiver(TypedDict):
    """A receiver of Alertmanager's alerts. An alert is repeated after a day, and its end is reported."""

    name: str
    """Name of the receiver. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 20 characters). Required."""
    kind: str
    """slack: a webhook that takes Slack's format, as Slack, Mattermost and others do. webhook: Alertmanager's own JSON. mail: through the relay of `notifications.smtp`. Type: one of `slack`, `webhook`, `mail`. Required."""
    urlSecret: NotRequired[str]
    """With slack and webhook: name of a Secret in the cluster's namespace, whose key `url` has the address to send to. Type: string (a Kubernetes object name: lower-case letters, digits, dashes, and single dots between them, at most 253 characters). Default: not set."""
    to: NotRequired[list[str]]
    """With mail: the addresses. Type: list of string (a mail address, such as slurm@example.com, at most 254 characters). Default: `[]`."""
    severities: NotRequired[list[str]]
    """Severities of the alerts that it gets. critical: jobs do not run, act now. warning: act today. info: worth to know. none: Watchdog, which always fires; a receiver of nothing else gets it every five minutes. Type: list, each one of `critical`, `warning`, `info`, `none`. Default: `[critical, warning]`."""
    match: NotRequired[dict[str, str]]
    """Labels that an alert must have, each with its value: `nodeset`, `account`, `partition`, `check` or `alertname`. Type: mapping. Name: string (a label of an alert, such as nodeset, at most 64 characters). Value: string (one line of printable characters). Default: `{}` (any)."""


class Thresholds(TypedDict):
    """When an alert is one. Each alert's section in docs/operate/runbooks.md names its threshold."""

    readingAgeS: NotRequired[int]
    """Age from which a reading of Slurm is too old, in seconds: SlurmReadingOld. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `120`."""
    drainedMinutes: NotRequired[int]
    """Minutes that a node may be out of service: NodesOutOfService, NodesDown, GpusMissing. Type: integer, 1 to 2,147,483,647. Default: `15`."""
    systemicPercent: NotRequired[int]
    """Percentage of the nodes of a check that fail at once, from which what they share is broken: CheckFailsEverywhere. Type: integer, 1 to 100. Unit: percent. Default: `10`."""
    checkAgeHours: NotRequired[int]
    """Hours since a check last ran: CheckOld. Type: integer, 1 to 2,147,483,647. Default: `48`."""
    gpusUnavailablePercent: NotRequired[int]
    """Percentage of a node set's GPUs that may be out of service for an hour: GpusUnavailable. Type: integer, 1 to 100. Unit: percent. Default: `10`."""
    queueMinutes: NotRequired[int]
    """Minutes in which no job starts although jobs wait and nodes are idle: QueueBlocked. Type: integer, 1 to 2,147,483,647. Default: `30`."""
    updateMinutes: NotRequired[int]
    """Minutes that workers may be missing or not ready: NodeSetNotReady, NodeSetPodsMissing. Type: integer, 1 to 2,147,483,647. Default: `60`."""
    keyAgeDays: NotRequired[int]
    """Days that slurmctld may have the same munge key or JWT key: KeyOld. Type: integer, 1 to 2,147,483,647. Unit: days. Default: `365`."""
    backupAgeHours: NotRequired[int]
    """Hours since the last backup: BackupOld. Type: integer, 1 to 2,147,483,647. Default: `26`."""
    claimPercent: NotRequired[int]
    """Percentage of a volume claim that may be full: ClaimNearlyFull. Type: integer, 1 to 100. Unit: percent. Default: `90`."""
    wastedGpuHours: NotRequired[int]
    """GPU hours of an account in one day, from which it counts that most of them went to jobs that did not complete: GpuHoursWasted. Type: integer, 0 to 2,147,483,647. Default: `24`."""


class Dashboards(TypedDict):
    """The dashboards for Grafana, in one ConfigMap."""

    labels: NotRequired[dict[str, str]]
    """Labels by which Grafana's sidecar finds the ConfigMap. Type: mapping. Name: string (a label key of Kubernetes, such as grafana_dashboard, at most 316 characters). Value: string (a label value of Kubernetes, at most 63 characters). Default: `{grafana_dashboard: "1"}`."""
    folder: NotRequired[str]
    """Folder of Grafana that the sidecar puts them into: the annotation `grafana_folder`. Type: string (one line of printable characters). Default: `Slurm`."""


class Monitoring(TypedDict):
    """Metrics, alerts and dashboards of the cluster."""

    prometheus: NotRequired[str]
    """Own: a Prometheus and an Alertmanager of the cluster's own. Operator: ServiceMonitor, PodMonitor and PrometheusRule objects, for a Kubernetes cluster with the Prometheus Operator. Type: one of `Own`, `Operator`. Default: `Own`."""
    scrapeIntervalS: NotRequired[int]
    """Time between two readings of all metrics, in seconds. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `30`."""
    accounts: NotRequired[int]
    """Number of accounts that have series of their own: the largest. The others are summed up as the account `other`. Type: integer, 1 to 2,147,483,647. Default: `100`."""
    retentionDays: NotRequired[int]
    """With Own: days that metrics are kept. The oldest go earlier where they would fill the disk. Type: integer, 1 to 2,147,483,647. Unit: days. Default: `15`."""
    storage: NotRequired[Disk]
    """With Own: the disk of Prometheus and Alertmanager. Type: [`Disk`](#disk). Default: those of its keys."""
    readers: NotRequired[list[str]]
    """With Own: namespaces whose pods may ask Prometheus, where the network heeds NetworkPolicies. Type: list of string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 63 characters). Default: `[]` (none but a port-forward)."""
    receivers: NotRequired[list[Receiver]]
    """With Own: whom Alertmanager tells. Type: list of [`Receiver`](#receiver). Default: `[]` (nobody; alerts are shown by Prometheus and Alertmanager)."""
    labels: NotRequired[dict[str, str]]
    """With Operator: labels by which its Prometheus selects the objects. Type: mapping. Name: string (a label key of Kubernetes, such as grafana_dashboard, at most 316 characters). Value: string (a label value of Kubernetes, at most 63 characters). Default: `{}`."""
    thresholds: NotRequired[Thresholds]
    """When an alert is one. Type: [`Thresholds`](#thresholds). Default: those of its keys."""
    runbooks: NotRequired[str]
    """Address of the page that alerts link to. Type: string (one line of printable characters). Default: the path docs/operate/runbooks.md."""
    without: NotRequired[list[str]]
    """Names of alerts that are left out. Type: list of string (one line of printable characters). Default: `[]`."""
    dashboards: NotRequired[Dashboards]
    """The dashboards for Grafana. Type: [`Dashboards`](#dashboards). Default: those of its keys."""


class Page(TypedDict):
    """A read-only web page of the cluster for people without Grafana, as the Service `<cluster>-page`. It asks nobody who they are: reach it through an ssh tunnel, or put an OIDC proxy in front (docs/operate/page.md)."""

    hide: NotRequired[list[str]]
    """What the page leaves out, for everybody: names and users of jobs, or nodes. What PrivateData in `slurm.settings` hides is left out in any case. Type: list, each one of `jobs`, `nodes`. Default: `[]` (nothing more)."""
    hosts: NotRequired[list[str]]
    """Further host names by which browsers reach the page, such as a proxy's. The page always answers its Service's names, `localhost` and addresses. It answers no other name, so that no other website can read it in a user's browser. Type: list of string (a host name or an IP address, at most 253 characters). Default: `[]` (no others)."""


class PriorityWeights(TypedDict):
    """Weights of the multifactor priority; 0 leaves a factor out. Age, fairshare and QOS need accounting."""

    age: NotRequired[int]
    """Weight of the time that a job has waited. Type: integer, 0 to 2,147,483,647. Default: `1000`."""
    fairshare: NotRequired[int]
    """Weight of the fair share. Type: integer, 0 to 2,147,483,647. Default: `10000`."""
    jobSize: NotRequired[int]
    """Weight of the job's size. Type: integer, 0 to 2,147,483,647. Default: `0`."""
    partition: NotRequired[int]
    """Weight of the partition's PriorityJobFactor. Type: integer, 0 to 2,147,483,647. Default: `1000`."""
    qos: NotRequired[int]
    """Weight of the QOS's priority. Type: integer, 0 to 2,147,483,647. Default: `10000`."""


class Containers(TypedDict):
    """Containers of jobs: `srun --container-image` and its kin (docs/use/containers.md)."""

    cacheMiB: NotRequired[int]
    """Room for unpacked images on each node, of all users together, in MiB. To stay within it, images that no job uses are removed before a pull, those first that were used longest ago, whoever's they are. Type: integer, 1 to 999,999,999. Unit: MiB. Default: `51200`."""
    registry: NotRequired[str]
    """Registry of images that are named without one, such as `ubuntu:24.04`. Type: string (a registry, with a path where there is one: host, host:port or host/path, without https://, at most 255 characters). Default: none, and such a name is refused."""


class SlurmSettings(TypedDict):
    """What the cluster's slurm.conf and cgroup.conf say beyond nodes and partitions."""

    cgroupVersion: NotRequired[str]
    """Version of cgroups that Slurm confines jobs with. `auto`: the version that each node has. Type: one of `auto`, `v1`, `v2`. Default: `auto`."""
    slurmctldTimeoutS: NotRequired[int]
    """SlurmctldTimeout: how long others wait for a silent slurmctld, in seconds. Type: integer, 1 to 65,533. Unit: seconds. Default: `120`."""
    slurmdTimeoutS: NotRequired[int]
    """SlurmdTimeout: seconds of silence after which a node is down and its jobs are requeued. 0: never. Type: integer, 0 to 65,533. Unit: seconds. Default: `300`."""
    returnToService: NotRequired[int]
    """ReturnToService: when a node that was down comes back. 0: when an administrator says so. 1: when it registers with a valid configuration and was down only because it did not respond. 2: whenever it registers with a valid configuration. Type: one of `0`, `1`, `2`. Default: `2`."""
    messageTimeoutS: NotRequired[int]
    """MessageTimeout: time for one message and its answer, in seconds. Type: integer, 1 to 65,533. Unit: seconds. Default: `30`."""
    schedulerParameters: NotRequired[list[str]]
    """Items of SchedulerParameters. Type: list of string (one line of printable characters). Default: `[]`."""
    selectTypeParameters: NotRequired[str]
    """What Slurm allocates to jobs, along with memory: cores (CR_Core_Memory), hardware threads (CR_CPU_Memory) or whole sockets (CR_Socket_Memory). Options may follow after a comma: CR_ONE_TASK_PER_CORE, CR_CORE_DEFAULT_DIST_BLOCK, CR_LLN, CR_Pack_Nodes. Type: string (one of CR_Core_Memory, CR_CPU_Memory, CR_Socket_Memory, followed by any of CR_ONE_TASK_PER_CORE, CR_CORE_DEFAULT_DIST_BLOCK, CR_LLN, CR_Pack_Nodes, with commas between them, at most 120 characters). Default: `CR_Core_Memory`."""
    priorityWeights: NotRequired[PriorityWeights]
    """Weights of the multifactor priority. Type: [`PriorityWeights`](#priorityweights). Default: those of its keys."""
    jobRequeue: NotRequired[bool]
    """True: batch jobs run again after their node failed, unless submitted with --no-requeue. Type: true or false. Default: `true`."""
    maxJobCount: NotRequired[int]
    """MaxJobCount: most jobs that slurmctld holds at one time: waiting, running or just ended. Each task of an array counts. Type: integer, 1 to 10,000,000. Default: `100000`."""
    maxArraySize: NotRequired[int]
    """MaxArraySize: one more than the highest index of a job array. Type: integer, 1 to 4,000,001. Default: `10001`."""
    killWaitS: NotRequired[int]
    """KillWait: time between SIGTERM and SIGKILL for a job at its time limit, in seconds. Type: integer, 1 to 65,533. Unit: seconds. Default: `30`."""
    suspendTimeS: NotRequired[int]
    """SuspendTime: seconds without a job after which a node of an elastic set is powered down, except for the first `min` nodes. Type: integer, 1 to 31,536,000. Unit: seconds. Default: `300`."""
    suspendTimeoutS: NotRequired[int]
    """SuspendTimeout: seconds after which a node that was powered down can be asked for again. If its pod is gone earlier, the NodeSet controller reports that to Slurm, and the node can be asked for at once. At least 60: a slurmd that is still there would register again, and a job on it would end with its pod. Type: integer, 60 to 65,533. Unit: seconds. Default: `60`."""
    resumeTimeoutS: NotRequired[int]
    """ResumeTimeout: seconds after which a node that Slurm asked for and that has not registered is down; its jobs are requeued. Type: integer, 1 to 65,533. Unit: seconds. Default: `600`."""
    defaultMemoryPerCpuMiB: NotRequired[int]
    """Memory that a job gets for each CPU when it asks for none, in MiB. Type: integer, 1 to 1,000,000,000. Unit: MiB. Default: a partition's smallest node memory by its CPUs."""
    processesPerJob: NotRequired[int]
    """Processes and threads that one job may have on one node, in addition to those for its CPUs. null: no limit. Type: integer, 100 to 4,000,000. Default: `512`."""
    processesPerCpu: NotRequired[int]
    """Processes and threads that each CPU of the job on the node adds to them. Type: integer, 0 to 100,000. Default: `256`."""
    efficiencyReport: NotRequired[bool]
    """True: a batch script's output file ends with a report of the CPUs and memory that the job used on that node. `seff` prints the same for whole jobs. Type: true or false. Default: `false`."""
    containers: NotRequired[Containers]
    """Containers of jobs. Type: [`Containers`](#containers). Default: those of its keys."""
    settings: NotRequired[dict[str, Any]]
    """Any other key of slurm.conf. The values of AccountingStorageTRES, PrologFlags and SlurmctldParameters are added to Slipway's own. Type: mapping. Name: string (a key of Slurm: letters, digits and underscores, at most 64 characters). Value: string or number or boolean (a value without `#`, `"` and `\\`). Default: `{}`."""
    cgroupSettings: NotRequired[dict[str, Any]]
    """Further keys of cgroup.conf, such as CgroupJobIdPaths, which names the cgroups of jobs by job number. Type: mapping. Name: string (a key of Slurm: letters, digits and underscores, at most 64 characters). Value: string or number or boolean (a value without `#`, `"` and `\\`). Default: `{}`."""
    files: NotRequired[dict[str, str]]
    """Files beside slurm.conf, by name, with their text. Some keys of `settings` need one, such as burst_buffer.lua, topology.conf, acct_gather.conf or mpi.conf. Scripts that Prolog and Epilog name without a path belong here, too; slurmctld sends them to the nodes. Type: mapping. Name: string (a file name without a folder: letters, digits and any of _ . -, at most 64 characters). Value: string (the text of a file). Default: `{}`."""
    raw: NotRequired[list[str]]
    """Lines that are put at the end of slurm.conf as they are. Type: list of string (one line of printable characters). Default: `[]`."""


class SlurmClusterArgs(TypedDict):
    """One Slurm cluster: the value of `slipway:cluster` in a stack file."""

    name: str
    """Prefix of every object (`<name>-slurmctld`) and Slurm's ClusterName. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 20 characters). Required."""
    namespace: NotRequired[str]
    """Kubernetes namespace of everything that Slipway makes, except for what belongs to no namespace. Type: string (a DNS label: lower-case letters, digits and dashes, first a letter, last no dash, at most 63 characters). Default: `slurm`."""
    createNamespace: NotRequired[bool]
    """False: the namespace exists already and is left as it is. Type: true or false. Default: `true`."""
    kubernetes: NotRequired[Kubernetes]
    """Which Kubernetes cluster to deploy to, and how. Type: [`Kubernetes`](#kubernetes). Default: those of its keys."""
    deletionProtection: NotRequired[bool]
    """True: storage, the accounting database and the keys are kept when the stack is destroyed. Type: true or false. Default: `false`."""
    images: NotRequired[Images]
    """The container images. Type: [`Images`](#images). Default: those of its keys."""
    nodePools: list[NodePool]
    """The machines: one pool for each kind. Type: list of [`NodePool`](#nodepool). Required."""
    gpuOperator: NotRequired[GpuOperator]
    """NVIDIA's GPU Operator, for clusters that do not have it yet. Type: [`GpuOperator`](#gpuoperator). Default: those of its keys."""
    systemNodes: NotRequired[SystemNodes]
    """Where the pods run that are not workers. Type: [`SystemNodes`](#systemnodes). Default: those of its keys."""
    nodeSets: list[NodeSet]
    """The nodes that Slurm has on the machines. Type: list of [`NodeSet`](#nodeset). Required."""
    partitions: list[Partition]
    """The partitions to which users submit jobs. Type: list of [`Partition`](#partition). Required."""
    topologies: NotRequired[list[Topology]]
    """Networks by which Slurm places jobs, by labels of the machines. The first counts for partitions that name none. Type: list of [`Topology`](#topology). Default: `[]` (Slurm knows of no network)."""
    labelFeatures: NotRequired[list[str]]
    """Labels of the machines that become features of the nodes on them, for `sbatch --constraint`. The feature is the label's value or, where that is "true", the name of the label after its slash. Type: list of string (a Kubernetes label key, at most 317 characters). Default: `[]`."""
    storage: Storage
    """The volumes: at least the shared one and the homes. Type: [`Storage`](#storage). Required."""
    login: NotRequired[Login]
    """The login pods, and who may log in. Type: [`Login`](#login). Default: those of its keys."""
    accounting: NotRequired[Accounting]
    """The accounting database, and the accounts and QOS in it. Type: [`Accounting`](#accounting). Default: those of its keys."""
    backup: NotRequired[Backup]
    """Backups of the accounting database and of slurmctld's state. Type: [`Backup`](#backup). Default: none are made."""
    keys: NotRequired[Keys]
    """Generations of the cluster's keys: raise one to rotate the key. Type: [`Keys`](#keys). Default: those of its keys."""
    healthChecks: NotRequired[list[HealthCheck]]
    """Checks that run on idle nodes and drain those that fail. Type: list of [`HealthCheck`](#healthcheck). Default: `[]`."""
    maintenance: NotRequired[Maintenance]
    """Warnings of maintenance for running jobs, and which of these jobs are requeued for it. Type: [`Maintenance`](#maintenance). Default: those of its keys."""
    ec2: NotRequired[Ec2]
    """EC2's reports on the machines, and their reboot and replacement through it. Type: [`Ec2`](#ec2). Default: EC2 is not asked."""
    notifications: NotRequired[Notifications]
    """News of jobs and nodes: by mail, or by webhooks in Slack's format. Type: [`Notifications`](#notifications). Default: those of its keys."""
    monitoring: NotRequired[Monitoring]
    """Metrics, alerts and dashboards. Type: [`Monitoring`](#monitoring). Default: none."""
    page: NotRequired[Page]
    """A web page that shows nodes, causes, the queue and the last day. Type: [`Page`](#page). Default: none."""
    slurm: NotRequired[SlurmSettings]
    """Settings of Slurm itself. Type: [`SlurmSettings`](#slurmsettings). Default: those of its keys."""
