"""What ``make soak`` does: reads the processes, keeps and shows what they gained, judges it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from cluster_env.core.errors import Failure, InputError
from rllib_configs.loading import load_config
from tune_jobs.benchmarks.growth import LIMITS, TOTAL_LIMITS, Growth, growths
from tune_jobs.benchmarks.soak import READINGS, soak
from tune_jobs.terminal.tables import aligned, write_table

WARM_UP = 1 / 3
Draw = Callable[[Path, Path, float, Mapping[str, float], str], None]


def report_soak(
    minutes: float, every_s: float, preset: str, runners: int, out: Path, draw: Draw
) -> None:
    """Soaks, and judges; the arguments but `draw` are the options of the command.

    Args:
        minutes: how long.
        every_s: seconds between two readings.
        preset: what is trained.
        runners: sampling processes.
        out: a new folder.
        draw: called with the table, the image, the minutes of warm-up, the limits and a note.

    Raises:
        InputError: if the folder exists already.
        Failure: if something grows too fast.
    """
    config = load_config(preset)
    if out.exists():
        raise InputError(f"{out} exists already; give --out a new folder")
    readings = soak(out, preset, runners, minutes, every_s, click.echo)
    warm_up = WARM_UP * minutes
    found = growths(readings, warm_up)
    write_table(out / "growth.csv", [asdict(each) for each in found])
    note = f"{config.name} with {runners} runners, for {minutes:g} minutes"
    draw(out / READINGS, out / "soak.png", warm_up, LIMITS, note)
    click.echo("\n".join(describe(found)))
    click.echo(f"Wrote {out / 'soak.png'}, drawn from {out / READINGS}")
    judge(found)


def describe(found: Sequence[Growth]) -> list[str]:
    """A line for each process: what it gains a minute."""
    slopes = {(each.process, each.quantity): each for each in found}
    lines = [("gained a minute", *LIMITS)]
    for name, limits in (("limit of each", LIMITS), ("limit of the total", TOTAL_LIMITS)):
        lines.append((name, *(f"{limit:g}" for limit in limits.values())))
    for process in dict.fromkeys(each.process for each in found):
        cells = (slopes.get((process, quantity)) for quantity in LIMITS)
        lines.append((process, *("" if c is None else f"{c.slope:+.2f}" for c in cells)))
    return aligned(lines, names=1)


def judge(found: Sequence[Growth]) -> None:
    """Raises Failure if something grows too fast."""
    fast = [
        f"{each.quantity} of {each.process} by {each.slope:.2f} a minute (limit {each.limit:g})"
        for each in found
        if each.is_too_fast
    ]
    if fast:
        raise Failure(f"grows too fast: {', '.join(fast)}")
