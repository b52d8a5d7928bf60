"""``metasched guard``: whether a learned policy may decide on a task, or the best heuristic."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tune_jobs.cli import CONTEXT
from tune_jobs.terminal.tables import aligned

if TYPE_CHECKING:
    from cluster_env.evaluation import Candidate, GuardDecision
    from tune_jobs.comparing.policy_specs import Decode
    from tune_jobs.comparing.protocol import EvaluationProtocol


@click.command(name="guard", context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--config",
    "source",
    metavar="PRESET|FILE",
    help="Cluster, jobs and rules; by default those that the run was trained on.",
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting of it, for instance task.workload.window=200.",
)
@click.option("--objective", help="What decides who is better; by default the config's objective.")
@click.option(
    "--jobsets", type=click.IntRange(2), default=500, help="Validation jobsets to decide on."
)
@click.option(
    "--window",
    type=click.IntRange(1),
    help="Steps in which jobs may arrive, by default the config's, as in metasched compare.",
)
@click.option(
    "--warmup",
    type=click.IntRange(0),
    default=0,
    help="Leave out the jobs that arrive in so many first and last steps of the window.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    help="Seed of the jobsets and of the policies' random numbers.",
)
@click.option(
    "--decode",
    type=click.Choice(["sample", "argmax"]),
    default="sample",
    help="How the learned policy chooses.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the decision, JSON; tune_jobs.comparing.guarding.load_decided reads it.",
)
def command(
    run: Path,
    source: str | None,
    overrides: tuple[str, ...],
    objective: str | None,
    jobsets: int,
    window: int | None,
    warmup: int,
    seed: int,
    decode: "Decode",
    as_json: bool,
    out: Path | None,
) -> None:
    """Decide whether the policy of RUN or the best heuristic is to be used on a task.

    The policy is used if its mean is better than that of the best heuristic with the whole 95 %
    interval of the difference, on validation jobsets of the task, and if it leaves no more jobs
    unfinished. Heuristics that take a number are tuned on other validation jobsets. Jobs that vary
    in training are taken at the point that the other settings of the workload say.

    \b
    Examples:
      metasched guard runs/MY_RUN
      metasched guard runs/MY_RUN --set task.workload.load=1.5 --window 200
      metasched guard runs/MY_RUN --set task.workload.trace=jobs.csv --out decision.json
    """
    from tune_jobs.compare import choose_config, metric_of
    from tune_jobs.comparing.comparison import check_specs
    from tune_jobs.comparing.guarding import calibrate, write_decision
    from tune_jobs.comparing.policy_specs import find_runs, learned_specs, load_runs
    from tune_jobs.comparing.protocol import EvaluationProtocol

    runs = load_runs(find_runs([str(run)]), decode)
    config = choose_config(source, overrides, None, runs, window)
    metric = metric_of(objective, config)
    task = config.task.build(config.name, seed)
    whole = EvaluationProtocol(task, metric, warmup=warmup, num_guard_jobsets=jobsets)
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


def _title(protocol: "EvaluationProtocol") -> str:
    from tune_jobs.comparing.wording import described, jobs_in

    row = protocol.columns()
    jobs, details = jobs_in(row), described(row)
    return (
        f"{jobs[:1].upper()}{jobs[1:]}: {protocol.num_guard_jobsets:,} validation jobsets"
        f"{'; ' if details else ''}{details}"
    )


def _table(decision: "GuardDecision", metric: str) -> str:
    """The candidates, the chosen one marked."""
    best = decision.candidates[0].name
    titles = ["", "policy", f"{metric} [95%]", f"difference to {best}", "unfinished"]
    lines = [titles, *(_cells(candidate, decision) for candidate in decision.candidates)]
    return "\n".join(aligned(lines, names=2))


def _cells(candidate: "Candidate", decision: "GuardDecision") -> list[str]:
    mean, gap = candidate.mean, candidate.difference
    is_best = candidate is decision.candidates[0]
    return [
        ">" if candidate.name == decision.name else "",
        candidate.name,
        f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]",
        "" if is_best else f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]",
        f"{candidate.unfinished:,}",
    ]


def _as_data(decision: "GuardDecision", metric: str, seconds: float) -> dict[str, Any]:
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


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
