"""``metasched study``: how runs adapt to unseen tasks, for the adaptation figures."""

from tune_jobs.commands import command_line
from tune_jobs.commands.adapting import Study


@command_line.command("study", Study)
def command(options: Study) -> None:
    """Measure how runs adapt to held-out tasks of a family.

    Each run is adapted to the same tasks from the same jobsets. Its costs are divided by that of
    the world's best baseline on the task. The config of a run names its method, such as joint
    training or first-order MAML; runs that differ only in their seed are one method. A network that
    cannot be adapted trains on by REINFORCE, one update a step. Rows that the folder
    --out already holds are not measured again.

    A specialist trains on its task alone, so its cost bounds what adaptation can reach: the figure
    headroom shows how much of the way from the joint policy to it adaptation covers.

    \b
    Examples:
      metasched study 'runs/maml-*' 'runs/joint-*' --family objectives
      metasched study 'runs/*' --family priorities --scratch 3 --runners 2
      metasched figure adaptation --rows adaptation
      metasched study runs/joint-0 --specialists 15
    """
    from tune_jobs.adapting.many_tasks import study_adaptation
    from tune_jobs.terminal.progress import Progress

    study_adaptation(options, Progress()).show()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
