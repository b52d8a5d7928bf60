"""What ``metasched bench`` does: measures what is asked for, and shows it beside references."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from rllib_configs.loading import load_config
from tune_jobs.benchmarks.machine import machine
from tune_jobs.benchmarks.measuring import Entry
from tune_jobs.terminal.output import print_json

SUBJECTS = ("simulator", "replay", "sampling", "training")
"""What is measured by default; the others take minutes."""

WITH_PRESET = ("training", "runners")


def report_benchmarks(subjects: Sequence[str], as_json: bool, seconds: float, preset: str) -> None:
    """Measures and prints; the arguments are the options of the command."""
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
        print_json([*(entry.as_dict() for entry in entries), facts])
        return
    for entry in entries:
        click.echo(describe(entry))
    click.echo(_describe_machine(facts))


def describe(entry: Entry) -> str:
    """An entry for people, in two or three lines."""
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


def _parts(entry: Entry) -> str:
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
