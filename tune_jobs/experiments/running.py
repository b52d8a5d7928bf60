"""Makes the results of an experiment, and says how far it is."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tune_jobs.commands.results import Results
from tune_jobs.experiments.calls import Call, carry_out_all
from tune_jobs.experiments.checking import check_calls, check_place, check_runs, check_trained
from tune_jobs.experiments.definition import find_experiment, in_order, load_experiment
from tune_jobs.experiments.listing import list_calls
from tune_jobs.experiments.reach import note_begun
from tune_jobs.experiments.record import ExperimentRecord
from tune_jobs.terminal.options import first_comment
from tune_jobs.terminal.output import show

REFUSED = 2
"""Exit status of a command that cannot be carried out as it was called."""


RESULTS = Path("runs/results")


def given_to(options: Results) -> dict[str, str]:
    """Options that calls of an experiment may use, by name; see `Experiment.takes`."""
    said = {
        "logs": str(options.logs or ""),
        "max-wait": options.max_wait,
        "policies": ",".join(options.policies),
        "processors": ",".join(options.processors),
    }
    return {name: text for name, text in said.items() if text}


def calls_of(experiment: str, options: Results) -> tuple[list[Call], Path]:
    """All calls of an experiment, and the folder of its results.

    Raises:
        InputError: if the experiment cannot be used.
    """
    out = RESULTS / Path(experiment).stem if options.out is None else Path(options.out)
    calls = list_calls(load_experiment(experiment), out, options.seeds, given_to(options))
    return calls, out


def make_all(options: Results) -> None:
    """Makes the results of all named experiments, each in a folder of its own below ``out``."""
    names = in_order()
    minutes = [load_experiment(name).minutes or 0 for name in names]
    for number, name in enumerate(names):
        show(
            f"# {name}: {number + 1} of {len(names)} results, about {minutes[number]} of the "
            f"{sum(minutes[number:])} minutes that are left on two cores",
            bold=not options.dry_run,
        )
        make_results(name, replace(options, out=Path(options.out or RESULTS) / name))


def make_results(source: str, options: Results) -> None:
    """Trains what is not trained yet, and makes the calls that follow and are not done.

    Args:
        source: name of an experiment, or path of a YAML file.
        options: of the command. `tune_jobs.experiments.record` says what its folder gets beside
            runs, tables and figures.

    Raises:
        InputError: if the experiment cannot be used, the folder holds other runs than it says or
            those of several experiments, or no commit holds the files that would make the results.
        SystemExit: with the status of the first call that fails or is stopped.
    """
    calls, out = calls_of(source, options)
    dry_run, at_once = options.dry_run, options.at_once or 1
    check_place(source, out)
    check_calls(calls, out)
    trained = {call.run: call for call in calls if call.run}
    record = ExperimentRecord(out, first_comment(find_experiment(source)), list(trained))
    if not (dry_run or options.force):
        record.check_commit()
    for call in trained.values():
        check_trained(call)
    waiting: dict[str, Call] = {}
    for number, call in enumerate(calls, 1):
        place = "" if dry_run else f"[{number}/{len(calls)}] "
        if call.run is None and waiting:  # all that come before are trainings
            _carry_out(waiting, at_once)
            waiting = {}
        if call.is_done or record.is_done(call):
            show(f"# {place}{call.run or call} is done")
        elif dry_run:
            show(str(call))
        elif call.run:
            waiting[place] = call
        else:
            check_runs(call, trained)
            record.begin(call)
            _carry_out({place: call})
            record.add(call)
    if waiting:
        _carry_out(waiting, at_once)
    if not dry_run:
        if elsewhere := record.elsewhere():
            show(
                f"Of {len(trained)} runs, {len(elsewhere)} are not known to be trained at this "
                f"commit alone; the page says where"
            )
        show(f"Results  {record.close()}")


def _carry_out(calls: Mapping[str, Call], at_once: int = 1) -> None:
    """Makes calls, by their places; several trainings at a time sample in one process each."""
    for call in calls.values():
        if call.run:
            note_begun(call.run)
    if (several := min(at_once, len(calls))) > 1:
        calls = {
            f"{place}{call.run.name}": replace(call, options={**call.options, "runners": 0})
            for place, call in calls.items()
            if call.run
        }
    if status := carry_out_all(calls, several):
        if status != REFUSED:
            show("Give the same command again to go on from here.", err=True)
        raise SystemExit(status)
