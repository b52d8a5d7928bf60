"""What ``metasched guard`` does: decides on one task, shows why, and keeps the decision."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cluster_env.evaluation import Candidate, GuardDecision
from tune_jobs.comparing.choices import choose_config, metric_of
from tune_jobs.comparing.comparison import check_specs
from tune_jobs.comparing.guarding import calibrate, write_decision
from tune_jobs.comparing.policy_specs import learned_specs
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import Decode, find_runs, load_runs
from tune_jobs.comparing.wording import described, jobs_in
from tune_jobs.terminal.tables import aligned


def report_decision(
    *,
    run: Path,
    source: str | None,
    overrides: Sequence[str],
    objective: str | None,
    num_jobsets: int,
    shorthands: Mapping[str, str],
    warmup: int,
    seed: int,
    decode: Decode,
    as_json: bool,
    out: Path | None,
) -> None:
    """Lets the guard decide, and prints what it found; the arguments are the command's options."""
    runs = load_runs(find_runs([str(run)]), decode)
    config = choose_config(source, overrides, shorthands, runs)
    metric = metric_of(objective, config)
    task = config.task.build(config.name, seed)
    whole = EvaluationProtocol(task, metric, warmup=warmup, num_guard_jobsets=num_jobsets)
    protocol = whole.at(*whole.values())
    spec = learned_specs(runs, decode)[0]
    check_specs(protocol, [spec])
    policy = spec.make(protocol).members[0]
    calibration = calibrate(protocol)
    decision = calibration.guard.decide(policy, spec.key)
    seconds = calibration.seconds + decision.seconds
    if as_json:
        click.echo(json.dumps(_as_data(decision, metric, seconds), indent=1))
    else:
        click.echo(click.style(_title(protocol), bold=True))
        click.echo(_table(decision, metric))
        verb = "is" if decision.learned_is_used else "is not"
        click.echo(f"\nThe learned policy {verb} used: {decision.reason}.")
        click.echo(f"Deciding took {seconds:.1f} s, tuning the heuristics included.")
    if out is not None:
        write_decision(out, decision, run, decode)
        if not as_json:
            click.echo(f"Wrote {out}")


def _title(protocol: EvaluationProtocol) -> str:
    row = protocol.columns()
    jobs, details = jobs_in(row), described(row)
    return (
        f"{jobs[:1].upper()}{jobs[1:]}: {protocol.num_guard_jobsets:,} validation jobsets"
        f"{'; ' if details else ''}{details}"
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
        f"{candidate.num_unfinished:,}",
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
                "unfinished": candidate.num_unfinished,
            }
            for candidate in decision.candidates
        ],
    }
