"""What ``metasched guard`` does: decides on one task, shows why, and keeps the decision."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.evaluation import Candidate, GuardDecision
from rllib_configs.task_schema import TaskSection
from tune_jobs.comparing.choices import choose_config, metric_of
from tune_jobs.comparing.comparison import calibrate_at, check_entrants, scene_of
from tune_jobs.comparing.guarding import write_decision
from tune_jobs.comparing.policy_specs import Decode, find_runs, learned_specs, load_runs
from tune_jobs.comparing.protocol import Setting
from tune_jobs.comparing.wording import arriving
from tune_jobs.terminal.tables import aligned


def report_decision(
    *,
    run: Path,
    source: str | None,
    overrides: Sequence[str],
    objective: str | None,
    num_jobsets: int,
    window: int | None,
    warmup: int,
    seed: int,
    decode: Decode,
    as_json: bool,
    out: Path | None,
) -> None:
    """Lets the guard decide, and prints what it found; the arguments are the command's options."""
    runs = load_runs(find_runs([str(run)]), decode)
    config = choose_config(source, overrides, None, runs, window)
    metric = metric_of(objective, config)
    setting = Setting(config.task, metric, seed=seed, warmup=warmup, guard=num_jobsets)
    (load,) = setting.loads()
    task = setting.at(load)
    spec = learned_specs(runs, decode)[0]
    check_entrants(setting, [spec], task)
    policy = spec.make(scene_of(setting, task)).members[0]
    calibration = calibrate_at(setting, task)
    decision = calibration.guard.decide(policy, spec.key)
    seconds = calibration.seconds + decision.seconds
    if as_json:
        click.echo(json.dumps(_as_data(decision, metric, seconds), indent=1))
    else:
        click.echo(click.style(_title(task, load, setting), bold=True))
        click.echo(_table(decision, metric))
        verb = "is" if decision.learned_is_used else "is not"
        click.echo(f"\nThe learned policy {verb} used: {decision.reason}.")
        click.echo(f"Deciding took {seconds:.1f} s, tuning the heuristics included.")
    if out is not None:
        write_decision(out, decision, run, decode)
        if not as_json:
            click.echo(f"Wrote {out}")


def _title(task: TaskSection, load: float, setting: Setting) -> str:
    trace = task.workload.trace_name
    arrivals = arriving(task.workload.window, setting.warmup)
    return (
        f"{f'Trace {trace}, load' if trace else 'Load'} {load:.0%}: {setting.guard:,} "
        f"validation jobsets; {arrivals}, rules of the {task.rules}"
        f"{' code' if task.rules == 'released' else ''}"
    )


def _table(decision: GuardDecision, metric: str) -> str:
    """The candidates, the chosen one marked."""
    best = decision.candidates[0].name
    titles = ["", "policy", f"{metric} [95%]", f"difference to {best}", "unfinished"]
    lines = [titles, *(_cells(candidate, decision) for candidate in decision.candidates)]
    return "\n".join(aligned(lines, names=2))


def _cells(candidate: Candidate, decision: GuardDecision) -> list[str]:
    mean, gap = candidate.mean, candidate.difference
    is_best = candidate is decision.candidates[0]
    return [
        ">" if candidate.name == decision.name else "",
        candidate.name,
        f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]",
        "" if is_best else f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]",
        f"{candidate.unfinished:,}",
    ]


def _as_data(decision: GuardDecision, metric: str, seconds: float) -> dict[str, Any]:
    return {
        "chosen": decision.name,
        "learned_is_used": decision.learned_is_used,
        "reason": decision.reason,
        "metric": metric,
        "seconds": seconds,
        "candidates": [
            {
                "policy": candidate.name,
                "mean": candidate.mean.value,
                "low": candidate.mean.low,
                "high": candidate.mean.high,
                "difference": candidate.difference.value,
                "difference_low": candidate.difference.low,
                "difference_high": candidate.difference.high,
                "unfinished": candidate.unfinished,
            }
            for candidate in decision.candidates
        ],
    }
