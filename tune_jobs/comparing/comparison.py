"""Policies on the same unseen jobsets, load by load: the rows that tables and figures show."""

from collections.abc import Sequence

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import (
    Estimate,
    Result,
    best,
    check_warmup,
    compare_policies,
    get_metric,
)
from cluster_env.workloads import sample_jobsets
from rllib_configs.task_schema import TaskSection
from tune_jobs.comparing.guarding import Calibration, Guarded, calibrate
from tune_jobs.comparing.policy_specs import PolicySpec, Scene
from tune_jobs.comparing.protocol import Setting
from tune_jobs.comparing.wording import on_jobs
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.tables import Row, Value

TUNING_JOBSETS = 200
"""Validation jobsets that the number of a heuristic is tuned on, at each load."""

BASELINES = ("sjf", "packer", "tetris")
"""Heuristics whose best result on a jobset is the baseline of ``attainment``."""

WITH_INTERVAL = ("slowdown", "completion_time", "makespan", "utilization", "within_2")
"""Metrics with an interval; it takes longer than the mean."""

_NOTHING = Estimate(float("nan"), float("nan"), float("nan"), "nothing")


def compare(
    setting: Setting,
    specs: Sequence[PolicySpec],
    loads: Sequence[float],
    progress: Progress | None = None,
) -> list[Row]:
    """Evaluates every spec at every load, on jobsets that nobody has been trained or tuned on.

    Args:
        setting: what to compare on.
        specs: what to compare.
        loads: loads, 0.7 for 70 %; see `Setting.loads`.
        progress: shows where it is; by default nothing is shown.

    Returns:
        One row for each load and spec, in this order; the columns are those of `_row`.

    Raises:
        InputError: before anything is evaluated, if a load cannot be reached, a policy is for
            another cluster, two specs have the same name, the warm-up leaves nothing, or there
            is nothing to guard.
    """
    progress = progress or NoProgress()
    get_metric(setting.metric)
    tasks = [setting.at(load) for load in loads]
    check_entrants(setting, specs, tasks[0])
    num_learned = sum(spec.learned for spec in specs)
    if setting.guard and not num_learned:
        raise InputError("a guard needs a learned policy, but no run directory is named")
    lines = len(specs) + (num_learned if setting.guard else 0)
    progress.start(len(loads) * lines, unit="evaluation")
    rows: list[Row] = []
    for load, task in zip(loads, tasks, strict=True):
        rows += _compare_at(setting, task, load, specs, progress, len(rows))
    progress.close()
    return rows


def check_entrants(setting: Setting, specs: Sequence[PolicySpec], task: TaskSection) -> None:
    """Finds out what is wrong before anything is evaluated.

    Raises:
        InputError: if two specs have the same name, a policy is for another cluster, or the
            warm-up leaves nothing of the arrival window.
    """
    keys = [spec.key for spec in specs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"'{twice}' is named twice; name each policy once")
    for spec in specs:
        if spec.learned:
            spec.make(scene_of(setting, task))
    first = sample_jobsets(task.build_workload(), setting.seed, Split.HELD_OUT, range(1))
    check_warmup(setting.warmup, [jobset.window for jobset in first])


def evaluate_specs(
    setting: Setting,
    task: TaskSection,
    load: float,
    specs: Sequence[PolicySpec],
    progress: Progress,
    done: int = 0,
) -> list[Result]:
    """What each spec achieves on the held-out jobsets of a task.

    Args:
        setting: number of jobsets and the like; its metric is what heuristics are tuned for.
        task: one of `Setting.at`.
        load: that was asked for; the progress shows it.
        specs: the policies.
        progress: already started; stepped once for each spec.
        done: steps of it that were made before.
    """
    scene = scene_of(setting, task)
    jobsets = sample_jobsets(
        task.build_workload(), setting.seed, Split.HELD_OUT, range(setting.jobsets)
    )
    results = []
    for count, spec in enumerate(specs, start=done + 1):
        results += compare_policies(
            [spec.make(scene)],
            jobsets,
            task.cluster.build(),
            task.build_rules(),
            run_seed=setting.seed,
            episodes_per_jobset=setting.episodes,
            max_time=task.max_time,
            also=[setting.metric],
            warmup=setting.warmup,
        )
        progress.step(count, f"{on_jobs(load, task.workload.trace_name)}: {results[-1].name}")
    return results


def _compare_at(
    setting: Setting,
    task: TaskSection,
    load: float,
    specs: Sequence[PolicySpec],
    progress: Progress,
    done: int,
) -> list[Row]:
    results = evaluate_specs(setting, task, load, specs, progress, done)
    guarded = guard_at(setting, task, load, specs, results) if setting.guard else []
    for count, line in enumerate(guarded, start=done + len(results) + 1):
        progress.step(count, f"{on_jobs(load, task.workload.trace_name)}: {line.result.name}")
    winner = best([*results, *(line.result for line in guarded)], setting.metric)
    baselines = [
        result
        for spec, result in zip(specs, results, strict=True)
        if not spec.learned and spec.key.partition(":")[0] in BASELINES
    ]
    head = head_of(setting, task, load)
    pairs = list(zip(specs, results, strict=True))
    rows: list[Row] = [{**head, **_row(*pair, winner, baselines, setting.metric)} for pair in pairs]
    for line in guarded:
        row = _row(line.spec, line.result, winner, baselines, setting.metric)
        rows.append({**head, **row, **line.cells()})
    return rows


def guard_at(
    setting: Setting,
    task: TaskSection,
    load: float,
    specs: Sequence[PolicySpec],
    results: Sequence[Result],
) -> list[Guarded]:
    """A guarded line for each learned spec, see `calibrate_at`.

    Args:
        setting: its `guard` says on how many jobsets the guard decides.
        task: one of `Setting.at`.
        load: that was asked for.
        specs: all that are compared.
        results: theirs on the held-out jobsets.
    """
    scene = scene_of(setting, task)
    calibration = calibrate_at(setting, task)
    name = calibration.heuristic.name
    known = [result for result in results if result.name == name]
    if not known:
        heuristic = PolicySpec(name, lambda scene: calibration.heuristic)
        known = evaluate_specs(setting, task, load, [heuristic], NoProgress())
    return [
        calibration.line(spec, scene, result, known[0])
        for spec, result in zip(specs, results, strict=True)
        if spec.learned
    ]


def calibrate_at(setting: Setting, task: TaskSection) -> Calibration:
    """Prepares the guard on validation jobsets of a task that heuristics are not tuned on."""
    last = TUNING_JOBSETS + setting.guard
    jobsets = sample_jobsets(
        task.build_workload(), setting.seed, Split.VALIDATION, range(TUNING_JOBSETS, last)
    )
    return calibrate(scene_of(setting, task), jobsets, setting.seed)


def scene_of(setting: Setting, task: TaskSection) -> Scene:
    """What specs are prepared for."""
    return Scene(
        task,
        setting.metric,
        lambda: sample_jobsets(
            task.build_workload(), setting.seed, Split.VALIDATION, range(TUNING_JOBSETS)
        ),
        setting.warmup,
    )


def head_of(setting: Setting, task: TaskSection, load: float) -> dict[str, Value]:
    """What all rows of one load share: on what their numbers rest."""
    part = task.build_part(Split.HELD_OUT)
    return {
        "load": load,
        "load_used": part.load,
        "trace": task.workload.trace_name,
        "arrival_rate": part.arrival_rate,
        "rules": task.rules,
        "window": task.workload.window,
        "warmup": setting.warmup,
        "metric": setting.metric,
        "jobsets": setting.jobsets,
        "episodes": setting.episodes,
        "seed": setting.seed,
    }


def _row(
    spec: PolicySpec, result: Result, winner: Result, baselines: Sequence[Result], metric: str
) -> dict[str, Value]:
    """The columns of one spec.

    ``policy`` is the name shown and ``key`` the one that stays the same at all loads; every mean
    of `cluster_env.evaluation.metrics` by name, averaged over training seeds; ``_low`` and
    ``_high`` its 95 % interval over ``interval_over``; ``difference`` to the best mean on the same
    jobsets, with its interval; ``attainment``: share of jobsets at or below the best of `BASELINES`
    among the specs, averaged over training seeds, with its interval.
    """
    row: dict[str, Value] = {**spec_cells(spec, result), "best": result is winner}
    row |= result.means
    for name in dict.fromkeys((*WITH_INTERVAL, metric)):
        estimate = result.estimate(name)
        row |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        row["interval_over"] = estimate.over
    gap = result.difference(winner, metric)
    row |= {"difference": gap.value, "difference_low": gap.low, "difference_high": gap.high}
    share = result.attainment(baselines, metric) if baselines else _NOTHING
    row |= {"attainment": share.value, "attainment_low": share.low, "attainment_high": share.high}
    return row


def spec_cells(spec: PolicySpec, result: Result) -> dict[str, Value]:
    """Who an spec is: the columns that `tune_jobs.figures` names policies by."""
    return {
        "policy": result.name,
        "key": spec.key,
        "learned": spec.learned,
        "trained_load": spec.trained_load,
        "trained_trace": spec.trained_trace,
        "trained_mixture": spec.trained_mixture,
        "trained_for": spec.trained_for,
        "seeds": spec.num_seeds,
    }
