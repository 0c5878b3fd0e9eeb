"""Which kinds the API server knows. A stand-in script prints what the real kubectl does; tests/apiserver has the real one."""

from pathlib import Path

import pytest

from standalone import kinds
from standalone.faults import StandaloneError
from standalone.kubectl import Kubectl
from standalone.render import Sort

LISTED = """\
configmaps            cm      v1                     true    ConfigMap
deployments           deploy  apps/v1                true    Deployment
nodesets              nset    slipway.dev/v1alpha1   true    NodeSet
widgets                       example.com/v1         false   Widget
"""
OURS, THEIRS, OTHER = Sort("slipway.dev", "NodeSet"), Sort("example.com", "Widget"), Sort("example.com", "Gadget")


def kubectl(folder: Path, listed: str, code: int = 0) -> Kubectl:
    (folder / "listed").write_text(listed)
    program = folder / "kubectl"
    program.write_text(
        f"#!/bin/sh\necho called >>{folder}/calls\ncat {folder}/listed\n[ {code} = 0 ] || echo 'no answer' >&2\nexit {code}\n"
    )
    program.chmod(0o755)
    return Kubectl(str(program), None, None)


@pytest.mark.parametrize("code", [pytest.param(0, id="all-answer"), pytest.param(1, id="another-api-does-not-answer")])
def test_kinds_that_the_server_does_not_list_are_unserved(tmp_path: Path, code: int) -> None:
    assert kinds.unserved(kubectl(tmp_path, LISTED, code), [OURS, THEIRS, OTHER, Sort("", "ConfigMap")]) == {OTHER}


def test_kind_of_the_same_name_in_another_group_is_another(tmp_path: Path) -> None:
    assert kinds.unserved(kubectl(tmp_path, LISTED), [Sort("other.dev", "NodeSet")]) == {Sort("other.dev", "NodeSet")}


def test_server_is_not_asked_about_kubernetes_own_kinds(tmp_path: Path) -> None:
    assert kinds.unserved(kubectl(tmp_path, ""), [Sort("apps", "Deployment"), Sort("rbac.authorization.k8s.io", "Role")]) == set()
    assert not (tmp_path / "calls").exists()


def test_silence_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(StandaloneError, match="no answer"):
        kinds.unserved(kubectl(tmp_path, "", 1), [OURS])


def test_kinds_of_an_applyset_are_read_back() -> None:
    assert [kinds.sort_of(str(one)) for one in (OURS, Sort("", "ConfigMap"))] == [OURS, Sort("", "ConfigMap")]
