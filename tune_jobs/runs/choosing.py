"""What `metasched.choose` does: judges runs as their training judged candidates."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from cluster_env.worlds import policy_in
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policy_files import CONFIG_FILE, TEXT_FILE, read_weights, write_policy
from rllib_configs.runners.candidates import (
    CANDIDATES,
    KEPT,
    CandidateWork,
    judged_by_all,
    units_of,
)
from rllib_configs.runners.sums import total
from rllib_configs.search_problem import joined, judge_of, prepare
from tune_jobs.commands.comparing import Choose
from tune_jobs.measuring.trained_runs import find_runs, is_heuristic
from tune_jobs.tables.frames import Row, Value, frame_of, plain
from tune_jobs.tables.printing import aligned
from tune_jobs.tables.report import Report

_SEARCH = "evolution"
_APART = ("seed", "runs", "name", "resources", "evaluation", "checkpoint", "tracking")
_WRITTEN = {CONFIG_FILE, TEXT_FILE}
_PIECE = 10  # jobsets of a unit


def choose_run(options: Choose) -> Report:
    """Judges runs, and writes the best.

    Raises:
        InputError: if a run was not trained by a search, or they are not alike.
    """
    names, num_jobsets = options.runs, options.num_jobsets
    out = None if options.out is None else Path(options.out)
    present = {one.name for one in out.iterdir()} if out is not None and out.is_dir() else set()
    # What is hidden was put aside by a call that was killed.
    if {name for name in present if not name.startswith(".")} - _WRITTEN:
        raise InputError(f"{out} holds other files; take a new folder for the policy")
    for name in filter(is_heuristic, names):
        raise InputError(f"choose takes trained runs, but '{name}' is a rule")
    paths = find_runs(names)
    found = [read_weights(path) for path in paths]
    configs = [config for _, config in found]
    _require_alike(paths, configs)
    judged = _judged(configs[0].model_copy(update={"seed": options.seed}), found, num_jobsets)
    judge = judge_of(configs[0])
    costs, breaches = judge.final_costs(judged), judge.beyond(judged)
    best = int(np.argmin(costs))
    rows: list[Row] = []
    for path, config, cost, of_run, breach in zip(
        paths, configs, costs, judged, breaches, strict=True
    ):
        mean = jobset_interval(Pooled.each(of_run[:, 0]))
        limits = config.training.limits
        beyond = {f"beyond_{name}": float(breach[k]) for k, name in enumerate(limits)}
        excess = of_run[:, 1:]
        with_limit = np.maximum((excess != KEPT).sum(axis=0), 1)  # others count as kept
        shares = (excess > 0).sum(axis=0) / with_limit
        beyond |= {f"broken_{name}": float(shares[k]) for k, name in enumerate(limits)}
        less = jobset_interval(Pooled.each(of_run[:, 0] - judged[best][:, 0]))
        row: dict[str, Value] = {"run": path.name, "seed": config.seed, "judged": float(cost)}
        row |= {"cost": mean.value, "low": mean.low, "high": mean.high}
        row |= {"less_best": less.value, "less_best_low": less.low, "less_best_high": less.high}
        rows.append({**row, **beyond})
    lines = _text(rows, best, num_jobsets, on_mean=configs[0].training.limits_hold == "mean")
    if out is not None:
        write_policy(found[best][0], configs[best], out, as_text=True)
        lines.append(f"Wrote the policy of {paths[best].name} to {out}")
    return Report(text="\n".join(lines), tables={"runs": partial(frame_of, rows)}, data=plain(rows))


def _judged(
    config: ExperimentConfig, found: Sequence[tuple[object, ExperimentConfig]], count: int
) -> np.ndarray:
    """See `CandidateWork`; float64 ``(num_runs, num_jobsets, 1 + number of limits)``."""
    config = prepare(config)
    work = CandidateWork(config)
    candidates = [joined(weights, work.shapes) for weights, _ in found]  # type: ignore[arg-type]
    work.set_weights({CANDIDATES: np.stack(candidates)})
    units = units_of(Split.HELD_OUT, 0, count, _PIECE, len(candidates))
    parts = {(0, place): work.play(unit)[0] for place, unit in enumerate(units)}
    return judged_by_all(units, total(parts, len(units)))


def _require_alike(paths: Sequence[Path], configs: Sequence[ExperimentConfig]) -> None:
    first = _trained(configs[0])
    for path, config in zip(paths, configs, strict=True):
        if config.training.algorithm != _SEARCH:
            raise InputError(
                f"choose ranks runs of {_SEARCH} by the objective of their search, but "
                f"{policy_in(path)} was trained by {config.training.algorithm}; compare it "
                "with metasched compare"
            )
        if _trained(config) != first:
            raise InputError(
                f"choose takes runs that differ only in their seed, but {policy_in(path)} "
                f"has other settings than {policy_in(paths[0])}"
            )


def _trained(config: ExperimentConfig) -> dict[str, object]:
    data = {key: value for key, value in config.to_dict().items() if key not in _APART}
    training = {key: value for key, value in data["training"].items() if key != "iterations"}
    return data | {"training": training}


def _text(rows: Sequence[Row], best: int, num_jobsets: int, *, on_mean: bool) -> list[str]:
    limits = [name for name in rows[0] if name.startswith("beyond_")]
    titles = [name.replace("_", " ") for name in limits]
    lines = [["", "run", "seed", "ln(cost) [95%]", "less the best's", *titles, "judged"]]
    for number, row in enumerate(rows):
        mean = f"{row['cost']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        ends = f"[{row['less_best_low']:+.3f}, {row['less_best_high']:+.3f}]"
        less = "" if number == best else f"{row['less_best']:+.3f} {ends}"
        cells = [
            f"{float(row[name]):+.3f} ({float(row[name.replace('beyond', 'broken')]):.0%})"
            for name in limits
        ]
        mark = ">" if number == best else ""
        head = [mark, str(row["run"]), str(row["seed"]), mean, less]
        lines.append([*head, *cells, f"{row['judged']:.3f}"])
    under = [f"\nMeans over {num_jobsets:,} jobsets that no run was trained on; lower is better."]
    alike = [
        str(row["run"])
        for number, row in enumerate(rows)
        if number != best and float(row["less_best_low"]) <= 0.0 <= float(row["less_best_high"])
    ]
    if alike:
        under.append(
            f"Not significantly different from {rows[best]['run']}, paired by jobsets: "
            f"{', '.join(alike)}. Other jobsets may choose another of these."
        )
    if limits:
        mean = "ln(value / limit), where limits apply to the mean: above 0 a limit is violated"
        each = "ln(value / limit) where a limit is violated, and 0 elsewhere"
        under.append(
            f"Violation: mean of {mean if on_mean else each}. In brackets: share of the "
            "jobsets with that limit on which it is violated."
        )
    return [*aligned(lines, names=2), *under]
