"""Reboots and replaces machines: by deleting their Kubernetes nodes, by our program for EC2, or by a program of the user's. Thin.

A request may be sent twice with the same `id`, as a process may end before it notes the first answer.
"""

import httpx2
import msgspec

from controllers.nodeset.settings import Ec2Program
from controllers.runtime.errors import Refused, Unreachable
from controllers.runtime.step_request import StepRequest
from controllers.runtime.structs import KUBE_NODES
from controllers.runtime.writer import Deletion, Writer

DEADLINE_S = 10.0
"""Seconds within which a webhook must accept a step."""


async def delete_node(writer: Writer, name: str, uid: str) -> None:
    """Deletes the Kubernetes node of that name and uid, for the cloud to replace its machine. Karpenter ends the machine of a deleted node.

    Raises ApiError; NotFound and Conflict where the node is another by now.
    """
    await writer.delete(KUBE_NODES, Deletion(("", name), uid))


async def post_to_ec2(program: Ec2Program | None, request: StepRequest) -> None:
    """Has our program for EC2 take the step. Raises Unreachable, and Refused, also if this cluster has no such program."""
    if program is None:
        raise Refused("machines: EC2 needs cluster.ec2 in the stack file")
    try:
        token = program.token.read_text().strip()
    except OSError as error:
        raise Refused(f"the token for the EC2 program cannot be read yet: {error}") from error
    await post(program.url, request, {"Authorization": f"Bearer {token}"})


async def post(url: str, request: StepRequest, headers: dict[str, str] | None = None) -> None:
    """Has another program take the step. Raises Refused for an answer other than 2xx, Unreachable without one."""
    try:
        async with httpx2.AsyncClient(timeout=DEADLINE_S) as session:
            response = await session.post(url, json=msgspec.to_builtins(request), headers=headers)
    except (httpx2.HTTPError, OSError) as error:
        raise Unreachable(f"webhook {url}: {type(error).__name__} {error}".rstrip()) from error
    if not 200 <= response.status_code < 300:
        raise Refused(f"webhook {url} answered {response.status_code}: {response.text[:200]}", response.status_code)
