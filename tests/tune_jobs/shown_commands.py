"""The commands that pages and help texts show, and what has to be there for them to run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import yaml

from cluster_env.core.seeding import Split
from meta.adaptation import untrained_policy
from meta.panda.advisor import initial_advisor
from meta.panda.records import record_episodes
from rllib_configs.config.loading import load_config, preset_names, write_config
from rllib_configs.config.schema import prepare
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import write_policy
from tests.conftest import REPOSITORY
from tune_jobs import cli
from tune_jobs.measuring.trained_runs import is_heuristic
from tune_jobs.runs.checkpoints import Checkpoints
from tune_jobs.sweeps.definition import load_sweep
from tune_jobs.sweeps.folder import create_sweep

PACKAGES = ("cluster_env", "docker", "meta", "rllib_configs", "tune_jobs")
PAGES = [
    REPOSITORY / "README.md",
    *(path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.md"))),
]
_LINE = re.compile(r"^ {4,}(?:\w+=\S+ )*metasched .+$|python -m tune_jobs\.\w+ .+$", re.MULTILINE)
_INLINE = re.compile(r"`(metasched \w+ [^`.]*)`")
_PLACEHOLDER = re.compile(r"^[A-Z_]+(,\.\.\.)?$")
_OUTPUTS = ("--run", "--out", "--set", "--at", "--loads")
_LOGS = re.compile(r"^(?:task\.workload\.(?:trace|path)|workload\.trace)=(.+)$")
_LOG_OPTIONS = ("--trace", "--simulate", "--site", "--repeat", "--starts")
FROM_SLURM = ("jobs.txt", "slurm.conf", "qos.txt")
"""What a site exports or has; the pages below say so."""

PUBLIC = {
    "tune_jobs/figures/hpc.md": ("lublin_1.swf", "lublin_2.swf", "nasa.swf.gz", "theta.swf.gz")
}
"""Logs of others that a page of results is about."""

AT_SLURM = ("cluster_env/workloads/slurm/README.md", "tune_jobs/site/README.md")
_READ = ("--policies", "--runs", "--rows", "--resume")


@dataclass(frozen=True)
class Shown:
    """A command as it is shown.

    Attributes:
        place: where it is shown.
        words: of the command line, from the name of the command on.
        environment: variables that stand before it.
        block: whether it stands in a block of its own, and not in a sentence.
        output: file that a shell writes its output to.
    """

    place: str
    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    block: bool = True
    output: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {shlex.join(self.words)}"


def shown_commands() -> list[Shown]:
    """All of them: in indented blocks and in sentences of pages, and in help texts."""
    found = [shown for path in PAGES for shown in on_page(path)]
    for name in ("", *cli.COMMANDS):
        command = cli.metasched.get_command(None, name) if name else cli.metasched  # type: ignore[arg-type]
        lines = re.findall(r"^ *metasched (.+)$", command.help or "", re.MULTILINE)
        # A remark stands two spaces behind the command.
        found += [read_line(f"{name or 'metasched'} --help", f"metasched {line}") for line in lines]
    return list(dict.fromkeys(found))


def on_page(path: Path) -> Iterator[Shown]:
    """Those of a page; a sentence may name a command with a placeholder, which is left out."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    place = path.relative_to(REPOSITORY).as_posix()
    for line in _LINE.findall(text):
        yield read_line(place, line)
    for line in _INLINE.findall(text):
        shown = replace(read_line(place, line), block=False)
        if shown.words[0] in cli.COMMANDS and not any(map(_PLACEHOLDER.match, shown.words)):
            yield shown


def read_line(place: str, line: str) -> Shown:
    """A command as a page or a help text shows it."""
    line = re.sub(r"python -m tune_jobs\.", "metasched ", line.strip())
    words = shlex.split(re.split(r"(?<=\S) {2,}(?=[a-z])| > ", line)[0], comments=True)
    begin = words.index("metasched")
    variables = (word.partition("=") for word in words[:begin])
    output = re.search(r" > (\S+)", line)
    return Shown(
        place,
        tuple(words[begin + 1 :]),
        tuple((key, value) for key, _, value in variables),
        output=output[1] if output else "",
    )


def logs_read(words: tuple[str, ...]) -> list[str]:
    """Logs, and files about their sites, that a command reads."""
    name, *rest = words
    logs = rest[:1] if name in ("trace", "replay", "whatif", "report") else []
    for option, value in pairwise([name, *rest, ""]):
        if option in _LOG_OPTIONS and value and not value.startswith("--"):
            logs += value.split(",")
        elif found := _LOGS.match(option):
            logs.append(found[1])
    return [log for log in logs if not _PLACEHOLDER.match(log) and log != "null"]


def files_made(shown: Shown) -> list[str]:
    """Files that a command writes, as its line names them."""
    words = shown.words
    made = [value for option, value in pairwise(words) if option == "--out"]
    return [*made, shown.output, *(words[1:2] if words[0] == "generate" else ())]


def prepare_for(words: tuple[str, ...]) -> None:
    """Writes what a command reads and nobody has made: untrained runs, YAML files, a sweep."""
    name, *rest = words
    option = ""
    for index, word in enumerate(rest):
        if word.startswith("training.records="):
            _make_records(Path(word.partition("=")[2]))
        option, before = (word, option) if word.startswith("--") else ("", option)
        if option or before in _OUTPUTS:
            continue
        if name == "tune" and before == "--resume":
            _make_sweep(Path(word))
        elif before == "--logs":
            Path(word).mkdir()
        elif word.endswith(".yaml"):
            _make_yaml(name, Path(word))
        elif before in _READ or (
            name in ("adapt", "sync") and index == 0 and word not in preset_names()
        ):
            _make_all(name, word, before)
        elif name == "study" and not before:
            _make_run(
                word, rest[rest.index("--family") + 1] if "--family" in rest else "objectives"
            )


def _make_all(name: str, word: str, option: str) -> None:
    if option == "--runs" and name not in ("figure",):
        return  # where runs are to be
    if option == "--rows":
        Path(word).mkdir(parents=True)
        return
    for part in word.split(","):
        if not is_heuristic(part):
            _make_run(part)


def _make_run(name: str, family: str = "") -> None:
    """A run whose policy has the weights that a seed draws, with a checkpoint."""
    path = Path(re.sub(r"[*?]", "0", name))
    if path.exists():
        return
    if "panda" in name:
        _make_agents(path)
        return
    preset = "deeprm-ppo"
    if family or "joint" in name.lower():
        preset = "deeprm-joint" if "joint" in name.lower() else "deeprm-maml"
    changes = {"training.family": family} if family else {}
    config = prepare(load_config(preset, changes))
    policy = untrained_policy(config, 0)
    write_policy(policy.weights, config, path / "policy")
    write_config(config, path / "config.yaml")
    Checkpoints(path / "checkpoints").write(1, lambda folder: None, keep=1)


def _make_agents(path: Path) -> None:
    """A run of PANDA's world, whose weights are 0."""
    config = prepare(load_config("panda-populations"))
    shapes = network_of(config).shapes(config, config.task.world)
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    write_policy(weights, config, path / "policy")
    write_config(config, path / "config.yaml")


def _make_records(path: Path) -> None:
    """Records of a few consumers, all with the same weights."""
    config = load_config("panda-elastic", ["task.workload.window=10"])
    task = config.task.build()
    network = initial_advisor(config, task.world)
    record_episodes(network, task, task.jobsets(Split.TRAIN, [0]), episodes=2).write(path)


def _make_sweep(path: Path) -> None:
    create_sweep(load_sweep("smoke"), path.parent, path).unlock()


def _make_yaml(name: str, path: Path) -> None:
    written = {
        "train": {"name": "mine"},
        "tune": {"preset": "deeprm-ppo", "space": {"training.lr": {"grid": [1e-3, 1e-2]}}},
        "results": {
            "seeds": [0],
            "runs": [{"name": "mine-{seed}", "preset": "deeprm-ppo", "iterations": 9}],
            "steps": [
                {
                    "call": "compare",
                    "options": {"policies": "sjf,{out}/mine-*", "out": "{out}/compared"},
                }
            ],
        },
        "adapt": {"objective": "makespan"},
    }
    path.write_text(yaml.safe_dump(written[name]))
