"""PPO in several processes of MPI."""

import importlib.util
import json
import os
import shutil
import sys
import threading
import types
from concurrent import futures

import pytest

from agents import runs, train_ppo, visualize_ppo
from agents.ppo import together
from agents.run import checkpoint, stopping
from tests.agents import training_runs

MPIRUN = os.path.join(os.path.dirname(sys.executable), 'mpirun')
ENVIRON = dict(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
PENDULUM = 'InvertedPendulumBulletEnv-v0'
pytestmark = [
  pytest.mark.skipif(
    not os.path.exists(MPIRUN), reason=f'there is no mpirun at {MPIRUN}'
  ),
  pytest.mark.skipif(
    not importlib.util.find_spec('mpi4py'), reason='mpi4py is not installed'
  ),
]


LACKING = """
import os
import gymnasium
def make():
  assert os.environ['OMPI_COMM_WORLD_RANK'] == '0'
  return gymnasium.make('Pendulum-v1')
"""
RUN_IN = """
import sys
sys.path.append({folder!r})
from agents import train_ppo
sys.exit(train_ppo.run())
"""


def launch(*args):
  """Run two processes of Python under mpirun."""
  prefix = (MPIRUN, '--oversubscribe', '-n', '2')
  return training_runs.finish(
    training_runs.start(*args, prefix=prefix, **ENVIRON), 60
  )


def train(processes, logdir, params=None, env='Pendulum-v1', more=()):
  """Output of a training by some processes."""
  flags = ['--seed=1', *more]
  command = training_runs.command(logdir, params, flags, env)[2:]
  prefix = (MPIRUN, '--oversubscribe', '-n', str(processes))
  process = training_runs.start(
    '-m',
    'tests.agents.mpi_training',
    *command,
    '--noenv_processes',
    prefix=prefix if processes > 1 else (),
    **ENVIRON,
  )
  result = training_runs.finish(process, 180)
  assert result.code == 0, result.output
  return result.output


def play(run, outdir):
  videos = visualize_ppo.visualize(run, str(outdir), 1, 1, None, False)
  assert len(videos) == 1 and os.path.exists(videos[0]['video'])


@pytest.mark.slow
def test_means_of_an_update():
  """Those of two ranks that differ are those of one process."""
  result = launch('-m', 'tests.agents.ppo.rank_update')
  assert result.code == 0, result.output
  (line,) = [x for x in result.output.splitlines() if x.startswith('[{')]
  together, alone = json.loads(line)
  assert len(alone) >= 6 and set(together) == set(alone)
  assert together == pytest.approx(alone, rel=1e-3, abs=1e-5)


@pytest.mark.slow
def test_training(tmp_path):
  """Weights stay the same bit for bit; one folder, one score per phase.

  One process can continue it.
  """
  output = train(2, tmp_path)
  assert 'Weights of 2 processes: same.' in output, output
  assert '2 processes train together.' in output
  rows = training_runs.scores(tmp_path)
  assert [x[1] for x in rows] == [40, 80, 120, 160]
  assert output.count('Update 1 train, 40 environment steps') == 1
  run, config = runs.load(str(tmp_path))
  with config.unlocked:
    config.steps = 120
  assert len(list(train_ppo.train(config, False))) == 2
  assert checkpoint.newest_step(run) == 240


@pytest.mark.slow
def test_discrete_actions_of_several_lengths(tmp_path):
  """Processes wait for each other at updates, and at the ends of phases."""
  params = dict(num_agents=4, update_every=6, max_length=30)
  output = train(2, tmp_path, {**params, 'steps': 360}, env='CartPole-v1')
  assert 'Weights of 2 processes: same.' in output, output
  assert output.count('environment steps: value target') >= 2, output


def test_numbers_that_do_not_divide(tmp_path):
  """One sentence, and no folder."""
  params = {**training_runs.SMALL, 'update_every': 3}
  flags = [f'--params={json.dumps(params)}', '--noenv_processes']
  flags += ['--config=default', '--env=Pendulum-v1', f'--logdir={tmp_path}/a']
  result = launch('-m', 'agents.train_ppo', *flags)
  assert result.code == 2, result.output
  assert result.output.count('cannot share update_every 3') == 1
  assert not os.listdir(tmp_path)


def test_environment_that_only_the_first_rank_has(tmp_path):
  """One sentence, and no folder."""
  (tmp_path / 'lacking.py').write_text(LACKING)
  command = training_runs.command(tmp_path / 'a/b', env='lacking:make')
  command = ['-c', RUN_IN.format(folder=str(tmp_path)), *command[2:]]
  result = launch(*command)
  assert result.code == 1, result.output
  assert result.output.count('Rank 1: Environment lacking:make') == 1
  assert not os.path.exists(tmp_path / 'a')


def test_nonsense_ends_all_processes():
  result = launch('-m', 'agents.train_ppo', '--config=nonsense')
  assert result.code == 2, result.output
  assert result.output.count("Configuration 'nonsense' is unknown") == 1


@pytest.mark.slow
@pytest.mark.parametrize('before', [1, 2])
def test_other_numbers_of_processes_continue(tmp_path, before):
  params = dict(num_agents=6, update_every=6, eval_episodes=6, max_length=30)
  original = tmp_path / 'original'
  env = 'Pendulum-v1'
  train(before, original, {**params, 'steps': 180}, env)
  for after in (2, 1, 3):
    logdir = tmp_path / f'continued{after}'
    shutil.copytree(original, logdir)
    output = train(after, logdir, {**params, 'steps': 360}, env)
    assert 'Continuing the run' in output, output
    run = training_runs.run_dir(logdir)
    assert checkpoint.newest_step(run) == 720
    play(run, logdir / 'videos')


@pytest.mark.parametrize(
  'kinds, updates',
  [
    # One line per process: what it waits for, in order.
    (['FF', 'FF'], ['yy', 'yy']),
    (['FE', 'E'], ['nn', 'n']),
    (['FFE', 'FE'], ['ynn', 'yn']),
    (['FFE', 'E', 'FE'], ['nnn', 'n', 'nn']),
    (['E', 'E'], ['n', 'n']),
    (['S', 'F'], ['s', 's']),
  ],
)
def test_what_processes_wait_for(kinds, updates):
  """A full memory, the end of the phase, or to be stopped."""
  size = len(kinds)
  barrier, values = threading.Barrier(size, timeout=10), [None] * size

  def run(rank):
    def allgather(value):
      values[rank] = value
      barrier.wait()
      found = list(values)
      barrier.wait()
      return found

    comm = types.SimpleNamespace(allgather=allgather)
    words = ''
    for kind in kinds[rank]:
      try:
        words += 'ny'[together.sync(comm, 'FES'.index(kind))]
      except stopping.StopRequested:
        words += 's'
    return words

  with futures.ThreadPoolExecutor(size) as pool:
    assert list(pool.map(run, range(size))) == updates
