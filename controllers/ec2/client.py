"""Calls to EC2. Each runs once, in a thread, with a deadline; each error says whether EC2 may have done the work. Thin.

The caller decides about retries. Credentials come from where boto3 finds them: IRSA, EKS Pod Identity or the environment.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

import boto3
import botocore.exceptions as exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError

MOST_IDS = 100
"""Instances that one DescribeInstanceStatus or DescribeInstanceTopology may name. Source: their API reference."""
DEADLINE_S = 6.0
"""For one call including its overhead, such as new credentials. The NodeSet controller waits ten seconds for an answer."""
_CONFIG = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 1, "mode": "standard"})
_ID = re.compile(r"i-[0-9a-f]+")
_NOT_DONE = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled")
"""Refusals that come with a status of 500 and more."""
_NO_CREDENTIALS = "no AWS credentials: give cluster.ec2.roleArn (IRSA), or associate an IAM role with the ServiceAccount (EKS Pod Identity)"
_ROLE = "Look at the IAM role of this program's ServiceAccount: docs/operate/remedies.md has what it needs."
T = TypeVar("T")


class Ec2Error(Exception):
    """A call that failed. The text is for people."""


class Ec2Refused(Ec2Error):
    """EC2 answered, and did nothing."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code
        """EC2's word, such as UnauthorizedOperation."""


class Ec2NotAsked(Ec2Error):
    """The request was never sent: no credentials, or no connection."""


class Ec2Unknown(Ec2Error):
    """The answer is lost or unusable: EC2 may have done the work."""


class _Calls(Protocol):
    """The part of boto3's untyped client that is used here."""

    def describe_instance_status(self, **asked: Any) -> dict[str, Any]: ...
    def describe_instance_topology(self, **asked: Any) -> dict[str, Any]: ...
    def reboot_instances(self, **asked: Any) -> dict[str, Any]: ...
    def terminate_instances(self, **asked: Any) -> dict[str, Any]: ...


class Ec2:
    """EC2 in one region. Every call returns its result, or raises an Ec2Error, within its deadline."""

    def __init__(self, region: str) -> None:
        self._calls: _Calls = cast(Any, boto3).session.Session().client("ec2", region_name=region, config=_CONFIG)

    async def statuses(self, instances: Sequence[str]) -> list[Mapping[str, Any]]:
        """`InstanceStatuses` of at most MOST_IDS instances, without those that EC2 does not know."""
        return await self._known("DescribeInstanceStatus", "InstanceStatuses", instances)

    async def topology(self, instances: Sequence[str]) -> list[Mapping[str, Any]]:
        """`Instances` of DescribeInstanceTopology, of at most MOST_IDS instances, without those that EC2 does not know."""
        return await self._known("DescribeInstanceTopology", "Instances", instances)

    async def reboot(self, instance: str) -> None:
        """Has EC2 reboot an instance. EC2 only notes the request, and forces the reboot after some minutes."""
        await _call("RebootInstances", lambda: self._calls.reboot_instances(InstanceIds=[instance]))

    async def terminate(self, instance: str) -> None:
        """Has EC2 terminate an instance; a group that it belongs to starts another. Asking twice changes nothing."""
        await _call("TerminateInstances", lambda: self._calls.terminate_instances(InstanceIds=[instance]))

    async def missing_rights(self, instance: str, actions: Iterable[str]) -> list[str]:
        """The actions that a dry run reports as not allowed (on the instance). Raises Ec2Error."""
        dry_runs = {
            "DescribeInstanceStatus": lambda: self._calls.describe_instance_status(DryRun=True),
            "DescribeInstanceTopology": lambda: self._calls.describe_instance_topology(DryRun=True),
            "RebootInstances": lambda: self._calls.reboot_instances(InstanceIds=[instance], DryRun=True),
            "TerminateInstances": lambda: self._calls.terminate_instances(InstanceIds=[instance], DryRun=True),
        }
        missing: list[str] = []
        for action in actions:
            try:
                await _call(action, dry_runs[action])
            except Ec2Refused as error:
                if error.code == "UnauthorizedOperation":
                    missing.append(f"ec2:{action}")
                elif error.code != "DryRunOperation":  # that word means: it would have been done
                    raise
        return missing

    async def _known(self, action: str, answers: str, instances: Sequence[str]) -> list[Mapping[str, Any]]:
        """The answer without unknown instances: EC2 refuses the whole call for one of them."""
        asked = list(instances)
        while asked:
            try:
                return await self._pages(action, answers, asked)
            except Ec2Refused as error:
                unknown = set(_ID.findall(str(error))) & set(asked)
                if not error.code.startswith("InvalidInstanceID") or not unknown:
                    raise
                asked = [instance for instance in asked if instance not in unknown]
        return []

    async def _pages(self, action: str, answers: str, instances: list[str]) -> list[Mapping[str, Any]]:
        send, more = {
            "DescribeInstanceStatus": (self._calls.describe_instance_status, {"IncludeAllInstances": True}),
            "DescribeInstanceTopology": (self._calls.describe_instance_topology, {}),
        }[action]
        elements: list[Mapping[str, Any]] = []
        asked: dict[str, Any] = {"InstanceIds": instances, **more}
        while True:
            answer = await _call(action, lambda asked=asked: send(**asked))
            elements += answer.get(answers) or []
            if not answer.get("NextToken"):
                return elements
            asked = {**asked, "NextToken": answer["NextToken"]}


async def _call(action: str, send: Callable[[], T]) -> T:
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await asyncio.to_thread(send)
    except exceptions.ClientError as error:
        answer: Mapping[str, Any] = cast(Mapping[str, Any], error.response)
        code = str(answer.get("Error", {}).get("Code", ""))
        if error.operation_name != action:  # STS gives no credentials for the role
            raise Ec2NotAsked(f"{action}: {error}. {_ROLE}") from error
        message = f"{action}: {code}: {answer.get('Error', {}).get('Message', '')}"
        if int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500 and code not in _NOT_DONE:
            raise Ec2Unknown(message) from error
        if code == "UnauthorizedOperation":
            message = f"{message} {_ROLE}"
        raise Ec2Refused(message, code) from error
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.CredentialRetrievalError) as error:
        raise Ec2NotAsked(f"{action}: {_NO_CREDENTIALS} ({error})") from error
    except (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyConnectionError) as error:
        raise Ec2NotAsked(f"{action}: {error}") from error
    except (exceptions.BotoCoreError, ResponseParserError, TimeoutError, OSError) as error:
        raise Ec2Unknown(f"{action}: {error or 'no answer in time'}") from error
