"""From a preset's name, a file and overrides to a checked `ExperimentConfig`."""

from collections.abc import Iterable, Mapping, Sequence, Set
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.core.yaml_text import MAX_CHARACTERS, YAMLFault, parse_yaml
from cluster_env.task import Task
from cluster_env.worlds import WORLDS
from rllib_configs.config.changes import Changes, change, changed_keys
from rllib_configs.config.explaining import explain
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.machines import OPTION, machine_changes
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.sections import Section, refusing

S = TypeVar("S", bound=Section)

PRESETS = Path(__file__).parents[1] / "presets"


def preset_names() -> list[str]:
    """Names of the presets that come with metasched."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def load_config(source: str | Path | ExperimentConfig, changes: Changes = ()) -> ExperimentConfig:
    """Reads a config.

    Args:
        source: name of a preset, path of a YAML file, or a config.
        changes: see `change`.

    Raises:
        InputError: if there is no such preset or file, a key is unknown, or a value impossible.
    """
    data = source.to_dict() if isinstance(source, ExperimentConfig) else read_config(source)
    before = deepcopy(data)
    change(data, changes)
    asked = "--set task.world.{name}={units}"
    return _make_config_of_log(data, before, changed_keys(changes), asked)


def changed_config(
    data: dict[str, Any], overrides: Changes, task_options: Mapping[str, Any]
) -> ExperimentConfig:
    """The config of plain data after changes, and options of its world.

    Args:
        data: of a config, without defaults; changed in place.
        overrides: see `change`.
        task_options: values, or texts of them, by names of the world's options.

    Raises:
        InputError: if the config cannot be used.
    """
    before = deepcopy(data)
    change(data, overrides)
    given, said = changed_keys(overrides), set[str]()
    for name in sorted(task_options, key=partial(_reads_task, data)):
        value, world = task_options[name], parse_config(data).task.world.kind
        option = WORLDS.get(world).presentation.options.get(name)
        if option is None:
            raise InputError(f"--{name} has no effect in the world {world}, so leave it out")
        key = f"task.{option.key}"
        if key in given:
            raise InputError(f"--{name} and --set {key} set the same value; give one of them")
        if option.read is not None:
            with refusing(f"--{name}"):
                value = option.read(value, partial(_task_of, data, before, given | said))
        change(data, [f"{key}={value}"])
        follows = option.follows(parse_config(data).task)
        settings = {f"task.{key}": setting for key, setting in follows.items()}
        change(data, {key: settings[key] for key in settings if key not in given})
        said.add(key)
    return _make_config_of_log(data, before, given | said)


def _reads_task(data: dict[str, Any], name: str) -> bool:
    """Whether an option may depend on what the others say, so that it comes last."""
    option = WORLDS.get(parse_config(data).task.world.kind).presentation.options.get(name)
    return option is not None and option.read is not None


def _task_of(data: dict[str, Any], before: Mapping[str, Any], given: Set[str]) -> Task:
    return _make_config_of_log(deepcopy(data), before, given).task.build()


def _make_config_of_log(
    data: dict[str, Any], before: Mapping[str, Any], given: Set[str], asked: str = OPTION
) -> ExperimentConfig:
    """`make_config` with the machine of a job log that was named; see `machine_changes`.

    Args:
        data: after the changes that were asked for; changed in place.
        before: the same before them.
        given: keys of these changes.
        asked: see `rllib_configs.config.machines.units_of_log`.

    Raises:
        InputError: if the data or the log cannot be used, or nobody says how large the machine is.
    """
    config = parse_config(data)
    read = config.task.read_log
    machine = machine_changes(config.task, read, before.get("task"), given, asked) if read else {}
    if machine:
        change(data, machine)
        config = parse_config(data)
    config.task.build()
    return config


def read_config(source: str | Path) -> dict[str, Any]:
    """The plain data of a preset or a YAML file, without defaults.

    Raises:
        InputError: if there is no such preset or file, or it is no table.
    """
    load_extensions()
    path = find_yaml("preset", source, PRESETS)
    if not path.is_file():
        raise InputError(f"there is no config file {path}")
    return read_yaml(path)


def find_yaml(kind: str, source: str | Path, folder: Path) -> Path:
    """The YAML file that a path means, or the name of one in a folder of some kind.

    Raises:
        InputError: if there is none of that name.
    """
    if Path(source).suffix in (".yaml", ".yml"):
        return Path(source)
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if str(source) not in names:
        raise unknown(kind, str(source), names)
    return folder / f"{source}.yaml"


def make_config(data: Mapping[str, Any]) -> ExperimentConfig:
    """Checks plain data, including what only shows when the task is built.

    Raises:
        InputError: if a key is unknown, a value impossible, or a trace missing or broken.
    """
    config = parse_config(data)
    config.task.build()
    return config


def parse_config(data: Mapping[str, Any]) -> ExperimentConfig:
    """Checks keys and types alone; files that the data name need not be there any more.

    Raises:
        InputError: if a key is unknown, or a value of the wrong type or out of its range.
    """
    load_extensions()
    return parse_section(ExperimentConfig, data)


def parse_section(section: type[S], data: Mapping[str, Any]) -> S:
    """Checks keys and types of any part of a config.

    Args:
        section: what the data are to be.
        data: plain data.

    Raises:
        InputError: if a key is unknown, or a value of the wrong type or out of its range.
    """
    load_extensions()
    try:
        checked = section.model_validate(data)
    except ValidationError as error:
        raise InputError(explain(error, section)) from None
    _refuse_truth(data, checked.model_dump())
    return checked


def _refuse_truth(data: Any, checked: Any, path: Sequence[str] = ()) -> None:
    """Refuses true and false where plain data became numbers: to Python, true is a 1.

    Args:
        data: as they were given.
        checked: what validation made of them, as plain data.
        path: keys at which they stand.

    Raises:
        InputError: if there is one; it names the key.
    """
    pairs: Iterable[tuple[Any, Any, Any]] = ()
    if isinstance(data, Mapping) and isinstance(checked, Mapping):
        pairs = ((key, data[key], checked[key]) for key in data if key in checked)
    elif isinstance(data, list | tuple) and isinstance(checked, list | tuple):
        pairs = zip(range(len(data)), data, checked, strict=False)
    elif isinstance(data, bool) and type(checked) in (int, float):
        raise InputError(
            f"{'.'.join(path)}: input should be a number, not true or false, but {data} was given"
        )
    for key, value, made in pairs:
        _refuse_truth(value, made, [*path, str(key)])


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML file that holds a table; no tag in it can run code.

    Raises:
        InputError: if the file cannot be read or is no table.
    """
    if path.exists() and not path.is_file():  # a pipe or a device would never end
        raise InputError(f"cannot read {path}: it is no file")
    try:
        with path.open(encoding="utf-8") as file:
            data = parse_yaml(file.read(MAX_CHARACTERS + 1))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None
    except YAMLFault as error:
        raise InputError(f"{path} {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} should hold a table of settings, but holds {type(data).__name__}")
    return data


def write_config(config: ExperimentConfig, path: Path) -> None:
    """Writes the whole config, see `config_text`."""
    path.write_text(config_text(config))


def config_text(config: ExperimentConfig) -> str:
    """The whole config, defaults included, as YAML that `load_config` reads back."""
    return yaml.safe_dump(config.to_dict(), sort_keys=False)
