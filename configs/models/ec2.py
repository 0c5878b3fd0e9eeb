"""Config of what is asked of EC2. Its answers are read in controllers/ec2."""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictStr

from configs.models.fields import Matching, Model, Whole

Region = Annotated[StrictStr, AfterValidator(Matching(r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}", "a region of AWS", 32, "eu-west-1"))]
RoleArn = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]+", "the ARN of an IAM role", 600, "arn:aws:iam::123456789012:role/slipway"
        )
    ),
]


class Ec2(Model):
    """A program that reads scheduled events and status checks of the machines from EC2, and reboots and replaces machines where a node set
    says `remedies.machines: EC2`. docs/operate/remedies.md has the IAM policy that it needs."""

    region: Region
    """Region of the machines."""
    role_arn: RoleArn | None = None
    """The IAM role for its ServiceAccount `<cluster>-ec2` (IRSA). Default: none; EKS Pod Identity needs nothing here."""
    every_s: Annotated[Whole, Field(ge=15, le=3600)] = Field(default=60, examples=[120])
    """Time between two questions about all machines, in seconds."""
    topology_labels: StrictBool = False
    """True: the machines get the labels of the topology preset `ec2` from DescribeInstanceTopology. EKS writes them itself; machines that
    have them from others keep theirs."""
    impaired_s: Annotated[Whole, Field(ge=0, le=86_400)] = Field(default=300, examples=[600])
    """How long a status check has to fail before it counts, in seconds."""
    max_per_hour: Annotated[Whole, Field(ge=1, le=60)] = Field(default=10, examples=[2])
    """Most machines that are rebooted or terminated in one hour, over the whole cluster. `maxPerDay` of each set applies as well."""
