"""Data as YAML that reads well: one line for what fits in one, lists of words filled up, texts of several lines as literal blocks."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml

WIDTH = 140
FILLED = ("args", "command", "env", "volumeMounts", "volumes")
"""Keys whose lists fill lines, whatever their items are."""
ENDLESS = 1_000_000


class _Dumper(yaml.SafeDumper):
    """Breaks lines between the items of a list, never within a text."""

    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: everything is written where it stands."""
        return True

    def expect_first_flow_mapping_key(self) -> None:
        """No break after a brace."""
        width, self.best_width = self.best_width, ENDLESS
        super().expect_first_flow_mapping_key()
        self.best_width = width

    def expect_first_flow_sequence_item(self) -> None:
        """No break after a bracket."""
        width, self.best_width = self.best_width, ENDLESS
        super().expect_first_flow_sequence_item()
        self.best_width = width

    def write_plain(self, text: str, split: bool = True) -> None:
        """A text without quotes."""
        super().write_plain(text, split=False)

    def write_single_quoted(self, text: str, split: bool = True) -> None:
        """A text in quotes."""
        super().write_single_quoted(text, split=False)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        """A text with escapes."""
        super().write_double_quoted(text, split=False)


_REPRESENTER = yaml.representer.SafeRepresenter()


def yaml_of(value: Any) -> str:
    """The YAML of a value, its keys in the order that they have."""
    return str(cast(Any, yaml).serialize(_node(value, 0, 0), Dumper=_Dumper, width=WIDTH - 25, allow_unicode=True))


def _node(value: Any, indent: int, used: int, fill: bool = False) -> yaml.Node:
    """The node of a value whose block is indented so far, and before which a key or a dash takes a part of the line."""
    fits = _length(value) <= WIDTH - indent - used
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value).items()
        pairs = [
            (_scalar(key), _node(inner, indent + 2, len(str(key)) + 2, fill or (key in FILLED and isinstance(inner, list))))
            for key, inner in items
        ]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=fits or (fill and _length(value) < ENDLESS))
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast(Sequence[Any], value)
        is_filled = (fill or all(_is_word(item) for item in items)) and _length(items) < ENDLESS
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_node(item, indent, 2, fill) for item in items], flow_style=fits or is_filled)
    return _scalar(value)


def _scalar(value: Any) -> yaml.Node:
    scalar: Any = cast(Any, _REPRESENTER).represent_data(value)
    if isinstance(value, str) and "\n" in value:
        scalar.style = "|"
    return scalar


def _is_word(value: Any) -> bool:
    return not isinstance(value, Mapping | list) and _length(value) <= WIDTH // 2


def _length(value: Any) -> int:
    """How many columns a value takes in one line; more than there are if it cannot stand in one."""
    if isinstance(value, Mapping):
        return sum(_length(key) + _length(inner) + 4 for key, inner in cast(Mapping[str, Any], value).items()) + 2
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sum(_length(item) + 2 for item in cast(Sequence[Any], value)) + 2
    text = str(value)
    return ENDLESS if "\n" in text else len(text)
