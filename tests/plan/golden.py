"""A recorded plan as files that read like code: `<Kind>.yaml` for each kind, and `common.yaml` for what the kinds share.

Every change of the plan changes a file. What repeats is folded:

- A file begins with `most objects`: what more than half of its objects have in common. Each object shows what differs from that, and
  `<none>` for a key that it lacks. `most metadata` and `most pods` are the same for these parts, and `common.yaml` has it for the parts of
  all kinds: `metadata`, `pod`, `container`, the `containers` of one name, and the `panels` of dashboards of one type.
- A volume, mount, variable or port of `common.yaml` is listed by its name alone, and with its content where that is another one.
- `pulumi` has the options of a resource: dependencies, parent, aliases and others. URNs are written `Kind name`, and `all of Kind name`
  for all resources in a component.
  `not` stands before a dependency that only most objects have; a list that begins with `only` stands alone.
- Left out is what follows from the rest: a `metadata.name` that is the resource's, the type of a Kubernetes object, the resource's own URN,
  and in its aliases all but the type.
- `<own labels>` are the labels of the object, `<own pods>` those that select its pods, `<pods of login>` those of another component, and
  `<pod>` is the pod template.
- Copies of files in this repository are listed by folder. Settings and files in JSON or YAML are data. Of a secret there is its name.
- `<content>` and `<content-tag>` stand for hashes in names and the tags of images, which differ between builds.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from tests.plan.folding import Part, fold, fold_list, named, prototype, prototypes_by_name
from tests.plan.golden_files import files_by_folder, like_a_kind, parsed_words
from tests.plan.golden_yaml import yaml_of

_T = TypeVar("_T")
LISTS = ("env", "ports", "volumeMounts", "volumes")
CONTAINERS = ("initContainers", "containers")
PARTS = ("metadata", "pod")
"""Parts of an object that have prototypes of their own."""
SECRET = "[secret]"
GENERATED = "<generated>"
"""Instead of a name that Pulumi makes up."""
COMPONENT = "app.kubernetes.io/component"
SELECTING = (COMPONENT, "app.kubernetes.io/instance", "app.kubernetes.io/name")


def render(plan: Mapping[str, Any]) -> dict[str, str]:
    """The files of a plan's JSON, by name."""
    names = References(plan)
    objects = [object_of(each, names) for each in plan["resources"]]
    folds = folds_of(objects)
    files: dict[str, Part] = {}
    for each in sorted(objects, key=lambda each: (each.group, each.name)):
        start = {
            "most objects": _with_members(folds.groups[each.group], {}),
            "most metadata": fold(folds.metadata_of.get(each.group, folds.metadata), folds.metadata),
            "most pods": fold(folds.pods.get(each.group, folds.pod), folds.pod),
        }
        content = files.setdefault(each.group, {key: value for key, value in start.items() if value})
        assert each.name not in content, f"two resources {each.group} {each.name}"
        content[each.name] = fold_object(each, folds)
    about = {key: plan[key] for key in ("project", "stack", "outputs")}
    containers = {name: fold(each, folds.container) for name, each in folds.containers.items() if each != folds.container}
    shared = {"metadata": folds.metadata, "pod": folds.pod, "container": folds.container, "containers": containers, "panels": folds.panels}
    return {f"{name}.yaml": yaml_of(content) for name, content in (files | {"common": about | shared | folds.lists}).items()}


@dataclass(frozen=True)
class Object:
    """A resource as it is shown, before it is folded."""

    group: str
    """The file that it is in."""
    name: str
    """Its own, or its URN where the plan has two resources of its kind and name."""
    shown: Part


class References:
    """Short names for the URNs of a plan."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.start = f"urn:pulumi:{plan['stack']}::{plan['project']}::"
        self.stack: str = plan["stack"]
        resources: list[Part] = plan["resources"]
        names = Counter(map(self._name, resources))
        self.names = {each["urn"]: name for each in resources if names[name := self._name(each)] == 1}
        self.types = {each["urn"]: each["urn"].removeprefix(self.start).partition("::")[0] for each in resources}
        self.members: dict[str, set[str]] = {}
        for each in resources:
            if each["custom"] and each.get("parent") in self.names:
                self.members.setdefault(each["parent"], set()).add(each["urn"])

    @staticmethod
    def _name(resource: Part) -> str:
        return f"{'' if resource['custom'] else 'all of '}{resource['type'].rpartition(':')[2]} {resource['name']}"

    def name(self, urn: Any) -> Any:
        """A resource's name, or what was given if it is not exactly one resource of the plan."""
        return self.names.get(urn, urn) if isinstance(urn, str) else urn

    def set_of(self, urns: Iterable[str]) -> Part:
        """Names of resources, as keys: sets are compared member by member."""
        left = set(urns)
        whole = [parent for parent, members in self.members.items() if len(members) > 1 and members <= left]
        left = left.difference(*(self.members[parent] for parent in whole))
        return dict.fromkeys(sorted(map(self.name, (*left, *whole))), True)

    def urn(self, resource: Part) -> str:
        """The URN that a resource has by its parent, type and name."""
        return f"{self._around(resource)}{resource['type']}::{resource['name']}"

    def _around(self, resource: Part) -> str:
        parent = resource.get("parent")
        return f"{self.start}{self.types[parent]}$" if parent in self.types else self.start

    def alias(self, urn: str, resource: Part) -> str:
        """The type alone, of a URN that differs from the resource's in nothing else."""
        around, name = self._around(resource), f"::{resource['name']}"
        is_near = urn.startswith(around) and urn.endswith(name)
        return urn.removeprefix(around).removesuffix(name) if is_near else urn


def object_of(resource: Part, names: References) -> Object:
    """A resource as it is shown."""
    shown: Part = dict(resource["inputs"])
    tail = resource["type"].rpartition(":")[2]
    if tail == "ConfigMap" and "data" in shown:
        shown["data"] = files_by_folder(shown["data"], names.stack)
    elif tail == "Secret" and "data" in shown:
        hidden = sorted(key for key, value in shown["data"].items() if value == SECRET)
        shown["data"] = {SECRET: hidden, **{key: value for key, value in shown["data"].items() if value != SECRET}}
    elif tail == "CustomResourceDefinition":
        shown["spec"] = like_a_kind(shown["spec"])
    if "metadata" in shown:
        metadata = shown["metadata"]
        shown = _with_pod({key: _short_labels(value, metadata.get("labels", {})) for key, value in shown.items() if key != "metadata"})
        shown["metadata"] = metadata
    shown["pulumi"] = _pulumi(resource, names)
    is_provider = resource["type"].startswith("pulumi:providers:")
    group = "Component" if not resource["custom"] else "Provider" if is_provider else tail
    shown = _without_builds(shown)
    name = _without_builds(resource["name"] if resource["urn"] in names.names else resource["urn"])
    if "metadata" in shown and shown["metadata"].setdefault("name", GENERATED) == name:
        del shown["metadata"]["name"]
    return Object(group, name, shown)


def _pulumi(resource: Part, names: References) -> Part:
    """The options of a resource, without its inputs."""
    inputs = resource["inputs"]
    about = {
        "type": resource["type"] if resource["type"] != _type(inputs) else "",
        "urn": resource["urn"] if resource["urn"] != names.urn(resource) else "",
        "parent": names.name(resource.get("parent", "")).removeprefix("all of "),
        "options": {key: names.name(value) for key, value in resource.get("options", {}).items()},
        "aliases": [names.alias(urn, resource) for urn in resource.get("aliases", [])],
        "dependencies": names.set_of(resource.get("dependencies", [])),
    }
    rest = {key: value for key, value in resource.items() if key not in {*about, "inputs", "name", "custom"}}
    return {key: value for key, value in about.items() if value} | rest


def _type(inputs: Part) -> str:
    """The type of a Kubernetes object."""
    version = str(inputs.get("apiVersion", ""))
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{inputs.get('kind', '')}"


def _without_builds(shown: Any) -> Any:
    """Without what differs between builds: tags of images, and hashes of content in names."""
    text = json.dumps(shown, ensure_ascii=False)
    text = re.sub(r"(localhost/slipway/[a-z-]+):[0-9a-f]{8,}", r"\1:<content-tag>", text)
    # A version of the root is called after the image's tag unless the stack file names it.
    text = re.sub(r'(SLIPWAY_ROOT_VERSIONS?", "value": )"[0-9a-f]{12}"', r'\1"<content-tag>"', text)
    return json.loads(re.sub(r"-[0-9a-f]{10}(?=[\"$])", "-<content>", text))


def _short_labels(value: Any, own: Part) -> Any:
    """A value below an object, with names for labels that select pods, and for the object's own labels."""
    if isinstance(value, list):
        return [_short_labels(item, own) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    return {
        key: _name_of_labels(inner, own) if key in {"labels", "matchLabels", "selector"} else _short_labels(inner, own)
        for key, inner in cast(Part, value).items()
    }


def _name_of_labels(labels: Any, own: Part) -> Any:
    if not isinstance(labels, dict) or not labels:
        return cast(Any, labels)
    if labels == own:
        return "<own labels>"
    selecting = {key: own[key] for key in SELECTING if key in own}
    if labels == selecting:
        return "<own pods>"
    if set(cast(Part, labels)) == set(SELECTING) and labels == selecting | {COMPONENT: labels[COMPONENT]}:
        return f"<pods of {labels[COMPONENT]}>"
    return _short_labels(cast(Part, labels), own)


def _with_pod(shown: Part) -> Part:
    """An object whose pod template, if it has one, stands under `pod`, its metadata beside its spec."""
    spec: Part = shown.get("spec", {})
    job: Part = spec.get("jobTemplate", {}).get("spec", {})
    template: Part = job.get("template") or spec.get("template") or {}
    if "containers" not in template.get("spec", {}):
        return shown
    pod: Part = {**template["spec"], **{key: value for key, value in template.items() if key != "spec"}}
    pod |= {key: [_with_settings(each) for each in pod[key]] for key in CONTAINERS if key in pod}
    rest = {"jobTemplate": {**spec["jobTemplate"], "spec": {**job, "template": "<pod>"}}} if job else {"template": "<pod>"}
    return {**shown, "spec": spec | rest, "pod": pod}


def _with_settings(container: Part) -> Part:
    """A container whose settings in its command are data."""
    return {key: parsed_words(value) if key in {"command", "args"} else value for key, value in container.items()}


@dataclass(frozen=True)
class Folds:
    """The prototypes of a plan's parts: of all parts of a sort, and of those in one file or with one name."""

    lists: dict[str, dict[str, Any]]
    container: Part
    containers: dict[str, Part]
    pod: Part = field(default_factory=dict[str, Any])
    pods: dict[str, Part] = field(default_factory=dict[str, Part])
    metadata: Part = field(default_factory=dict[str, Any])
    metadata_of: dict[str, Part] = field(default_factory=dict[str, Part])
    panels: dict[str, Part] = field(default_factory=dict[str, Part])
    groups: dict[str, Part] = field(default_factory=dict[str, Part])


def folds_of(objects: list[Object]) -> Folds:
    """What the objects of a plan share, from the smallest parts to the largest."""
    pods = [(each.group, each.shown["pod"]) for each in objects if "pod" in each.shown]
    containers = [container for _, pod in pods for key in CONTAINERS for container in pod.get(key, [])]
    holders = [*containers, *(pod for _, pod in pods)]
    lists = {key: prototypes_by_name(named(item) for holder in holders for item in holder.get(key, [])) for key in LISTS}
    by_name = [named(_with_lists(each, lists)) for each in containers]
    folds = Folds(lists, *_prototypes(by_name))
    pod, pods_by_group = _prototypes([(group, _with_containers(each, folds)) for group, each in pods])
    metadata, metadata_by_group = _prototypes([(each.group, each.shown["metadata"]) for each in objects if "metadata" in each.shown])
    panels = {kind: prototype(each) for kind, each in _grouped(_panels(objects)).items()}
    folds = replace(folds, pod=pod, pods=pods_by_group, metadata=metadata, metadata_of=metadata_by_group, panels=panels)
    groups = _grouped((each.group, _with_parts(each, folds)) for each in objects)
    return replace(folds, groups={group: prototype(each, PARTS) for group, each in groups.items()})


def _prototypes(parts: list[tuple[str, Part]]) -> tuple[Part, dict[str, Part]]:
    """What the groups of parts have in common, and the prototype of each group: that of all where it is a single part.

    A group counts once, so that a further part of a large one does not change how all others look.
    """
    groups = _grouped(parts)
    own = {group: prototype(each) if len(each) > 1 else each[0] for group, each in groups.items()}
    common = prototype(list(own.values()))
    return common, {group: own[group] if len(each) > 1 else common for group, each in groups.items()}


def fold_object(each: Object, folds: Folds) -> Part:
    """An object relative to what the plan's objects share."""
    return _with_members(fold(_with_parts(each, folds), folds.groups[each.group], PARTS), each.shown)


def _with_members(folded: Part, shown: Part) -> Part:
    """A folded object whose set of dependencies is a list: of members beside those of most objects, or of all after the word `only`."""
    members = folded.get("pulumi", {}).get("dependencies")
    if not isinstance(members, dict):
        return folded
    listed = [name if is_member is True else f"not {name}" for name, is_member in cast(Part, members).items()]
    full = ["only", *shown["pulumi"].get("dependencies", {})] if shown else listed
    return {**folded, "pulumi": {**folded["pulumi"], "dependencies": min(listed, full, key=len)}}


def _with_parts(each: Object, folds: Folds) -> Part:
    """An object whose parts are folded."""
    shown = dict(each.shown)
    if "metadata" in shown:
        shown["metadata"] = fold(shown["metadata"], folds.metadata_of[each.group])
    if "pod" in shown:
        shown["pod"] = fold(_with_containers(shown["pod"], folds), folds.pods[each.group])
    if "data" in shown:
        shown["data"] = {name: _with_panels(value, folds) for name, value in shown["data"].items()}
    return shown


def _with_lists(part: Part, lists: Mapping[str, Mapping[str, Any]]) -> Part:
    return {key: fold_list(value, lists[key]) if key in lists else value for key, value in part.items()}


def _with_containers(pod: Part, folds: Folds) -> Part:
    folded = _with_lists(pod, folds.lists)
    for key in CONTAINERS:
        if key in folded:
            folded[key] = fold_list([_with_lists(each, folds.lists) for each in folded[key]], folds.containers)
    return folded


def _with_panels(value: Any, folds: Folds) -> Any:
    """A file that is a dashboard, with folded panels."""
    if not isinstance(value, dict) or "panels" not in value:
        return cast(Any, value)
    dashboard = cast(Part, value)
    return {**dashboard, "panels": [_with_panel(panel, folds) for panel in dashboard["panels"]]}


def _with_panel(panel: Part, folds: Folds) -> Part:
    """A panel under its title. Its type is always shown: it says which prototype it has."""
    title, rest = named(panel, "title")
    return {
        title: {"type": panel["type"]} | fold({key: value for key, value in rest.items() if key != "type"}, folds.panels[panel["type"]])
    }


def _panels(objects: Iterable[Object]) -> Iterator[tuple[str, Part]]:
    """All panels of dashboards by their type, without it and their title."""
    files: list[Any] = [file for each in objects for file in each.shown.get("data", {}).values()]
    for panel in (panel for file in files if isinstance(file, dict) for panel in cast(Part, file).get("panels", [])):
        yield panel["type"], {key: value for key, value in panel.items() if key not in {"title", "type"}}


def _grouped(pairs: Iterable[tuple[str, _T]]) -> dict[str, list[_T]]:
    """The values of each key."""
    groups: dict[str, list[_T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return dict(sorted(groups.items()))
