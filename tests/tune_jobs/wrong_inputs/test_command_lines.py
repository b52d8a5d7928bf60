"""Wrong command lines: each is refused in one sentence, and nothing is written.

One wrong value of each option of each command is given by `test_every_option`.
"""

import pytest

from tests.tune_jobs.wrong_inputs.conftest import Refuse

HUGE = 99999999999999

LINES = f"""
trian
nosuch --help-me
--no-such-option
train nosuch
train {"x" * 3000}
train ""
train deeprm-smoke extra
train deeprm-smoke --address ""
train deeprm-smoke --address=
train deeprm-smoke --run ""
tune "" --trials 2
train deeprm-smoke --seed 1.5
train deeprm-smoke --seed {10**30}
train deeprm-smoke --runners {HUGE}
train deeprm-smoke --runners 9999
train deeprm-smoke --set
train deeprm-smoke --set seed
train deeprm-smoke --set =3
train deeprm-smoke --set seed=-1
train deeprm-smoke --set seed=1.5
train deeprm-smoke --set seed=true
train deeprm-smoke --set seed=.nan
train deeprm-smoke --set training.iterations=0
train deeprm-smoke --set training.iterations=true
train deeprm-smoke --set training.iterations=1e30
train deeprm-smoke --set training.iterations=.inf
train deeprm-smoke --set training.iterations=many
train deeprm-smoke --set training.iterations=[1,2]
train deeprm-smoke --set training.iterations=null
train deeprm-smoke --set training.hidden=1e8
train deeprm-smoke --set training.hidden=0
train deeprm-smoke --set training.hidden=true
train deeprm-smoke --set training.jobsets={HUGE}
train deeprm-smoke --set training.episodes_per_jobset={HUGE}
train deeprm-smoke --set training.lr=0
train deeprm-smoke --set training.lr=.nan
train deeprm-smoke --set training.lr=.inf
train deeprm-smoke --set training.lr=true
train deeprm-smoke --set training.lr=fast
train deeprm-smoke --set training.gamma=1.1
train deeprm-smoke --set training.on_nan=ignore
train deeprm-smoke --set training.nosuch=1
train deeprm-smoke --set training.algorithm=nosuch
train deeprm-smoke --set training.algorithm=[]
train deeprm-smoke --set training.network=nosuch
train deeprm-smoke --set training.start=nowhere
train deeprm-smoke --set training.start=file
train deeprm-smoke --set training.start=empty
train deeprm-smoke --set training=3
train deeprm-smoke --set training=[]
train deeprm-smoke --set nosuch.key=1
train deeprm-smoke --set {"x" * 2000}=1
train deeprm-smoke --set {"x." * 500}=1
train deeprm-smoke --set name={"x" * 3000}
train deeprm-smoke --set name=a/b
train deeprm-smoke --set name=../up
train deeprm-smoke --set name=3
train deeprm-smoke --set 'name='
train deeprm-smoke --set 'seed=[1'
train deeprm-smoke --set 'seed=!!python/name:os.system x'
train deeprm-smoke --set 'seed=&a [*a]'
train deeprm-smoke --set 'task={{world: 1, world: 2}}'
train deeprm-smoke --set seed={"[" * 5000}
train deeprm-smoke --set seed={"9" * 5000}
train deeprm-smoke --set task.workload.load=1e-9
train deeprm-smoke --set task.workload.load=0
train deeprm-smoke --set task.workload.load=-1
train deeprm-smoke --set task.workload.load=9
train deeprm-smoke --set task.workload.load=.nan
train deeprm-smoke --set task.workload.load=true
train deeprm-smoke --set task.workload.load=[0.7]
train deeprm-smoke --set task.workload.window=0
train deeprm-smoke --set task.workload.window={HUGE}
train deeprm-smoke --set task.workload.window={HUGE} --set task.world.max_time={HUGE}
train deeprm-smoke --set task.workload.kind=nosuch
train deeprm-smoke --set task.workload.vary.load=[1e-9,1]
train deeprm-smoke --set task.workload.vary.load=[1,0.5]
train deeprm-smoke --set task.workload.small_duration=[3,1]
train deeprm-smoke --set task.workload.small_duration=[true,3]
train deeprm-smoke --set task.workload.small_share=2
train deeprm-smoke --set task.workload.burstiness=1
train deeprm-smoke --set task.workload.trace=nowhere.csv
train deeprm-smoke --set task.workload.trace=empty
train deeprm-smoke --set task.workload.trace=file
train deeprm-smoke --set task.workload.trace=/dev/zero
train deeprm-smoke --set task.workload.trace=3
train deeprm-smoke --set task.world.kind=nosuch
train deeprm-smoke --set task.world.kind=[deeprm]
train deeprm-smoke --set task.world.max_time=0
train deeprm-smoke --set task.world.max_time=true
train deeprm-smoke --set task.world.rules=nosuch
train deeprm-smoke --set task.world.cluster.capacity=[]
train deeprm-smoke --set task.world.cluster.capacity=[0,10]
train deeprm-smoke --set task.world.cluster.capacity=[true,10]
train deeprm-smoke --set task.world.cluster.capacity=[1e9]
train deeprm-smoke --set task.world.cluster.capacity=10
train deeprm-smoke --set task.world.cluster.horizon={HUGE}
train deeprm-smoke --set task.world.cluster.num_slots=0
train deeprm-smoke --set task.world.cluster.num_classes=99
train deeprm-smoke --set task.objective=nosuch
train deeprm-smoke --set task.objective={{}}
train deeprm-smoke --set 'task.objective={{slowdown: -1}}'
train deeprm-smoke --set 'task.objective={{slowdown: true}}'
train deeprm-smoke --set 'task.objective={{slowdown: .nan}}'
train deeprm-smoke --set 'task.objective={{nosuch: 1}}'
train deeprm-smoke --set 'task.objective=class_slowdown(nan)'
train deeprm-smoke --set 'task.objective=class_slowdown()'
train deeprm-smoke --set resources.num_learners=1
train deeprm-smoke --set resources.num_runners=true
train deeprm-smoke --set evaluation.jobsets={HUGE}
train deeprm-smoke --set evaluation.every=-1
train deeprm-smoke --set checkpoint.keep=0
train deeprm-smoke --set tracking.enabled=perhaps
train deeprm-smoke --set tracking.model=a/b
train deeprm-smoke --set tracking.uri=foo://x
train deeprm-smoke --set tracking.uri=nosuch
train deeprm-smoke --set tracking.uri=http://
train deeprm-smoke --set tracking.uri=https://user:pw@example.org
train deeprm-smoke --run full
train deeprm-smoke --run runs/good --set seed=9
train deeprm-smoke --run file/below
train deeprm-smoke --set runs=/proc/nosuch
train deeprm-smoke --continue
train deeprm-smoke --resume runs/good
train --resume file
train --resume nowhere
train --resume empty
train --resume runs/good --run other
train --resume runs/good --continue
train --resume runs/good --set training.lr=9
train --resume runs/good --set seed=1
train deeprm-smoke --address host:port
train deeprm-smoke --address 127.0.0.1:1
train deeprm-smoke --address 127.0.0.1:{HUGE}
train deeprm-maml --set training.family=nosuch
train deeprm-maml --set training.family=nosuch.yaml
train deeprm-maml --set training.family=os:system
train deeprm-maml --set training.tasks={HUGE}
train deeprm-maml --set training.inner_steps={HUGE}
train deeprm-maml --set training.inner_rate=.nan
tune nosuch
tune nosuch.yaml
tune smoke --trials {HUGE}
tune smoke --set training.nosuch=1
tune smoke --set training.iterations=true
tune smoke --set seed=3
tune smoke --out full
tune smoke --out file
tune smoke --resume nowhere
tune --resume nowhere
tune --resume empty
tune --resume runs/good
compare --policies nosuch
compare --policies ,
compare --policies sjf,sjf
compare --policies sjf:3
compare --policies hold:{HUGE}
compare --policies hold:-1
compare --policies hold:1.5
compare --policies hold:nan
compare --policies hold:{"9" * 2000}
compare --policies tetris:2
compare --policies tetris:nan
compare --policies tetris:inf
compare --policies tetris:x
compare --policies runs/none
compare --policies 'nowhere/*'
compare --policies empty
compare --policies full
compare --policies {"x" * 2000}
compare --jobsets {HUGE}
compare --episodes {HUGE}
compare --window 0
compare --window {HUGE}
compare --window 50 --set task.workload.window=50
compare --warmup 30
compare --at x
compare --at ,
compare --at nan
compare --at inf
compare --at 0
compare --at -1
compare --at 1e-9
compare --at 70
compare --at 0.7 --config nosuch
compare --config file
compare --set task.objective=nosuch
compare --set task.objective='1 slowdown + x makespan'
compare --set task.objective='nan slowdown'
compare --guard --policies sjf
compare --track
compare --at 0.7 --set task.workload.trace=good.csv
compare --set task.workload.nosuch=1
compare --config deeprm --policies hpc-order
compare --policies hpc-universal
compare --policies hpc-order:easy
compare extra
guard
compare --decide --policies nowhere
compare --decide --policies file
compare --decide --policies empty
compare --decide --policies runs/good --jobsets 1
compare --decide --policies runs/good --jobsets {HUGE}
compare --decide --policies runs/good --window 0
compare --decide --policies runs/good --warmup 99
compare --decide --policies runs/good --decode tuned
compare --decide --policies runs/good --set task.objective=nosuch
compare --decide --policies runs/good --config deeprm
compare --decide --policies runs/good --set task.workload.load=9
compare --decide --policies runs/good --limit wait=0.1 --limit wait=0.5
compare --decide --policies hpc-order --config deeprm
compare --decide --policies hpc-order --max-wait x2
compare --decide --policies hpc-order --max-wait soon
adapt
adapt runs/good
adapt nowhere --task objectives:1
adapt runs/scorer --task objectives:1
adapt runs/good --task objective=makespan
adapt runs/scorer --task world.cluster.horizon=9
adapt runs/scorer --task objectives:x
adapt runs/scorer --task workload.load=1e-9
adapt runs/scorer --task nosuch.yaml
adapt runs/scorer --task nosuch
adapt empty --task objective=makespan
adapt runs/scorer --task objective=makespan --steps 1001
adapt runs/scorer --task objective=makespan --rate nan
adapt runs/scorer --task objective=makespan --rate 0
adapt runs/scorer --task objective=makespan --out full
adapt runs/scorer --task objective=makespan --track
study
study nowhere/run
record
record panda-elastic
record nosuch some.parquet
record deeprm-smoke some.parquet
record runs/good some.parquet
record panda-small some.parquet
record panda-elastic nowhere/some.parquet
record panda-elastic empty
record panda-elastic some.parquet --noise nan
record panda-elastic some.parquet --episodes 0
record panda-elastic some.parquet --set nosuch.key=1
train panda-elastic --set training.algorithm=offline
train panda-elastic --set training.algorithm=offline --set training.records=nowhere.parquet
train panda-elastic --set training.algorithm=offline --set training.records=good.csv
train panda-elastic --set training.algorithm=offline --set training.records=empty
train deeprm-smoke --set training.algorithm=offline --set training.records=file
study runs/good --steps 3,1
study runs/good --steps ,
study runs/good --runners {HUGE}
study runs/good --address 127.0.0.1:6379
study runs/good --specialists 1
figure nosuch
figure learning-curves
figure learning-curves --runs nowhere/run
figure learning-curves --runs empty
figure deeprm-fig4 --rows file
figure deeprm-fig4 --rows good.csv
figure adaptation
figure adaptation --rows nowhere
figure sweep --runs runs/good
results nosuch
results nosuch.yaml
results deeprm --seeds -1
results deeprm --seeds ,
bench nosuch
bench --seconds nan
bench --seconds inf
bench --seconds 0
bench training --preset nosuch
sync
sync nowhere
sync runs/good
ui --port 99999
ui --runs nowhere
"""


def _id(line: str) -> str:
    return line if len(line) < 70 else f"{line[:50]}...{len(line)}"


@pytest.mark.parametrize("line", LINES.strip().splitlines(), ids=_id)
def test_a_wrong_command_line_is_refused(line: str, refuse: Refuse) -> None:
    refuse(line)
