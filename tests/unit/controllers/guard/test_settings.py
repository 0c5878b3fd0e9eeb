"""The environment of the guard: every fault at once."""

import pytest

from controllers.guard.settings import Settings, read_settings
from controllers.runtime.environment import SettingsError

WHOLE = {"SLIPWAY_CLUSTER": "dev", "SLIPWAY_NAMESPACE": "slurm", "POD_NAME": "guard-0"}


def test_settings_are_read() -> None:
    assert read_settings(WHOLE) == Settings(cluster="dev", namespace="slurm", identity="guard-0", port=8080)
    other = read_settings({**WHOLE, "SLIPWAY_PORT": "9090", "SLIPWAY_PROBE_PORT": "9091"})
    assert (other.port, other.probe_port) == (9090, 9091)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"SLIPWAY_NAMESPACE": "", "SLIPWAY_PORT": "http"})
    assert [line.split()[0] for line in str(caught.value).splitlines()] == [*WHOLE, "SLIPWAY_PORT"]


@pytest.mark.parametrize("port", ["", "-1", "80.0", "http"])
def test_port_that_is_no_number_is_a_fault(port: str) -> None:
    with pytest.raises(SettingsError, match="SLIPWAY_PORT"):
        read_settings({**WHOLE, "SLIPWAY_PORT": port})
