"""metasched from Python: environments, heuristics, training, comparisons and adaptation.

Everything here is imported when it is first asked for, so that ``import metasched`` takes no time
and ``metasched.make_env`` needs neither Ray nor PyTorch. The README beside this package has
examples.
"""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from metasched.gymnasium_ids import register_when_imported

if TYPE_CHECKING:
    from cluster_env.core.errors import Failure, InputError
    from cluster_env.core.jobs import JobSet
    from cluster_env.core.policy import Policy
    from cluster_env.core.schedule import Schedule
    from cluster_env.core.seeding import Split
    from cluster_env.core.spec import Heuristic, build_world
    from cluster_env.core.world import World
    from cluster_env.evaluation import Estimate, Summary, evaluate, summarize
    from cluster_env.task import Task
    from cluster_env.worlds import get_heuristic, get_spec
    from meta.maml.algorithm import MAMLConfig
    from meta.tasks import read_task
    from metasched.adapting import adapt, study
    from metasched.comparing import Comparison, compare, guard
    from metasched.environments import make_env, make_vec_env
    from metasched.exporting import export_onnx
    from metasched.heuristic_policies import heuristics
    from metasched.logs import generate, replay, report, starts, trace, whatif
    from metasched.recorded import bench, figure, join, record, results
    from metasched.training import algorithm_config, choose, resume, train, tune
    from rllib_configs.algorithms.evolution import EvolutionConfig
    from rllib_configs.algorithms.ppo import PPOConfig
    from rllib_configs.algorithms.reinforce import ReinforceConfig
    from rllib_configs.config.loading import load_config, preset_names
    from rllib_configs.config.schema import ExperimentConfig
    from rllib_configs.policy_files import LearnedPolicy, load_policy
    from tune_jobs.measuring.table import format_rows
    from tune_jobs.runs.training import RunResult
    from tune_jobs.tables.report import Report

    __version__: str

_MODULES = {
    "cluster_env.core.errors": ("Failure", "InputError"),
    "cluster_env.core.jobs": ("JobSet",),
    "cluster_env.core.policy": ("Policy",),
    "cluster_env.core.schedule": ("Schedule",),
    "cluster_env.core.seeding": ("Split",),
    "cluster_env.core.spec": ("Heuristic", "build_world"),
    "cluster_env.task": ("Task",),
    "cluster_env.core.world": ("World",),
    "cluster_env.evaluation": ("Estimate", "Summary", "evaluate", "summarize"),
    "cluster_env.worlds": ("get_heuristic", "get_spec"),
    "meta.tasks": ("read_task",),
    "metasched.adapting": ("adapt", "study"),
    "metasched.comparing": ("Comparison", "compare", "guard"),
    "metasched.environments": ("make_env", "make_vec_env"),
    "metasched.exporting": ("export_onnx",),
    "metasched.heuristic_policies": ("heuristics",),
    "metasched.logs": ("generate", "replay", "report", "starts", "trace", "whatif"),
    "metasched.recorded": ("bench", "figure", "join", "record", "results"),
    "metasched.training": ("algorithm_config", "choose", "resume", "train", "tune"),
    "meta.maml.algorithm": ("MAMLConfig",),
    "rllib_configs.algorithms.evolution": ("EvolutionConfig",),
    "rllib_configs.algorithms.ppo": ("PPOConfig",),
    "rllib_configs.algorithms.reinforce": ("ReinforceConfig",),
    "rllib_configs.config.loading": ("load_config", "preset_names"),
    "rllib_configs.policy_files": ("LearnedPolicy", "load_policy"),
    "rllib_configs.config.schema": ("ExperimentConfig",),
    "tune_jobs.measuring.table": ("format_rows",),
    "tune_jobs.runs.training": ("RunResult",),
    "tune_jobs.tables.report": ("Report",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [  # noqa: RUF022 - in the order of the README
    "make_env",
    "make_vec_env",
    "build_world",
    "JobSet",
    "heuristics",
    "get_heuristic",
    "evaluate",
    "summarize",
    "load_config",
    "preset_names",
    "train",
    "resume",
    "load_policy",
    "algorithm_config",
    "PPOConfig",
    "ReinforceConfig",
    "EvolutionConfig",
    "MAMLConfig",
    "export_onnx",
    "compare",
    "format_rows",
    "guard",
    "read_task",
    "adapt",
    "study",
    "trace",
    "replay",
    "whatif",
    "report",
    "generate",
    "starts",
    "figure",
    "results",
    "tune",
    "choose",
    "join",
    "record",
    "bench",
    "get_spec",
    "Heuristic",
    "Comparison",
    "Estimate",
    "ExperimentConfig",
    "Failure",
    "InputError",
    "LearnedPolicy",
    "Policy",
    "Report",
    "RunResult",
    "Schedule",
    "Split",
    "Summary",
    "Task",
    "World",
    "__version__",
]

register_when_imported()


def __getattr__(name: str) -> Any:
    """Imports a public name from its home, once."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("metasched")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        if isinstance(value, FunctionType):
            value = import_module("metasched.arguments").checked(value)
    else:
        from cluster_env.core.removed import was_removed

        gone = was_removed("function", name)
        more = f": {gone}" if gone else ""
        raise AttributeError(f"module 'metasched' has no attribute '{name}'{more}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted(__all__)
