"""Whether all calls of an experiment can be made, and the runs of its folder are those it names."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import load_config, read_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from tune_jobs.experiments.calls import Call
from tune_jobs.experiments.reach import check_begun, check_reach
from tune_jobs.experiments.record import RECORD
from tune_jobs.figures.drawing import check_options, given_fields
from tune_jobs.measuring.rollout_specs import is_rollout, rollout_runs
from tune_jobs.measuring.trained_runs import find_runs, is_heuristic
from tune_jobs.tracking.values import flatten

COMPARED = ("task", "training", "seed")
"""Sections of a config that a result depends on."""

_NOT_IN_OUT = ",[]*?"


def check_calls(calls: Sequence[Call], out: Path) -> None:
    """Makes sure that each command, option, preset, setting, figure and policy exists.

    What a plan can reach is checked first, see `tune_jobs.experiments.reach`.

    Presets are read with their settings once, whatever the seed. Policies that are paths may have
    to be made yet, and so may those that a call writes.

    Raises:
        InputError: if a call could not be made, or the folder's name has a character that separates
            or stands for names of runs.
    """
    wrong = next((sign for sign in _NOT_IN_OUT if sign in str(out)), None)
    if wrong is not None:
        raise InputError(
            f"the folder {out} has '{wrong}' in its name, which commands would read as part of a "
            f"list or a glob of runs; give another one with --out"
        )
    written = {text for call in calls for text in call.texts("out")}
    loaded: set[tuple[str, ...]] = set()
    for call in calls:
        if call.run is None:
            check_reach(call, out)
        values = call.values()
        try:
            if call.run is not None:
                preset, *settings = call.texts("config", "set")
                if (preset, *settings) not in loaded:
                    check_sent_nowhere(load_config(preset, settings))
                loaded.add((preset, *settings))
                continue
            if call.name == "figure":
                figure = call.command.options_in(values)
                again, track = figure.table is not None, bool(call.options.get("track"))
                for name in call.texts("name"):
                    check_options(name, given_fields(figure), again, track)
            for source in call.texts("config"):
                if not source.endswith((".yaml", ".yml")):  # which a call before may write
                    read_config(source)
            for text in call.texts("policies", "runs"):
                for name in filter(None, text.split(",")):
                    if is_rollout(name):
                        rollout_runs(name, "argmax")
                    elif "/" not in name and name not in written and not is_heuristic(name):
                        find_runs([name])
        except InputError as error:
            raise call.refusal(str(error)) from None


def check_sent_nowhere(config: ExperimentConfig) -> None:
    """Raises `InputError` if a config says where records of the run are sent: its user does."""
    if config.tracking.uri:
        raise InputError(
            f"a plan does not say where something is sent, as tracking.uri={config.tracking.uri} "
            f"does; set MLFLOW_TRACKING_URI in the environment instead"
        )


def check_place(source: str, out: Path) -> None:
    """Makes sure that a folder is not the one that holds the results of several experiments.

    Raises:
        InputError: if it holds those of this one in a folder of their own.
    """
    name = Path(source).stem
    if (out / name).is_dir() and not (out / RECORD).exists():
        raise InputError(
            f"{out} holds the results of {name} in a subfolder; give --out {out / name}"
        )


def check_trained(call: Call) -> None:
    """Makes sure that a run that is there already was begun as a call would begin it, and here.

    Raises:
        InputError: if it was not.
    """
    assert call.run is not None
    check_begun(call.run, call.num_iterations)
    file = call.run / "config.yaml"
    if not file.is_file():
        if (call.run / "policy").exists():
            raise InputError(
                f"{call.run} has a policy and no {file.name}, so it cannot be identified; "
                "give another folder with --out, or remove it"
            )
        return
    (preset,), (seed,) = call.texts("config"), call.texts("seed")
    settings = [*call.texts("set"), f"seed={seed}"]
    named = flatten(prepare(load_config(preset, settings)).to_dict())
    there = flatten(load_config(str(file)).to_dict())
    for key in sorted(named.keys() | there.keys()):
        if key.partition(".")[0] in COMPARED and named.get(key) != there.get(key):
            raise InputError(
                f"{call.run} is not the run that the experiment names: {key} is "
                f"{there.get(key)} there and {named.get(key)} here; give another folder with "
                f"--out, or remove that run"
            )


def check_runs(call: Call, trained: Mapping[Path, Call]) -> None:
    """Makes sure that a call uses no runs of its folder but those of the experiment.

    Args:
        call: that is to be made now.
        trained: the experiment's calls that train, by the folder of the run.

    Raises:
        InputError: if a glob matches another one, or one that is not trained to its end.
    """
    known = {run.resolve(): training for run, training in trained.items()}
    folders = {run.parent for run in known}
    for part in (part for text in call.texts(*call.options) for part in text.split(",")):
        if not any(Path(part).resolve().is_relative_to(folder) for folder in folders):
            continue
        try:
            runs = [run for run in find_runs([part]) if (run / "config.yaml").is_file()]
        except InputError:  # it names something else
            continue
        for run in runs:
            if run.resolve() not in known:
                raise InputError(
                    f"'{call}' would use {run}, which the experiment does not name; move "
                    f"it away, or give another folder with --out"
                )
            if not known[run.resolve()].is_done:
                raise InputError(f"'{call}' would use {run}, which is not trained yet")
