"""Wrong files: YAML, recorded jobs, tables and runs that were damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.cluster_env.test_yaml_text import BOMB
from tests.tune_jobs.untrained_runs import make_run
from tests.tune_jobs.wrong_inputs.conftest import JOBS, Refuse
from tune_jobs.measuring.trained_runs import find_runs

YAML = {
    "empty": "",
    "list": "[1, 2]",
    "text": "hello",
    "number": "3",
    "no yaml": "a: [1",
    "tabs": "\ttraining: 1",
    "two documents": "seed: 1\n---\nseed: 2\n",
    "alias bomb": BOMB,
    "alias of itself": "task: &a {world: *a}\n",
    "deep": "training: " + "[" * 20_000,
    "deep table": "{a: " * 200 + "1" + "}" * 200,
    "key twice": "seed: 1\nseed: 2\n",
    "inner key twice": "training: {lr: 1, lr: 2}\n",
    "tag": "seed: !!python/object/apply:os.getcwd []\n",
    "binary": "name: !!binary gIGC\n",
    "date": "seed: 2020-01-01\n",
    "no date": "seed: 2020-13-45\n",
    "digits": "seed: " + "9" * 5000,
    "long": "name: " + "x" * 1_100_000,
    "long name": "name: " + "x" * 100_000,
    "long key": "x" * 100_000 + ": 1\n",
    "number as key": "1: 2\n",
    "list as key": "{[1]: 2}\n",
    "null as key": "null: 2\n",
    "true": "training: {iterations: true}\n",
    "huge": "training: {iterations: 1.0e+30}\n",
    "wide": "training: {hidden: 100000000}\n",
    "nan": "training: {lr: .nan}\n",
    "load": "task: {workload: {load: 1.0e-9}}\n",
    "section as list": "training: []\n",
    "section as text": "task: none\n",
    "world as number": "task: {world: 3}\n",
    "many values": "task: {objective: [" + "1, " * 50_000 + "1]}\n",
    "old algorithm": "training: {algorithm: rllib_ppo}\n",
    "unknown key": "trainin: {lr: 1}\n",
    "address": "tracking: {uri: 'foo://x'}\n",
    "name": "name: ../up\n",
    "set": "training: !!set {a, b}\n",
    "zero byte": "name: a\0b\n",
}


@pytest.mark.parametrize("text", YAML.values(), ids=YAML)
def test_a_wrong_config_is_refused(text: str, made: Path, tmp_path: Path, refuse: Refuse) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    refuse(f"train {file} --set training.lr=-1" if text == "" else f"train {file}")


COMMANDS = (
    "tune {}",
    "results {}",
    "compare --config {}",
    "adapt runs/scorer --task {}",
    "study runs/good --family {}",
    "train deeprm-maml --set training.family={}",
)


@pytest.mark.parametrize(
    "name", ["list", "alias bomb", "deep", "key twice", "tag", "number as key"]
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_file_of_another_kind_is_refused(
    name: str, command: str, tmp_path: Path, refuse: Refuse
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(YAML[name])
    refuse(command.format(file))


SWEEPS = {
    "no space": "settings: {}",
    "empty space": "space: {}",
    "no kind": "space: {training.lr: {}}",
    "two kinds": "space: {training.lr: {grid: [1], choice: [1]}}",
    "empty grid": "space: {training.lr: {grid: []}}",
    "range": "space: {training.lr: {uniform: [2, 1]}}",
    "nan": "space: {training.lr: {uniform: [.nan, 1]}}",
    "key": "space: {training.nosuch: {grid: [1]}}",
    "value": "space: {training.iterations: {grid: [true]}}",
    "seed": "space: {seed: {grid: [1]}}",
    "search": "{space: {training.lr: {grid: [1]}}, search: nosuch}",
    "trials": "{space: {training.lr: {grid: [1]}}, trials: 1.0e+12}",
    "name": "{space: {training.lr: {grid: [1]}}, name: a/b}",
    "preset": "{space: {training.lr: {grid: [1]}}, preset: nosuch}",
    "both": "{space: {training.lr: {grid: [1]}}, settings: {training.lr: 1}}",
}


@pytest.mark.parametrize("text", SWEEPS.values(), ids=SWEEPS)
def test_a_wrong_sweep_is_refused(text: str, tmp_path: Path, refuse: Refuse) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    refuse(f"tune {tmp_path / 'mine.yaml'}")


HEADER = "arrival,duration,cpu,gpu\n"
TRACES = {
    "empty": "",
    "no header": "0,1,1,1\n",
    "semicolons": HEADER.replace(",", ";"),
    "header alone": HEADER,
    "name twice": "arrival,duration,cpu,cpu\n0,1,1,1\n",
    "one resource": "arrival,duration,cpu\n0,1,1\n",
    "no arrival": "duration,cpu,gpu\n1,1,1\n",
    "cell missing": HEADER + "0,1,1\n",
    "cell more": HEADER + "0,1,1,1,1\n",
    "fraction": HEADER + "0,1.5,1,1\n",
    "text": HEADER + "0,one,1,1\n",
    "nan": HEADER + "0,nan,1,1\n",
    "negative": HEADER + "-1,1,1,1\n",
    "no duration": HEADER + "0,0,1,1\n",
    "nothing asked": HEADER + "0,1,0,0\n",
    "too large": HEADER + f"0,1,{10**12},1\n",
    "digits": HEADER + "0,1," + "9" * 5000 + ",1\n",
    "long cell": HEADER + "0,1," + "9" * 200_000 + ",1\n",
    "too wide": JOBS.replace(",1\n", ",99\n"),
    "too long": JOBS.replace("0,1,1,1\n", "0,99,1,1\n"),
    "too far": HEADER + f"0,1,1,1\n{2**40},1,1,1\n",
    "too short": HEADER + "0,1,1,1\n1,1,1,1\n",
    "class": "arrival,duration,cpu,gpu,class\n" + "".join(f"{k},1,1,1,3\n" for k in range(400)),
    "hole": HEADER + "".join(f"{k},1,1,1\n" for k in (*range(60), 999)),
    "open quote": HEADER + '0,1,"1,1\n',
    "zero byte": HEADER + "0,1,\0,1\n",
}


@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_a_wrong_trace_is_refused(text: str, tmp_path: Path, refuse: Refuse) -> None:
    (tmp_path / "jobs.csv").write_text(text)
    refuse(f"compare --policies sjf --set task.workload.trace={tmp_path / 'jobs.csv'}")


def test_a_trace_in_another_encoding_is_refused(tmp_path: Path, refuse: Refuse) -> None:
    (tmp_path / "jobs.csv").write_bytes(HEADER.encode("utf-16"))
    refuse(f"compare --policies sjf --set task.workload.trace={tmp_path / 'jobs.csv'}")


Damage = Callable[[Path], object]


def _weights(change: Callable[[dict[str, Any]], object]) -> Damage:
    def damage(run: Path) -> None:
        file = run / "policy" / "weights.pt"
        torch.save(change(torch.load(file, weights_only=True)), file)

    return damage


def _spoiled(value: float) -> Damage:
    return _first(lambda tensor: torch.full_like(tensor, value))


def _first(change: Callable[[torch.Tensor], object]) -> Damage:
    """Changes one of the weights."""

    def damage(tensors: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(tensors))
        return {**tensors, name: change(tensors[name])}

    return _weights(damage)


POLICIES: dict[str, Damage] = {
    "nan": _spoiled(np.nan),
    "inf": _spoiled(np.inf),
    "minus inf": _spoiled(-np.inf),
    "layer missing": _weights(lambda t: dict(list(t.items())[1:])),
    "other width": _first(lambda tensor: torch.zeros(9)),
    "list": _weights(lambda t: list(t.values())),
    "text": _weights(lambda t: dict.fromkeys(t, "x")),
    "number": _weights(lambda t: dict.fromkeys(t, 3.0)),
    "tables": _weights(lambda t: {"network": t}),
    "cut": lambda run: _cut(run / "policy" / "weights.pt"),
    "emptied": lambda run: (run / "policy" / "weights.pt").write_bytes(b""),
    "noise": lambda run: (run / "policy" / "weights.pt").write_bytes(bytes(range(256)) * 9),
    "no weights": lambda run: (run / "policy" / "weights.pt").unlink(),
    "no policy": lambda run: shutil.rmtree(run / "policy"),
    "no config": lambda run: (run / "policy" / "config.yaml").unlink(),
    "config of noise": lambda run: (run / "policy" / "config.yaml").write_bytes(b"\xff\xfe\x00"),
    "config of another": lambda run: (run / "policy" / "config.yaml").write_text(
        "name: other\ntraining: {network: set_scorer}\n"
    ),
    "config with a key twice": lambda run: (run / "policy" / "config.yaml").write_text(
        "name: a\nname: b\n"
    ),
}


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    "command",
    [
        "compare --policies {}",
        "compare --decide --policies {}",
        "adapt {} --task objective=makespan",
        "train deeprm-smoke --set training.start={}",
    ],
)
@pytest.mark.parametrize("damage", POLICIES.values(), ids=POLICIES)
def test_a_damaged_policy_is_refused(
    damage: Damage, command: str, made: Path, tmp_path: Path, refuse: Refuse
) -> None:
    run = tmp_path / "run"
    shutil.copytree(made / "runs" / ("scorer" if command.startswith("adapt") else "good"), run)
    damage(run)
    error = refuse(command.format(run))
    assert "can be adapted" not in error


TABLES = {
    "noise": b"\xff\xfe\x00",
    "empty": b"",
    "no iteration": b"a,b\n1,2\n",
    "text": b"iteration,train/return_mean\n1,x\n",
    "pickle": b"\x80\x04\x95",
}


@pytest.mark.parametrize("content", TABLES.values(), ids=TABLES)
def test_a_damaged_table_of_metrics_is_refused(
    content: bytes, made: Path, tmp_path: Path, refuse: Refuse
) -> None:
    run = tmp_path / "run"
    shutil.copytree(made / "runs" / "good", run)
    (run / "metrics.csv").write_bytes(content)
    refuse(f"figure learning-curves --runs {run} --out {tmp_path / 'out'}")


def test_a_start_that_was_killed_is_no_run_for_a_glob(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    killed = make_run(tmp_path / "killed")
    shutil.rmtree(killed / "policy")
    (killed / "metrics.csv").unlink()
    trained = make_run(tmp_path / "trained")
    assert find_runs([f"{tmp_path}/*"]) == [trained]
    assert "is passed over, because it was stopped before it trained" in caplog.text


@pytest.mark.parametrize(
    "imports",
    ["nosuch", "raises", "ends", "wrong syntax", "os.nosuch", "..", "broken", "says_much"],
)
def test_a_wrong_extension_is_refused(
    imports: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuse: Refuse
) -> None:
    (tmp_path / "raises.py").write_text("raise RuntimeError('out of\\norder')")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / "says_much.py").write_text("raise RuntimeError('x' * 10_000)")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("METASCHED_IMPORTS", imports)
    for command in (
        "train deeprm-smoke",
        "compare --policies sjf",
        "adapt runs/scorer --task objectives:1",
    ):
        assert "METASCHED_IMPORTS names" in refuse(command)


@pytest.mark.parametrize(
    "command",
    [
        "compare --policies sjf",
        "compare --decide --policies runs/good",
        "adapt runs/scorer --task objective=makespan",
        "study runs/scorer",
        "trace good.csv --processors 4",
        "replay good.csv --processors 4",
        "figure deeprm-fig4",
        "results deeprm",
    ],
)
@pytest.mark.parametrize("place", ["file/out", "file/new/out", "x" * 300])
def test_what_cannot_be_written_is_noticed_before_the_work(
    command: str, place: str, refuse: Refuse
) -> None:
    assert "cannot write to" in refuse(f"{command} --out {place}")


def test_a_file_that_cannot_be_written_is_noticed_before_the_work(refuse: Refuse) -> None:
    assert "cannot write to" in refuse("generate file/out")
