"""What ``metasched bench`` does: measures what is asked for, and shows it beside references."""

import os
import platform
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import click

from rllib_configs.config.loading import load_config
from tune_jobs.benchmarks.measuring import Entry
from tune_jobs.tables.frames import frame_of
from tune_jobs.tables.report import Report
from tune_jobs.tracking.provenance import processor, version

SUBJECTS = ("simulator", "replay", "sampling", "training")
"""What is measured by default; the other takes minutes."""

PACKAGES = ("metasched", "numpy", "numba", "gymnasium", "torch", "ray")


def measure_subjects(
    subjects: Sequence[str], seconds: float, preset: str | None, say: Callable[[str], None]
) -> Report:
    """Measures; the arguments are the options of the command, and what tells how far it is."""
    if preset is not None:
        load_config(preset)
    facts = machine()
    entries: list[Entry] = []
    for subject in subjects or SUBJECTS:
        say(f"Measuring {subject} ...")
        module = import_module(f"tune_jobs.benchmarks.{subject}")
        measure: Callable[..., list[Entry]] = module.measure
        chosen = [preset] if preset and subject in ("training", "runners") else []
        entries += measure(seconds, *chosen)
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if number)
    last = (
        f"{click.style('machine', bold=True)}: {facts['cores']} cores, {facts['cpu']}, load "
        f"average {facts['load_average']:.1f}; Python {facts['python']}, {versions}"
    )
    rows = [entry.as_dict() for entry in entries]
    return Report(
        text="\n".join([*map(describe, entries), last]),
        tables={"numbers": partial(frame_of, rows)},
        data=[*rows, facts],
    )


def describe(entry: Entry) -> str:
    """An entry for people, in two or three lines."""
    data = entry.as_dict()
    digits = ",.0f" if data["value"] >= 100 else ".3g"
    ours, low, high, theirs = (
        format(data[key], digits) for key in ("value", "min", "max", "reference_value")
    )
    part = "" if entry.share is None else f", {entry.share:.1%} of an iteration"
    parts = ", ".join(
        f"{name.replace('_', ' ')} {format(value, ',.3g' if value < 1000 else ',.0f')}"
        for name, value in entry.parts.items()
    )
    last_line = f"\n  {parts}" if parts else ""
    return (
        f"{click.style(entry.name, bold=True)}: {ours} {entry.unit} [{low} to {high}]{part}\n"
        f"  {entry.ratio:,.1f} times as good as {theirs}: {entry.reference}{last_line}"
    )


def machine() -> dict[str, Any]:
    """What this ran on: cores, CPU and versions, as the entry ``machine``."""
    return {
        "name": "machine",
        "cores": len(os.sched_getaffinity(0)),
        "cpu": processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_average": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }
