"""Small files that ask for much memory, or nest without end: refused in a sentence, in bounds."""

import gzip
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import parse_json, read_json
from cluster_env.workloads.formats import read_log
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.policy_files import read_weights
from tests.conftest import REPOSITORY

ALLOWED = 500 << 20  # bytes beside what the imports need
DEEP = "[" * 200_000
JOB = "1 0 0 5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n"


def squeezed(piece: bytes, size: int) -> bytes:
    """Some bytes repeated to a size, as members of gzip that are all the same."""
    block = piece * ((1 << 20) // len(piece))
    return gzip.compress(block, mtime=0) * (size // len(block))


def bytearray_weights(folder: Path) -> Path:
    """A policy whose table is ``bytearray(10**10)``."""
    write_config(load_config("deeprm-smoke"), folder / "config.yaml")

    class Large:
        def __reduce__(self):  # type: ignore[no-untyped-def]
            return bytearray, (10**10,)

    with zipfile.ZipFile(folder / "weights.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": Large()}, protocol=2))
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
    return folder


def written(name: str, data: bytes | str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


RANGES = ",".join(["1-100000"] * 400)
LOG = "from cluster_env.workloads.formats import read_log; read_log({path!r})"
SITE = "from cluster_env.sites.reading import read_site; read_site({path!r})"
WEIGHTS = "from rllib_configs.policy_files import read_weights; read_weights({path!r})"
JOURNAL = "from tune_jobs.site.journal import read_journal; list(read_journal(Path({path!r})))"
CONF = "from cluster_env.workloads.slurm.conf import read_conf; read_conf(Path({path!r}))"
NODES = "".join(f"NodeName=a{k}b[1-99999] CPUs=1\n" for k in range(500))
SITE_NODES = "nodes:\n" + "".join(f"- {{name: 'a{k}b[1-99999]'}}\n" for k in range(500))

BOMBS = {
    "swf": (written("a.swf", squeezed(JOB.encode(), 1 << 30)), LOG, "unpacks to more"),
    "newlines": (written("a.swf", squeezed(b"\n", 1 << 30)), LOG, "unpacks to more"),
    "zeros": (written("a.swf", squeezed(b"0", 1 << 30)), LOG, "unpacks to more"),
    "json": (
        written("a.json", squeezed(b'{"jobs": [[0,0,0,0,0,0,0', 1 << 30)),
        LOG,
        "unpacks to more",
    ),
    "site": (written("qos.txt", squeezed(b"Name|Priority\n", 1 << 30)), SITE, "unpacks to more"),
    "ranges": (
        written("slurm.conf", f"NodeName=n[{RANGES}] CPUs=4\nPartitionName=a Nodes=ALL\n"),
        SITE,
        "more than 100,000",
    ),
    "conf": (written("slurm.conf", f"{NODES}PartitionName=a Nodes=ALL\n"), SITE, "more than"),
    "nodes": (written("site.yaml", SITE_NODES), SITE, "at most 100,000 nodes"),
    "weights": (bytearray_weights, WEIGHTS, "something else than plain tensors"),
    "journal": (written("j.jsonl", squeezed(b"x", 1 << 30)), JOURNAL, "journal"),
    "deep journal": (written("j.jsonl", f'{{"kind": {DEEP}\n'), JOURNAL, "journal"),
    "deep json": (written("a.json", f'{{"jobs": [{DEEP}'), LOG, "cut off"),
}


PROGRAM = """
import json, os, resource, sys
from pathlib import Path
import torch
import cluster_env.workloads.formats, cluster_env.sites.reading
import rllib_configs.policy_files, tune_jobs.site.journal
from cluster_env.core.errors import InputError

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
for name, code in json.loads(sys.argv[1]).items():
    sys.stdout.flush()
    if os.fork() == 0:
        resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
        imported = peak()
        try:
            exec(code)
            said = ""
        except InputError as error:
            said = str(error)
        print(json.dumps([name, said, peak() - imported]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, int]]:
    """What each says, and by how many bytes the process that read it grew; one that died lacks."""
    calls = {}
    for name, (make, read, _) in BOMBS.items():
        folder = tmp_path_factory.mktemp("bomb")
        calls[name] = read.format(path=str(make(folder)))
        assert sum(one.stat().st_size for one in folder.iterdir()) < 4 << 20
    line = [sys.executable, "-c", PROGRAM, json.dumps(calls)]
    done = subprocess.run(line, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, timeout=240)
    rows = map(json.loads, done.stdout.splitlines())
    return {name: (said, grown) for name, said, grown in rows}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_a_sentence_and_in_bounds(
    name: str, refusals: dict[str, tuple[str, int]]
) -> None:
    said, grown = refusals[name]
    assert BOMBS[name][2] in said
    assert "\n" not in said
    assert len(said) < 500
    assert grown < ALLOWED


def test_a_large_log_with_gzip_is_no_bomb(tmp_path: Path) -> None:
    lines = [
        f"{k} {k * 7} 0 {k % 977} {1 + k % 9} -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n"
        for k in range(90_000)
    ]
    path = tmp_path / "a.swf.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    assert read_log(path).num_jobs > 80_000


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 200_000, "{", ""])
def test_json_without_an_end_is_a_value_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the parser says
        parse_json(text)
    with pytest.raises(ValueError):  # noqa: PT011
        read_json(tmp_path / "a.json")


def test_weights_of_pytorch_are_read_as_they_were(tmp_path: Path) -> None:
    import torch

    write_config(load_config("deeprm-smoke"), tmp_path / "config.yaml")
    tensors = {
        f"w{k}": torch.rand(3, k + 1, dtype=kind)
        for k, kind in enumerate((torch.float32, torch.float64, torch.float16))
    } | {"n": torch.tensor(3), "flag": torch.tensor([True])}
    torch.save(tensors, tmp_path / "weights.pt")
    weights, _ = read_weights(tmp_path)
    assert weights.keys() == tensors.keys()
    torch.save({"w": bytearray(5)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match="plain tensors"):
        read_weights(tmp_path)
