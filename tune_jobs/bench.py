"""``metasched bench``: throughput against a reference that is measured in the same run."""

import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from tune_jobs.benchmarks.measuring import Entry

SUBJECTS = ("simulator", "sampling", "training")
MORE_SUBJECTS = ("tracking", "scaling")  # they take minutes, so only by name
WITH_PRESET = ("training", "scaling")
DEFAULT_SECONDS = 4.0


@click.command(name="bench", context_settings=CONTEXT)
@click.argument(
    "subjects", metavar="[SUBJECT]...", nargs=-1, type=click.Choice(SUBJECTS + MORE_SUBJECTS)
)
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
    help="What the subjects training and scaling train, by default deeprm.",
)
def command(subjects: tuple[str, ...], as_json: bool, seconds: float, preset: str) -> None:
    """Measure throughput. SUBJECT is simulator, sampling or training; by default all of these.

    Every number stands beside a reference that is measured in turns with it, in the same process,
    and shown as the median of five rounds with the smallest and the largest. What is quoted and
    not measured is said to be. Numbers for one core count CPU time, so that other processes
    disturb them little.

    The subject scaling takes about two minutes: iterations with 1, 2 and 4 runners part by part,
    how many bytes travel, a model of these costs that says what 10 to 1,000 runners would do, and
    how far it is off for up to 100 stand-ins of runners, which wait for as long as sampling takes
    and return as many bytes. The subject tracking measures what recording in MLflow takes of an
    iteration of deeprm-ppo, in a local database and on a server that is up, down or slow, and that
    nothing is lost.

    \b
    Examples:
      metasched bench
      metasched bench simulator --seconds 10
      metasched bench sampling training --json > bench.json
      metasched bench training --preset deeprm-ppo
      metasched bench training --preset deeprm-maml
      metasched bench tracking
      metasched bench scaling --preset deeprm-ppo
    """
    from rllib_configs.loading import load_config
    from tune_jobs.benchmarks.machine import machine

    load_config(preset)
    facts = machine()
    entries: list[Entry] = []
    for subject in subjects or SUBJECTS:
        if not as_json:
            click.echo(f"Measuring {subject} ...", err=True)
        measure: Callable[..., list[Entry]] = import_module(
            f"tune_jobs.benchmarks.{subject}"
        ).measure
        entries += measure(seconds, preset) if subject in WITH_PRESET else measure(seconds)
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
    part = "" if entry.share is None else f", {entry.share:.1%} of an iteration"
    return (
        f"{click.style(entry.name, bold=True)}: {ours} {entry.unit} [{low} to {high}]{part}\n"
        f"  {entry.ratio:,.1f} times as good as {theirs}: {entry.reference}{_parts(entry)}"
    )


def _parts(entry: "Entry") -> str:
    """What an entry is made of, as a line of its own."""
    if not entry.parts:
        return ""
    parts = (
        f"{name.replace('_', ' ')} {value:,.3g}"
        if value < 1000
        else f"{name.replace('_', ' ')} {value:,.0f}"
        for name, value in entry.parts.items()
    )
    return f"\n  {', '.join(parts)}"


def _describe_machine(facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if number)
    return (
        f"{click.style('machine', bold=True)}: {facts['cores']} cores, {facts['cpu']}, load "
        f"average {facts['load_average']:.1f}; Python {facts['python']}, {versions}"
    )


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
