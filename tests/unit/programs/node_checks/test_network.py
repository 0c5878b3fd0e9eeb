"""What the check of ports and bonds makes of trees as sysfs and /proc have them."""

from pathlib import Path
from typing import Any

import pytest

from programs.node_checks import network
from programs.node_checks.kinds import KINDS
from tests.unit.programs.node_checks.trees import write

NETWORK = {**KINDS["network"].limits, "efaDevices": 0}


FINE = ("passed", "1 of 1 ports are up")
HARDWARE = {
    "rx_icrc_encapsulated": "maxIcrcErrors",
    "out_of_sequence": "maxSequenceErrors",
    "packet_seq_err": "maxSequenceErrors",
    "local_ack_timeout_err": "maxAckTimeouts",
    "rx_drops": "maxDrops",
    "retrans_timeout_events": "maxRetransmitTimeouts",
    "unresponsive_remote_events": "maxRemoteFaults",
    "impaired_remote_conn_events": "maxRemoteFaults",
}


def port(
    name: str, state: str = "ACTIVE", physical: str = "LinkUp", rate: float = 400, is_efa: bool = False, **counters: int
) -> network.Port:
    return network.Port(f"{name}/1", "MT_0000000838", is_efa, state, physical, rate, counters)


@pytest.mark.parametrize(
    ("ports", "growth", "settings", "answer"),
    [
        pytest.param([], {}, NETWORK, ("skipped", "no InfiniBand, RoCE or EFA port is here, and no bond"), id="nothing-here"),
        pytest.param([], {}, {**NETWORK, "minPorts": 8}, ("failed", "0 ports are up, 8 wanted"), id="nothing-where-ports-are-wanted"),
        pytest.param([port("mlx5_0"), port("mlx5_1")], {}, NETWORK, ("passed", "2 of 2 ports are up"), id="fine"),
        pytest.param([port("mlx5_0")], None, NETWORK, ("passed", "1 of 1 ports are up, their errors are not judged"), id="as-a-job"),
        pytest.param(
            [port("mlx5_0"), port("mlx5_1", "DOWN", "Polling")], {}, NETWORK, ("failed", "port mlx5_1/1 is DOWN (Polling)"), id="unplugged"
        ),
        pytest.param([port("mlx5_0"), port("mlx5_1", "DOWN", "Disabled")], {}, NETWORK, ("passed", "1 of 1 ports are up"), id="off"),
        pytest.param(
            [port("mlx5_0"), port("mlx5_1", "DOWN", "Polling")],
            {},
            {**NETWORK, "maxPortsDown": 1},
            ("passed", "1 of 2 ports are up"),
            id="may-be-down",
        ),
        pytest.param(
            [port("mlx5_0"), port("mlx5_1", rate=200)],
            {},
            NETWORK,
            ("failed", "port mlx5_1/1 has 200 Gbit/s, 400 wanted"),
            id="slower-than-its-like",
        ),
        pytest.param(
            [port("mlx5_0", rate=200)],
            {},
            {**NETWORK, "minRateGbps": 400},
            ("failed", "port mlx5_0/1 has 200 Gbit/s, 400 wanted"),
            id="slower-than-declared",
        ),
        pytest.param(
            [port("mlx5_0")],
            {"mlx5_0/1": {"link_downed": 4, "symbol_error": 101}},
            NETWORK,
            (
                "failed",
                "port mlx5_0/1 lost its link more than 3 times in 3600 s; port mlx5_0/1 had symbol errors more than 100 times in 3600 s",
            ),
            id="flaps",
        ),
        *(
            pytest.param(
                [port("mlx5_0")],
                {"mlx5_0/1": {counter: 101}},
                {**NETWORK, limit: 100},
                ("failed", f"port mlx5_0/1 counted {counter} more than 100 times in 3600 s"),
                id=counter,
            )
            for counter, limit in HARDWARE.items()
        ),
        *(
            pytest.param([port("mlx5_0")], {"mlx5_0/1": {counter: 100}}, {**NETWORK, limit: 100}, FINE, id=f"{counter}-as-often-as-may-be")
            for counter, limit in HARDWARE.items()
        ),
        *(
            pytest.param([port("mlx5_0")], {"mlx5_0/1": {counter: 10**9}}, {**NETWORK, limit: 0}, FINE, id=f"{counter}-without-a-limit")
            for counter, limit in HARDWARE.items()
            if limit != "maxIcrcErrors"
        ),
        pytest.param(
            [port("mlx5_0")],
            {"mlx5_0/1": {"rx_icrc_encapsulated": 1}},
            {**NETWORK, "maxIcrcErrors": 0},
            ("failed", "port mlx5_0/1 counted rx_icrc_encapsulated more than 0 times in 3600 s"),
            id="no-damaged-packet-is-allowed",
        ),
        pytest.param(
            [port("mlx5_0")],
            {"mlx5_0/1": {"out_of_sequence": 10**9, "local_ack_timeout_err": 10_000}},
            NETWORK,
            FINE,
            id="fabric-that-loses-packets",
        ),
        pytest.param(
            [port("rdmap0s6", is_efa=True)], {}, {**NETWORK, "efaDevices": 2}, ("failed", "1 EFA devices, 2 declared"), id="efa-missing"
        ),
    ],
)
def test_network(
    ports: list[network.Port], growth: dict[str, dict[str, int]] | None, settings: dict[str, Any], answer: tuple[str, str]
) -> None:
    assert network.judge(ports, growth, settings) == answer


def test_ports_are_read_from_the_kernel(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "mlx5_0/board_id": "MT_0000000838",
            "mlx5_0/ports/1/state": "4: ACTIVE",
            "mlx5_0/ports/1/phys_state": "5: LinkUp",
            "mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
            "mlx5_0/ports/1/counters/link_downed": "2",
            "mlx5_0/ports/1/counters/symbol_error": "0",
            "rdmap0s6/ports/1/state": "1: DOWN",
            "rdmap0s6/ports/1/phys_state": "3: Disabled",
            "rdmap0s6/ports/1/rate": "100 Gb/sec (4X EDR)",
            "drivers/efa/x": "",
            "rdmap0s6/device/x": "",
        },
    )
    (tmp_path / "rdmap0s6/device/driver").symlink_to(tmp_path / "drivers/efa")
    assert network.read_ports(tmp_path) == [
        network.Port("mlx5_0/1", "MT_0000000838", False, "ACTIVE", "LinkUp", 400, {"link_downed": 2, "symbol_error": 0}),
        network.Port("rdmap0s6/1", "", True, "DOWN", "Disabled", 100, {}),
    ]
    assert network.read_ports(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("link_layer", "driver", "counters"),
    [
        pytest.param("InfiniBand", "mlx5_core", {}, id="infiniband"),
        pytest.param("Ethernet", "mlx5_core", {"rx_icrc_encapsulated": 4, "out_of_sequence": 5}, id="roce"),
        pytest.param("Unspecified", "efa", {"rx_drops": 6}, id="efa"),
    ],
)
def test_hardware_counters_are_those_of_the_kind_of_port(link_layer: str, driver: str, counters: dict[str, int], tmp_path: Path) -> None:
    found = {"rx_icrc_encapsulated": "4", "out_of_sequence": "5", "packet_seq_err": "", "np_cnp_sent": "7", "rx_drops": "6"}
    write(
        tmp_path,
        {
            "card0/ports/1/link_layer": link_layer,
            "card0/ports/1/state": "4: ACTIVE",
            "card0/ports/1/phys_state": "5: LinkUp",
            "card0/ports/1/rate": "400 Gb/sec (4X NDR)",
            **{f"card0/ports/1/hw_counters/{name}": text for name, text in found.items()},
            f"drivers/{driver}/x": "",
            "card0/device/x": "",
        },
    )
    (tmp_path / "card0/device/driver").symlink_to(tmp_path / "drivers" / driver)
    [seen] = network.read_ports(tmp_path)
    assert seen.counters == counters


def bonded(folder: Path, aggregator: str = "", bond: str = "up", **cards: tuple[str, str]) -> list[network.Bond]:
    """A bond as sysfs has it: the cards with their MII status, and the aggregator that LACP has put each into."""
    files = {"bond0/bonding/slaves": " ".join(cards), "bond0/bonding/mii_status": bond, "bond0/bonding/mode": "802.3ad 4"}
    files |= {"bond0/bonding/ad_aggregator": aggregator} if aggregator else {}
    for name, (status, own) in cards.items():
        files |= {f"{name}/bonding_slave/mii_status": status, f"{name}/bonding_slave/ad_aggregator_id": own}
    write(folder, files)
    return network.read_bonds(folder)


@pytest.mark.parametrize(
    ("aggregator", "bond", "cards", "limits", "answer"),
    [
        pytest.param(
            "1", "up", {"eth0": ("up", "1"), "eth1": ("up", "1")}, {"minBondPorts": 2}, ("passed", "bond0 has 2 of 2 ports up"), id="whole"
        ),
        pytest.param("", "up", {"eth0": ("up", ""), "eth1": ("down", "")}, {}, ("failed", "bond0: eth1 is down"), id="cable-is-out"),
        pytest.param(
            "",
            "up",
            {"eth0": ("up", ""), "eth1": ("down", "")},
            {"maxBondPortsDown": 1},
            ("passed", "bond0 has 1 of 2 ports up"),
            id="may-be-down",
        ),
        pytest.param(
            "2",
            "up",
            {"eth0": ("up", "2"), "eth1": ("up", "1")},
            {},
            ("failed", "bond0: eth1 is left out by LACP"),
            id="up-and-not-in-the-bond",
        ),
        pytest.param(
            "",
            "down",
            {"eth0": ("down", "")},
            {"minBondPorts": 2},
            ("failed", "bond0 is down; bond0: eth0 is down; bond0 has 0 ports up, 2 wanted"),
            id="all-is-down",
        ),
        pytest.param(
            "", "up", {"eth0": ("up", "")}, {"minBondPorts": 2}, ("failed", "bond0 has 1 ports up, 2 wanted"), id="card-is-not-in-it"
        ),
        pytest.param("", "up", {"eth0": ("going back", "")}, {}, ("failed", "bond0: eth0 is going back"), id="other-states"),
        pytest.param("", "down", {}, {}, ("skipped", "no InfiniBand, RoCE or EFA port is here, and no bond"), id="empty-bond"),
        pytest.param("", "down", {}, {"minBondPorts": 2}, ("failed", "no bond is here, one with 2 ports wanted"), id="none-and-one-wanted"),
    ],
)
def test_bond(
    aggregator: str, bond: str, cards: dict[str, tuple[str, str]], limits: dict[str, int], answer: tuple[str, str], tmp_path: Path
) -> None:
    assert network.judge([], {}, {**NETWORK, **limits}, bonded(tmp_path, aggregator, bond, **cards)) == answer


def test_errors_count_in_a_window_and_a_reset_counter_starts_at_zero() -> None:
    growth, kept = network.grown({}, [port("mlx5_0", link_downed=7)], 100, 3600)  # also soon after 1970
    assert growth == {"mlx5_0/1": {"link_downed": 0}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=9)], 200, 3600)
    assert growth == {"mlx5_0/1": {"link_downed": 2}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=1)], 300, 3600)
    assert growth == {"mlx5_0/1": {"link_downed": 0}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=5)], 400, 3600)
    assert growth == {"mlx5_0/1": {"link_downed": 4}}
    growth, kept = network.grown(kept, [port("mlx5_0", link_downed=5)], 3701, 3600)
    assert (growth, kept["at"]) == ({"mlx5_0/1": {"link_downed": 0}}, 3701)
