"""All settings that a config may have, from the dataclasses and sections that they come from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, get_args

import annotated_types
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from cluster_env.core.registry import Registry
from cluster_env.worlds import WORLDS
from rllib_configs.extensions import load_extensions
from rllib_configs.options import TrainingSection
from rllib_configs.registries import ALGORITHMS, NETWORKS
from rllib_configs.schema import ExperimentConfig
from rllib_configs.sections import DerivedSection, section_of
from rllib_configs.task_schema import TaskSection

_COMPOSED = ("task", "training")  # sections whose keys depend on what is chosen
_LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


@dataclass(frozen=True)
class Setting:
    """A setting of a config.

    Attributes:
        key: as ``--set`` takes it: ``training.lr``.
        default: its default as YAML; empty if it has none and has to be given.
        meaning: what it is, and between which values it lies.
        owner: what it belongs to, where that is a choice: ``the algorithm ppo``.
    """

    key: str
    default: str
    meaning: str
    owner: str = ""

    @property
    def explanation(self) -> str:
        """Meaning and owner in one line."""
        return f"{self.meaning} For {self.owner}." if self.owner else self.meaning


def list_settings() -> list[Setting]:
    """Every setting: of all runs, of each world and workload, of each algorithm and network.

    Those of a user's own are among them.

    Raises:
        InputError: if an extension cannot be imported.
    """
    load_extensions()
    found = [*_of_section(ExperimentConfig, ""), *_of_worlds(), *_of_training()]
    return list({(setting.key, setting.owner): setting for setting in found}.values())


def _of_worlds() -> Iterator[Setting]:
    yield from _of_fields(TaskSection.model_fields, "task.", left_out=("world", "workload"))
    for name in WORLDS.names():
        spec = WORLDS.get(name)
        yield from _of_section(section_of(spec.world, name), "task.world.", f"the world {name}")
        world = spec.world()
        for workload in spec.workloads.names():
            entry = spec.workloads.get(workload)
            left_out = frozenset({*entry.from_world(world), *entry.refused})
            section = section_of(entry.workload, workload, left_out)
            owner = f"the workload {workload} of the world {name}"
            yield from _of_section(section, "task.workload.", owner)


def _of_training() -> Iterator[Setting]:
    yield from _of_section(TrainingSection, "training.")
    owners: dict[Setting, dict[str, list[str]]] = {}  # defaults may differ
    registries: tuple[Registry[Any], ...] = (ALGORITHMS, NETWORKS)
    for registry in registries:
        for name in registry.names():
            for setting in _of_section(registry.get(name).options, "training."):
                owners.setdefault(setting, {}).setdefault(registry.kind, []).append(name)
    for setting, kinds in owners.items():
        told = (
            f"the {kind}{'s' if len(names) > 1 else ''} {' and '.join(names)}"
            for kind, names in kinds.items()
        )
        yield replace(setting, owner=" and ".join(told))


def _of_section(section: type[BaseModel], place: str, owner: str = "") -> Iterator[Setting]:
    left_out = _COMPOSED if section is ExperimentConfig else ()
    yield from _of_fields(section.model_fields, place, owner, left_out)


def _of_fields(
    fields: Mapping[str, FieldInfo], place: str, owner: str = "", left_out: tuple[str, ...] = ()
) -> Iterator[Setting]:
    for name, entry in fields.items():
        if name in left_out:
            continue
        parts = get_args(entry.annotation) or (entry.annotation,)
        sections = [part for part in parts if _is_section(part)]
        if len(sections) < len(set(parts) - {NoneType}) or not sections:
            yield _setting(f"{place}{name}", entry, owner)
        for section in sections:
            yield from _of_section(section, f"{place}{name}.", owner)


def _setting(key: str, entry: FieldInfo, owner: str) -> Setting:
    limits = [
        f"{words} {getattr(limit, sign):g}"
        for limit in entry.metadata
        if isinstance(limit, annotated_types.BaseMetadata)
        for sign, words in _LIMITS.items()
        if hasattr(limit, sign)
    ]
    meaning = " ".join((entry.description or "").replace("`", "").split())
    if key.endswith(".kind"):
        meaning = "The name by which this one is chosen"
    sentences = [part.removesuffix(".") for part in (meaning, " and ".join(limits)) if part]
    told = " ".join(f"{part[:1].upper()}{part[1:]}." for part in sentences)
    return Setting(key, _default(entry), told, owner)


def _default(entry: FieldInfo) -> str:
    if entry.is_required():
        return ""
    value: Any = entry.get_default(call_default_factory=True, validated_data={})
    plain = to_jsonable_python(value)
    text: str = yaml.safe_dump(plain, default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not DerivedSection
