"""Modules of a user's own, whose registrations configs then know."""

import sys
from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.spec import WORLDS
from rllib_configs.config import extensions, ranges
from rllib_configs.config.loading import load_config
from rllib_configs.config.options import adjustable_settings, owners
from rllib_configs.config.registries import ALGORITHMS, NETWORKS
from rllib_configs.config.sections import section_of
from rllib_configs.config.task_schema import TaskSection
from tune_jobs.tracking.provenance import of_a_bug

MODULE = '''
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cluster_env.core.spec import WORLDS, WorkloadSpec, WorldSpec
from rllib_configs.config.registries import ALGORITHMS, NETWORKS, Algorithm, NetworkEntry
from rllib_configs.config.sections import ADJUSTABLE, Section, Share


@dataclass(frozen=True)
class Yard:
    """A yard.

    Attributes:
        cranes: how many there are,
            side by side.
    """

    kind = "yard"
    cranes: int = 2


@dataclass(frozen=True)
class Ships:
    cranes: int
    rate: float = 0.5
    log: Path | None = None


YARD = WorldSpec(Yard)
YARD.workloads.register("ships")(WorkloadSpec(Ships, lambda world: {"cranes": world.cranes}))
WORLDS.register("yard")(YARD)


class PatientOptions(Section):
    patience: Annotated[Share, ADJUSTABLE] = 0.5
    """How long it waits."""


class WideOptions(Section):
    width: int = 3


ALGORITHMS.register("patient")(Algorithm(PatientOptions, "my_extension:CONFIG"))
NETWORKS.register("wide")(NetworkEntry(WideOptions, "my_extension:NETWORK"))
'''


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extensions.load_extensions()  # ours stay entered when the registries are put back
    (tmp_path / "my_extension.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(extensions.IMPORTS, "tests, my_extension")
    monkeypatch.setattr(extensions, "_loaded", set(extensions._loaded))
    monkeypatch.setattr(extensions, "found", [])
    for registry in (WORLDS, ALGORITHMS, NETWORKS):
        monkeypatch.setattr(registry, "_things", dict(registry._things))
    yield
    sys.modules.pop("my_extension", None)


@pytest.mark.usefixtures("extension")
def test_an_algorithm_and_a_network_of_ones_own_have_their_options() -> None:
    changes = ["training.algorithm=patient", "training.network=wide", "training.patience=0.25"]
    training = load_config("deeprm-ppo", changes).training
    assert (training.patience, training.width, training.iterations) == (0.25, 3, 400)
    assert "clip" not in training.model_dump()
    assert owners("patience") == ["the algorithm patient"]
    adjustable = adjustable_settings()
    assert {"training.patience", "training.lr", "training.rates_lr"} <= set(adjustable)
    assert not {"training.width", "training.iterations", "training.jobsets"} & set(adjustable)
    with pytest.raises(InputError, match=r"training.patience is not used .* algorithm patient"):
        load_config("deeprm", ["training.patience=0.25"])
    with pytest.raises(InputError, match=r"training\.patience: .*less than or equal to 1"):
        load_config("deeprm", [*changes, "training.patience=2"])


@pytest.mark.usefixtures("extension")
def test_what_an_extension_has_registered_is_listed() -> None:
    load_config("deeprm")
    (one,) = (one for one in extensions.found if one.module == "my_extension")
    assert one.source == "METASCHED_IMPORTS"
    things = ("workload ships", "world yard", "algorithm patient", "network wide")
    assert one.things[-4:] == things  # after what each world has
    shown = dict(of_a_bug())["extension my_extension"]
    assert shown.endswith(f"{', '.join(things)} from METASCHED_IMPORTS")


@pytest.mark.usefixtures("extension")
def test_a_world_of_ones_own_has_sections() -> None:
    changes = {"task.world.kind": "yard", "task.world.cranes": 3, "task.workload.rate": 0.25}
    task = load_config("deeprm-generalist", changes).task
    assert task.model_dump(mode="json") == {
        "world": {"kind": "yard", "cranes": 3},
        "workload": {"kind": "ships", "rate": 0.25, "log": None},
        "objective": "slowdown",
    }
    built = task.build("mine", 5)
    assert (built.workload.cranes, built.workload.rate) == (3, 0.25)
    assert TaskSection.of(built) == task
    described = section_of(type(task.world)).model_fields["cranes"].description
    assert described == "how many there are, side by side."
    with pytest.raises(InputError, match=r"unknown key 'task\.world\.rules'"):
        load_config("deeprm", [*(f"{k}={v}" for k, v in changes.items()), "task.world.rules=paper"])
    with pytest.raises(InputError, match=r"unknown workload 'bimodal': known are ships"):
        load_config("deeprm", ["task.world.kind=yard", "task.workload.kind=bimodal"])


@pytest.mark.usefixtures("extension")
def test_a_path_of_ones_own_workload_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    changes = ["task.world.kind=yard", "task.workload.log=ships.log"]
    assert load_config("deeprm", changes).task.workload.log == tmp_path / "ships.log"


@pytest.mark.usefixtures("extension")
def test_a_family_in_a_world_of_ones_own_has_ranges_by_key() -> None:
    load_config("deeprm")
    assert ranges.ranges_of("yard") is ranges.TaskRanges
    assert ranges.ranges_of("deeprm") is not ranges.TaskRanges


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "No module named 'my_broken'"), ("1 / 0", "division"), ("raise SystemError", "System")],
)
def test_an_extension_that_cannot_be_imported_is_named_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, why: str
) -> None:
    if text is not None:
        (tmp_path / "my_broken.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(extensions.IMPORTS, "my_broken")
    for _ in range(2):
        with pytest.raises(InputError, match=f"names my_broken, which cannot be imported: .*{why}"):
            load_config("deeprm")


def test_an_entry_point_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value, dist, loads = "mine", "my_package.registrations", None, 0

        def load(self) -> None:
            Entry.loads += 1

    monkeypatch.setattr(extensions, "entry_points", lambda group: [Entry()])
    monkeypatch.setattr(extensions, "_loaded", extensions._loaded - {extensions.GROUP})
    monkeypatch.setattr(extensions, "found", list(extensions.found))
    extensions.load_extensions()
    extensions.load_extensions()
    assert Entry.loads == 1
