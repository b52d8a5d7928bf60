"""From a preset's name, a file and overrides to a checked `ExperimentConfig`."""

import contextlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from rllib_configs.schema import ExperimentConfig
from rllib_configs.task_schema import MADE_UP, Section

S = TypeVar("S", bound=Section)

PRESETS = Path(__file__).parent / "presets"
TRACE = "task.workload.trace"


def preset_names() -> list[str]:
    """Names of the presets that come with metasched."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def load_config(source: str | Path, overrides: Iterable[str] = ()) -> ExperimentConfig:
    """Reads a config.

    Args:
        source: name of a preset, or path of a YAML file.
        overrides: texts of the form ``training.lr=3e-4``; values are read as YAML. A trace
            (``task.workload.trace=jobs.csv``) replaces the made-up jobs that the source describes.

    Raises:
        InputError: if there is no such preset or file, a key is unknown, or a value impossible.
    """
    data = read_yaml(_find(source))
    change(data, overrides)
    return make_config(data)


def change(data: dict[str, Any], overrides: Iterable[str], trace: str = TRACE) -> None:
    """Makes changes to plain data, in place.

    Args:
        data: of a config, or of a part of one.
        overrides: texts of the form ``key=value``; values are read as YAML.
        trace: key of a trace in the data, which replaces the made-up jobs beside it.

    Raises:
        InputError: if a text cannot be read.
    """
    changes = [parse_override(override) for override in overrides]
    if any(key == trace and value is not None for key, value in changes):
        forget_made_up_jobs(data, trace)
    for key, value in changes:
        _apply(data, key, value)


def forget_made_up_jobs(data: dict[str, Any], trace: str = TRACE) -> None:
    """Takes out what a trace that is given makes meaningless; see `change`."""
    place: Any = data
    for section in trace.split(".")[:-1]:
        place = place.get(section) if isinstance(place, dict) else None
    if isinstance(place, dict):
        for name in MADE_UP:
            place.pop(name, None)


def make_config(data: Mapping[str, Any]) -> ExperimentConfig:
    """Checks plain data, including what only shows when the task is built.

    Raises:
        InputError: if a key is unknown, a value impossible, or a trace missing or broken.
    """
    config = parse_config(data)
    config.task.build_workload()
    config.task.build_objective()
    if config.meta is None and config.training.jobsets % config.training.jobsets_per_unit:
        raise InputError(
            f"training.jobsets ({config.training.jobsets}) must be a multiple of "
            f"training.jobsets_per_unit ({config.training.jobsets_per_unit})"
        )
    return config


def parse_config(data: Mapping[str, Any]) -> ExperimentConfig:
    """Checks keys and types alone; a trace that the data name need not be there any more.

    Raises:
        InputError: if a key is unknown, or a value of the wrong type or out of its range.
    """
    return parse_section(ExperimentConfig, data)


def parse_section(section: type[S], data: Mapping[str, Any]) -> S:
    """Checks keys and types of any part of a config.

    Raises:
        InputError: if a key is unknown, or a value of the wrong type or out of its range.
    """
    try:
        return section.model_validate(data)
    except ValidationError as error:
        raise InputError(_explain(error, section)) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML file that holds a table; no tag in it can run code.

    Raises:
        InputError: if the file cannot be read or is no table.
    """
    try:
        data = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        place = f" in line {where.line + 1}" if where else ""
        raise InputError(f"{path} is not valid YAML{place}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} should hold a table of settings, but holds {type(data).__name__}")
    return data


def write_config(config: ExperimentConfig, path: Path) -> None:
    """Writes the whole config, defaults included, as YAML that `load_config` reads back."""
    path.write_text(yaml.safe_dump(config.to_dict(), sort_keys=False))


def _find(source: str | Path) -> Path:
    path = Path(source)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise InputError(f"there is no config file {path}")
        return path
    if str(source) not in preset_names():
        raise unknown("preset", str(source), preset_names())
    return PRESETS / f"{source}.yaml"


def parse_override(override: str) -> tuple[str, Any]:
    """Key and value of ``key=value``, the value read as YAML.

    Raises:
        InputError: if there is no ``=``, or the value cannot be read.
    """
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise InputError(f"--set takes key=value, for instance training.lr=3e-4, not '{override}'")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"the value in --set {override} cannot be read") from None
    if isinstance(value, str):  # YAML 1.1 reads 3e-4 as text
        with contextlib.suppress(ValueError):
            value = float(value)
    return key, value


def _apply(data: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    place = data
    for section in sections:
        if place.get(section) is None:  # not given, or null as in the config of a run
            place[section] = {}
        inner = place[section]
        if not isinstance(inner, dict):
            raise InputError(f"'{key}' cannot be set, because '{section}' holds no settings")
        place = inner
    place[last] = value


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem of a validation, as one sentence."""
    problem = error.errors()[0]
    path = [str(part) for part in problem["loc"]]
    key = ".".join(path) or "config"
    if problem["type"] != "extra_forbidden":
        given = problem.get("input")
        shown = f", but {given!r} was given" if not isinstance(given, dict) else ""
        return f"{key}: {problem['msg'][0].lower()}{problem['msg'][1:]}{shown}"
    known = _known_keys(model, path[:-1])
    close = get_close_matches(path[-1], [name.rsplit(".", 1)[-1] for name in known], n=1)
    section = f" in '{'.'.join(path[:-1])}'" if path[:-1] else ""
    hint = f"did you mean '{'.'.join([*path[:-1], *close])}'? " if close else ""
    return f"unknown key '{key}': {hint}known{section} are {', '.join(known)}"


def _known_keys(model: type[BaseModel], sections: list[str]) -> list[str]:
    inner: Any = model
    for section in sections:
        if get_origin(inner) is dict:  # whose keys are the user's
            inner = get_args(inner)[1]
            continue
        inner = inner.model_fields[section].annotation
        if get_origin(inner) is not dict:
            inner = next((part for part in get_args(inner) if part is not type(None)), inner)
    return sorted(inner.model_fields)
