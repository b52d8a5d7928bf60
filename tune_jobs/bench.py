"""``metasched bench``: throughput against a reference that is measured in the same run."""

import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from tune_jobs.benchmarks.measuring import Entry

SUBJECTS = ("simulator", "sampling", "training", "tracking")
DEFAULT_SUBJECTS = SUBJECTS[:3]  # what MLflow costs is asked for by name
DEFAULT_SECONDS = 4.0


@click.command(name="bench", context_settings=CONTEXT)
@click.argument("subjects", metavar="[SUBJECT]...", nargs=-1, type=click.Choice(SUBJECTS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list and nothing else.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=DEFAULT_SECONDS,
    help="How long each number is measured, warm-up apart.",
)
@click.option(
    "--preset",
    metavar="PRESET|FILE",
    default="deeprm",
    help="What the subject training trains, by default deeprm.",
)
def command(subjects: tuple[str, ...], as_json: bool, seconds: float, preset: str) -> None:
    """Measure throughput. SUBJECT is simulator, sampling, training or tracking.

    By default the first three are measured; tracking measures what recording in MLflow takes of an
    iteration of deeprm-ppo, with a server that is up, down or slow, and that nothing is lost.

    Every number stands beside a reference that is measured in turns with it, in the same process,
    and shown as the median of five rounds with the smallest and the largest. What is quoted and
    not measured is said to be. Numbers for one core count CPU time, so that other processes
    disturb them little.

    \b
    Examples:
      metasched bench
      metasched bench simulator --seconds 10
      metasched bench sampling training --json > bench.json
      metasched bench training --preset deeprm-ppo
      metasched bench training --preset deeprm-maml
      metasched bench tracking
    """
    from rllib_configs.loading import load_config
    from tune_jobs.benchmarks.machine import machine

    load_config(preset)
    facts = machine()
    entries: list[Entry] = []
    for subject in subjects or DEFAULT_SUBJECTS:
        if not as_json:
            click.echo(f"Measuring {subject} ...", err=True)
        measure: Callable[..., list[Entry]] = import_module(
            f"tune_jobs.benchmarks.{subject}"
        ).measure
        entries += measure(seconds, preset) if subject == "training" else measure(seconds)
    if as_json:
        click.echo(json.dumps([*(entry.as_dict() for entry in entries), facts], indent=1))
        return
    for entry in entries:
        click.echo(_describe(entry))
    click.echo(_describe_machine(facts))


def _describe(entry: "Entry") -> str:
    data = entry.as_dict()
    digits = ",.0f" if data["value"] >= 100 else ".3g"
    ours, low, high, theirs = (
        format(data[key], digits) for key in ("value", "min", "max", "reference_value")
    )
    part = "" if entry.share is None else f", {entry.share:.0%} of an iteration"
    return (
        f"{click.style(entry.name, bold=True)}: {ours} {entry.unit} [{low} to {high}]{part}\n"
        f"  {entry.ratio:,.1f} times as good as {theirs}: {entry.reference}"
    )


def _describe_machine(facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if number)
    return (
        f"{click.style('machine', bold=True)}: {facts['cores']} cores, {facts['cpu']}, load "
        f"average {facts['load_average']:.1f}; Python {facts['python']}, {versions}"
    )


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
