"""What ``metasched guard`` does: decides on one task, shows why, and keeps the decision."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from cluster_env.core.errors import InputError, shortened
from cluster_env.evaluation import MIN_DISJOINT, Estimate, GuardDecision, by_size, get_metric
from rllib_configs.networks.conditions import Wanted
from tune_jobs.comparing.choices import choose_comparison, metric_of, parse_limits, task_for
from tune_jobs.comparing.comparison import check_specs
from tune_jobs.comparing.evaluating import evaluation_of
from tune_jobs.comparing.guarded_jobs import with_guard_jobs
from tune_jobs.comparing.guarding import calibrate, plain_limits, write_decision
from tune_jobs.comparing.later import Later, look_later
from tune_jobs.comparing.policy_specs import learned_specs
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.table import column_of
from tune_jobs.comparing.trained_runs import Decode, find_runs, load_runs
from tune_jobs.comparing.wording import described, jobs_in
from tune_jobs.terminal.output import print_json
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.spreading import spreading
from tune_jobs.terminal.tables import aligned


def report_decision(
    *,
    run: Path,
    source: str | None,
    overrides: Sequence[str],
    objective: str | None,
    num_jobsets: int,
    task_options: Mapping[str, str],
    warmup: int | None,
    limits: Sequence[str],
    later: bool,
    seed: int,
    decode: Decode,
    wide: bool,
    as_json: bool,
    out: Path | None,
    num_runners: int,
    address: str | None,
) -> None:
    """Lets the guard decide, and prints what it found; the arguments are the command's options."""
    paths = find_runs([str(run)])
    if len(paths) > 1:
        raise InputError(
            f"a guard decides on one policy at a time, but {shortened(str(run))} names "
            f"{len(paths):,}, as {paths[0].name} and {paths[1].name}; name one of them"
        )
    runs = load_runs(paths, decode)
    config, steps = choose_comparison(source, overrides, task_options, runs, warmup)
    metric = metric_of(objective, config)
    task = task_for(objective, config, seed)
    whole = EvaluationProtocol(
        task,
        metric,
        warmup=steps,
        num_guard_jobsets=num_jobsets,
        limits=parse_limits(limits, task.spec),
        num_jobsets=num_jobsets,
    )
    (spec,) = learned_specs(runs, decode)
    protocol = with_guard_jobs(whole.at(*whole.values()), [spec])
    check_specs(protocol, [spec])
    started = perf_counter()
    evaluation = evaluation_of([protocol], [], [spec])
    progress = NoProgress() if as_json else Progress()
    progress.start(evaluation.num_pieces, unit="evaluation")
    with spreading(num_runners, address, progress.say) as spread:
        (found,) = evaluation.do(progress, spread)
    progress.close()
    (decision,) = calibrate(protocol, evaluation.specs, found).decide(found[-1])
    seconds = perf_counter() - started
    seen = None
    if later:
        policy = runs[0].policy.acting_in(task.world, Wanted(task.objective, protocol.side_metrics))
        seen = look_later(protocol, decision, policy, spec.key)
    if as_json:
        data = _as_data(protocol, decision, metric, seconds)
        print_json(data | ({"later": _later_data(seen)} if seen else {}))
    else:
        click.echo(click.style(_title(protocol), bold=True))
        for line in _side_by_side(protocol):
            click.echo(line)
        click.echo(_table(decision, metric, wide))
        for line in (*_sizes(decision, metric), *_side_metrics(decision)):
            click.echo(line)
        verb = "is" if decision.learned_is_used else "is not"
        click.echo(f"\nThe learned policy {verb} used: {decision.reason}.")
        for line in _shorter(protocol):
            click.echo(line)
        click.echo(f"Deciding took {seconds:.1f} s, tuning the heuristics included.")
        for line in _later_table(seen, decision, metric) if seen else ():
            click.echo(line)
    if out is not None:
        write_decision(out, decision, protocol, runs[0].path, decode)
        if not as_json:
            click.echo(f"Wrote {out}")


def _title(protocol: EvaluationProtocol) -> str:
    row = protocol.columns()
    jobs, details = jobs_in(row), described(row)
    return (
        f"{jobs[:1].upper()}{jobs[1:]}: {protocol.num_guard_jobsets:,} validation jobsets"
        f"{'; ' if details else ''}{details}"
    )


def _side_by_side(protocol: EvaluationProtocol) -> list[str]:
    """What windows of a log are worth, in a line; nothing where jobsets are drawn."""
    held = protocol.num_disjoint
    if held is None:
        return []
    of = "all jobs before the held-out ones" if protocol.all_before else "its validation part"
    return [f"Windows of a log, of {of}, share jobs: {held:,} fit side by side."]


def _shorter(protocol: EvaluationProtocol) -> list[str]:
    """What to give, in a line, where a log has no room for enough windows; else nothing."""
    held, task = protocol.num_disjoint, protocol.task
    usual, _ = task.spec.presentation.steady(task)
    if held is None or held >= MIN_DISJOINT or not usual:
        return []
    given = {"warmup": protocol.warmup}
    for name, length in usual.items():
        field = task.spec.presentation.options[name].key.rpartition(".")[2]
        given[name] = min(length, getattr(task.workload, field) or length)
    options = [f"--{name} {length * held // MIN_DISJOINT}" for name, length in given.items()]
    return [
        f"Shorter ones come with {' '.join(options)}; but the shorter they are, the more it pays "
        f"to keep jobs waiting."
    ]


def _with_interval(mean: Estimate, sign: str = "") -> str:
    """``5.1 [4.8, 5.4]``; without an interval where there is none."""
    value, low, high = (f"{number:{sign}.3f}" for number in (mean.value, mean.low, mean.high))
    return value if math.isnan(mean.low) else f"{value} [{low}, {high}]"


def _table(decision: GuardDecision, metric: str, wide: bool) -> str:
    """The candidates, the chosen one marked."""
    shown = [name for name in decision.limits if name != metric]
    cut = wide or any(one.num_unfinished for one in decision.candidates)
    titles = ["", "policy", f"{metric} [95%]", *(column_of(name)[0] for name in shown)]
    lines = [[*titles, *(["unfinished"] if cut else []), *(["difference"] if wide else [])]]
    for one in decision.candidates:
        cells = [
            ">" if one.name == decision.name else "",
            one.name,
            _with_interval(one.mean),
            *(column_of(name)[1](one.means[name]) for name in shown),
        ]
        if cut:
            cells.append(f"{one.num_unfinished:,}")
        if wide:
            cells.append(_with_interval(one.difference, "+"))
        lines.append(cells)
    return "\n".join(aligned(lines, names=2))


def _by_size(metric: str, means: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The metric of jobs of each size, of some policies by name; nothing where it is not known."""
    names = by_size(metric, next(iter(means.values())))
    if not names:
        return []
    lines = [["by size of jobs", *(column_of(name)[0] for name in names)]]
    lines += [
        [policy, *(column_of(name)[1](found[name]) for name in names)]
        for policy, found in means.items()
    ]
    return ["", *aligned(lines, names=1)]


def _sizes(decision: GuardDecision, metric: str) -> list[str]:
    """Likewise of the reference, of the best heuristic and of the learned policy."""
    learned = decision.candidates[-1].name
    wanted = (decision.reference, decision.candidates[0].name, decision.name, learned)
    found = {one.name: one.means for one in decision.candidates}
    return _by_size(metric, {name: found[name] for name in dict.fromkeys(wanted)})


def _later_table(later: Later, decision: GuardDecision, metric: str) -> list[str]:
    """What the reference, what was chosen and the learned policy do on later jobs."""
    shown = [name for name in decision.limits if name != metric]
    lines = [["", "policy", f"{metric} [95%]", *(column_of(name)[0] for name in shown)]]
    lines += [
        [
            ">" if one.name == later.chosen else "",
            one.name,
            _with_interval(one.estimate(metric, later.num_disjoint)),
            *(column_of(name)[1](one.mean(name)) for name in shown),
        ]
        for one in later.results
    ]
    broken = [
        f"its {get_metric(name).label} is {worse:.1%} worse than that of {decision.reference}"
        for name, worse in later.beyond.items()
    ]
    words = f"There {later.chosen} keeps all limits."
    if broken:
        words = f"There {later.chosen} does not keep its limits: {', '.join(broken)}."
    title = f"Later: {later.num_jobsets:,} held-out jobsets, which nothing was decided on"
    sizes = _by_size(metric, {one.name: one.means for one in later.results})
    return ["", click.style(title, bold=True), *aligned(lines, names=2), *sizes, "", words]


def _side_metrics(decision: GuardDecision) -> list[str]:
    """What the limits are, and who is out because of them."""
    limits = [
        f"{get_metric(name).label} {limit:.0%}"
        for name, limit in decision.limits.items()
        if math.isfinite(limit)
    ]
    if not limits:
        return []
    said = f"Prices may be worse than those of {decision.reference}, the reference, by at most:"
    dear = [one for one in decision.candidates if one.too_dear]
    return ["", f"{said} {', '.join(limits)}.", *(f"{one.name}: {one.too_dear}." for one in dear)]


def _later_data(later: Later) -> dict[str, Any]:
    return {
        "jobsets": later.num_jobsets,
        "disjoint_windows": later.num_disjoint,
        "beyond": dict(later.beyond),
        "policies": [{"policy": one.name, **one.means} for one in later.results],
    }


def _as_data(
    protocol: EvaluationProtocol, decision: GuardDecision, metric: str, seconds: float
) -> dict[str, Any]:
    return {
        "chosen": decision.name,
        "learned_is_used": decision.learned_is_used,
        "reason": decision.reason,
        "metric": metric,
        "seconds": seconds,
        "jobsets": protocol.num_guard_jobsets,
        "disjoint_windows": decision.num_disjoint,
        "all_before_held_out": protocol.all_before and decision.num_disjoint is not None,
        "reference": decision.reference,
        "limits": plain_limits(decision.limits),
        "candidates": [
            {
                "policy": candidate.name,
                "mean": candidate.mean.value,
                "low": candidate.mean.low,
                "high": candidate.mean.high,
                "difference": candidate.difference.value,
                "difference_low": candidate.difference.low,
                "difference_high": candidate.difference.high,
                "unfinished": candidate.num_unfinished,
                **candidate.side_metrics,
                "too_dear": candidate.too_dear,
            }
            for candidate in decision.candidates
        ],
    }
