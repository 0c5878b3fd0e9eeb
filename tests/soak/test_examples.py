"""The parts of docs/use/first-day.md that need large packages, which pip fetches: PyTorch on CPUs over two nodes, and JupyterLab.

Quick: tests/cluster/test_examples.py, which trains in NumPy.
"""

import re

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.guides import follow, number
from tests.support.soak.examples import notebook, training

FETCH_S = 1200


@pytest.fixture
def home(stack: DevStack) -> str:
    stack.ssh("rm -rf examples && cp -r /usr/share/slipway/examples examples")
    return "examples"


def test_pytorch_trains_over_two_nodes_under_torchrun(stack: DevStack, home: str) -> None:
    fetch, train = training()
    stack.ssh(fetch, timeout_s=FETCH_S)
    stack.ssh(f"cd {home}/training && {train.replace('sbatch', 'sbatch --wait --mem=1500M')}", timeout_s=FETCH_S)
    ranks = re.findall(r"^rank (\d) of 4 on (\S+): off by (\S+)$", stack.ssh(f"cat {home}/training/torch.out"), re.MULTILINE)
    assert sorted(rank for rank, _, _ in ranks) == ["0", "1", "2", "3"]
    assert len({node for _, node, _ in ranks}) == 2
    assert all(float(off) < 1e-3 for _, _, off in ranks)


def test_notebook_answers_whoever_has_its_token(stack: DevStack, home: str) -> None:
    fetch, *begin = notebook()
    stack.ssh(fetch, timeout_s=FETCH_S)
    job = number(follow(stack, begin, {}, state="RUNNING")["sbatch notebook.sh"])
    try:
        eventually("its address", lambda: "token=" in stack.ssh(f"cat {home}/jupyter/notebook.out"), 60)
        said = stack.ssh(f"cat {home}/jupyter/notebook.out")
        target, token = re.findall(r"8888:(\S+:\d+)", said)[0], re.findall(r"token=(\S+)", said)[0]
        ask = "curl --silent --output /dev/null --write-out '%{http_code}' http://{}/api/contents{}; true"
        eventually("an answer", lambda: stack.ssh(ask.replace("{}/api", f"{target}/api").replace("{}", f"?token={token}")) == "200", 180)
        assert stack.ssh(ask.replace("{}/api", f"{target}/api").replace("{}", "")) == "403"
        commands = stack.ssh(f"srun --overlap --jobid={job} ps -ww -eo args")
        assert "jupyter" in commands
        assert token not in commands
    finally:
        stack.ssh(f"scancel {job}")
