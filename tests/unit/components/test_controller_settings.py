"""Settings of a node set that the controller decides by: spelled in the model, found in the object and in the schema of its kind."""

from collections.abc import Iterator
from typing import Any

from components.controller_settings import add_missing_fields, controller_settings, settings_schema
from components.kinds import build_crds
from configs.models.node_set import Remedies
from tests.support.components.stacks import DEV

SPEC = build_crds("dev")[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema["properties"].items():
        yield from leaves(field, f"{path}.{name}") if "properties" in field else [(f"{path}.{name}", field)]


def test_kind_takes_every_value_that_the_model_takes() -> None:
    kind = dict(leaves({"properties": {name: SPEC["properties"][name] for name in settings_schema()["properties"]}}))
    model = dict(leaves(settings_schema()))
    assert kind.keys() == model.keys()
    words = ("type", "enum", "default", "x-kubernetes-int-or-string")
    assert [{word: kind[path].get(word) for word in words} for path in model] == [
        {word: field.get(word) for word in words} for field in model.values()
    ]


def test_kind_has_every_key_of_a_part_that_may_be_left_out() -> None:
    every = Remedies(steps=("ReplaceMachine",), confirmed_by="disk", machines="Webhook", webhook="https://repairs.example/x")
    assert set(Remedies.model_fields) == every.model_dump(exclude_none=True).keys()
    settings = controller_settings(DEV.node_sets[0].model_copy(update={"remedies": every}))
    kind = SPEC["properties"]["remedies"]["properties"]
    assert kind.keys() == settings["remedies"].keys()
    defaults = controller_settings(DEV.node_sets[0].model_copy(update={"remedies": Remedies(steps=("RecreatePod",))}))["remedies"]
    said = {name: field["default"] for name, field in kind.items() if "default" in field}
    assert said == {name: defaults[name] for name in said}


def test_field_that_only_the_model_spells_is_in_the_kind_with_its_limits() -> None:
    schema: dict[str, Any] = {
        "properties": {"drain": {"type": "object", "description": "ours", "properties": {"action": {"type": "string"}}}}
    }
    add_missing_fields(schema, settings_schema())
    assert schema["properties"]["drain"]["description"] == "ours"
    assert schema["properties"]["drain"]["properties"]["action"] == {"type": "string"}
    assert schema["properties"]["drain"]["properties"]["deadlineSeconds"]["type"] == "integer"
    limits = schema["properties"]["maxPodsInFlight"]
    assert (limits["type"], limits["minimum"], limits["maximum"], limits["default"]) == ("integer", 1, 65536, 500)


def test_every_setting_has_a_type_as_the_api_server_wants() -> None:
    for path, field in leaves(settings_schema()):
        is_plain = field.get("type") in ("integer", "string", "boolean")
        assert is_plain or field.get("x-kubernetes-int-or-string"), path
