"""Reference pages, written from the program: commands, presets, settings, metrics, Python."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import metasched
from cluster_env.evaluation import METRICS
from cluster_env.objectives import OBJECTIVES
from cluster_env.worlds import WORLDS
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.loading import PRESETS, preset_names
from rllib_configs.config.settings import list_settings
from tune_jobs.cli import GROUPS
from tune_jobs.cli import metasched as program
from tune_jobs.terminal.options import first_comment

REPOSITORY = Path(__file__).resolve().parents[2]


def write_reference(folder: Path) -> None:
    """Writes all pages into a folder."""
    load_extensions()
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "commands": _commands(),
        "presets": _presets(),
        "settings": _settings(),
        "metrics": _metrics(),
        "python": _python(),
    }
    for name, lines in pages.items():
        (folder / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _commands() -> Iterator[str]:
    """What ``--help`` prints, of every command."""
    yield "# Commands\n"
    for group, names in GROUPS.items():
        yield f"## {group}\n"
        for name in names:
            command = program.get_command(click.Context(program), name)
            if command is None:
                raise ValueError(f"there is no command {name}")
            context = click.Context(command, info_name=f"metasched {name}", max_content_width=90)
            yield f"### {name}\n\n```text\n{command.get_help(context)}\n```\n"


def _presets() -> Iterator[str]:
    """The presets, each with the comment at its top."""
    yield "# Presets\n\nEach is trained by `metasched train PRESET`.\n"
    rows = ((f"`{name}`", first_comment(PRESETS / f"{name}.yaml")) for name in preset_names())
    yield from _table(("Preset", "What it trains"), rows)


def _settings() -> Iterator[str]:
    """All settings of a config, a table for each section."""
    yield "# Settings\n\nEach is changed by `--set KEY=VALUE`.\n"
    found = list_settings()
    for section in dict.fromkeys(setting.key.rpartition(".")[0] for setting in found):
        rows = (
            (f"`{one.key}`", f"`{one.default}`" if one.default else "", one.explanation)
            for one in found
            if one.key.rpartition(".")[0] == section
        )
        yield f"## {section or 'Whole runs'}\n"
        yield from _table(("Setting", "Default", "Meaning"), rows)


def _metrics() -> Iterator[str]:
    """What comparisons measure, what policies are trained for, and the heuristics by world."""
    yield "# Metrics, objectives and heuristics\n\n## Metrics\n"
    metrics = [(name, METRICS.get(name)) for name in METRICS.names()]
    yield from _table(
        ("Metric", "Meaning", "Per", "Better"),
        (
            (f"`{name}`", one.label, one.per, "higher" if one.higher_is_better else "lower")
            for name, one in metrics
        ),
    )
    yield "## Objectives\n"
    objectives = ((f"`{name}`", OBJECTIVES.get(name).label) for name in OBJECTIVES.names())
    yield from _table(("Objective", "Mean cost of an episode"), objectives)
    yield "## Heuristics\n"
    worlds = [(name, WORLDS.get(name).heuristics.names()) for name in WORLDS.names()]
    rows = ((f"`{world}`", ", ".join(f"`{name}`" for name in names)) for world, names in worlds)
    yield from _table(("World", "Heuristics"), rows)


def _python() -> Iterator[str]:
    """The public Python API, by autodoc."""
    yield "# Python\n\nEverything comes from `import metasched`.\n"
    for name in metasched.__all__:
        if name != "__version__":
            kind = "class" if isinstance(getattr(metasched, name), type) else "function"
            yield f"```{{eval-rst}}\n.. auto{kind}:: metasched.{name}\n```\n"
