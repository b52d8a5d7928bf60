"""All settings that a config may have, from the dataclasses and sections that they come from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from types import NoneType
from typing import Any, get_args

import yaml
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from cluster_env.worlds import WORLDS
from rllib_configs.config.changes import flattened
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.options import TrainingSection
from rllib_configs.config.registries import CHOICES
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.sections import section_of
from rllib_configs.config.task_schema import TaskSection, workload_section

_LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


@dataclass(frozen=True)
class DocumentedSetting:
    """A setting of a config.

    Attributes:
        key: as ``--set`` takes it: ``training.lr``.
        default: its default, or its value in a config, as YAML; empty if it has none and has to be
            given.
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


def list_settings() -> list[DocumentedSetting]:
    """Every setting: of all runs, of each world and workload, of each algorithm and network.

    Those of a user's own are among them.

    Raises:
        InputError: if an extension cannot be imported.
    """
    load_extensions()
    found = [
        *_of_fields(ExperimentConfig.model_fields, "", left_out=("task", "training")),
        *_of_fields(TaskSection.model_fields, "task.", left_out=("world", "workload")),
    ]
    for name in WORLDS.names():
        spec = WORLDS.get(name)
        fields = section_of(spec.world, name).model_fields
        found += _of_fields(fields, "task.world.", f"the world {name}")
        for workload in spec.workloads.names():
            fields = workload_section(spec.world(), workload).model_fields
            owner = f"the workload {workload} of the world {name}"
            found += _of_fields(fields, "task.workload.", owner)
    found += [*_of_fields(TrainingSection.model_fields, "training."), *_of_choices()]
    return list({(setting.key, setting.owner): setting for setting in found}.values())


def settings_of(config: ExperimentConfig) -> list[DocumentedSetting]:
    """The settings that a config has, with its own values in the place of defaults."""
    values = flattened(config.to_dict())
    world, workload = values["task.world.kind"], values["task.workload.kind"]
    whole = ("", f"the world {world}", f"the workload {workload} of the world {world}")
    chosen = {config.training.algorithm, config.training.network}
    return [
        replace(setting, default=_as_yaml(values[setting.key]))
        for setting in list_settings()
        if setting.key in values and (setting.owner in whole or chosen & set(setting.owner.split()))
    ]


def _of_choices() -> Iterator[DocumentedSetting]:
    """Those of algorithms and networks; of several, where they have the same default."""
    owners: dict[DocumentedSetting, dict[str, list[str]]] = {}
    for registry in CHOICES:
        for name in registry.names():
            options = registry.get(name).options.model_fields
            for setting in _of_fields(options, "training."):
                owners.setdefault(setting, {}).setdefault(registry.kind, []).append(name)
    for setting, kinds in owners.items():
        phrases = (
            f"the {kind}{'s' if len(names) > 1 else ''} {' and '.join(names)}"
            for kind, names in kinds.items()
        )
        yield replace(setting, owner=" and ".join(phrases))


def _of_fields(
    fields: Mapping[str, FieldInfo], place: str, owner: str = "", left_out: tuple[str, ...] = ()
) -> Iterator[DocumentedSetting]:
    for name, entry in fields.items():
        if name in left_out:
            continue
        if any(isinstance(mark, BeforeValidator) for mark in entry.metadata):
            yield _setting(f"{place}{name}", entry, owner)  # a file says what is in it
            continue
        parts = set(get_args(entry.annotation) or (entry.annotation,)) - {NoneType}
        tables = [table for table in map(_fields_of, parts) if table is not None]
        if len(tables) < len(parts) or not tables:
            yield _setting(f"{place}{name}", entry, owner)
        for table in tables:
            yield from _of_fields(table, f"{place}{name}.", owner)


def _fields_of(kind: Any) -> Mapping[str, FieldInfo] | None:
    """The settings of a section or of a dataclass; None of anything else."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, BaseModel):
        return kind.model_fields
    return section_of(kind).model_fields if is_dataclass(kind) else None


def _setting(key: str, entry: FieldInfo, owner: str) -> DocumentedSetting:
    limits = [
        f"{words} {_as_number(getattr(limit, sign))}"
        for limit in entry.metadata
        for sign, words in _LIMITS.items()
        if hasattr(limit, sign)
    ]
    meaning = " ".join((entry.description or "").replace("`", "").split())
    if key.endswith(".kind"):
        meaning = f"Name that chooses the {key.split('.')[-2]}"
    sentences = [part.removesuffix(".") for part in (meaning, " and ".join(limits)) if part]
    default = ""
    if not entry.is_required():
        default = _as_yaml(entry.get_default(call_default_factory=True, validated_data={}))
    words = " ".join(f"{part[:1].upper()}{part[1:]}." for part in sentences)
    return DocumentedSetting(key, default, words, owner)


def _as_number(limit: float) -> str:
    return f"{int(limit):,}" if limit == int(limit) else f"{limit:g}"


def _as_yaml(value: Any) -> str:
    text: str = yaml.safe_dump(to_jsonable_python(value), default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()
