"""PPO in several processes of MPI."""

import importlib.util
import os
import re
import shutil
import sys

import pytest

from agents import runs, train_ppo, visualize_ppo
from agents.tools.tf1 import tf
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


def stored_episodes(run):
  """Number of finished episodes in the newest checkpoint of a run."""
  path = os.path.join(run, f'model.ckpt-{runs.last_step(run)}')
  reader = tf.train.NewCheckpointReader(path)
  lengths = reader.get_tensor('memory/length')
  index = int(reader.get_tensor('memory_index/index'))
  assert (lengths > 0).sum() == index
  return index


def play(run, outdir):
  videos = visualize_ppo.visualize(run, str(outdir), 1, 1, None, False)
  assert len(videos) == 1 and os.path.exists(videos[0]['video'])


def test_training(tmp_path):
  """Weights stay the same bit for bit; one folder, one score per phase.

  One process can continue it, and play.
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
  assert runs.last_step(run) == 240
  play(run, tmp_path / 'videos')


def test_discrete_actions_and_few_meetings(tmp_path):
  """Episodes of several lengths, of which some end between two meetings."""
  params = dict(num_agents=4, update_every=6, max_length=30, meet_every=7)
  output = train(2, tmp_path, {**params, 'steps': 360}, env='CartPole-v1')
  assert 'Weights of 2 processes: same.' in output, output
  assert output.count('environment steps: return') >= 2, output
  assert stored_episodes(training_runs.run_dir(tmp_path)) < 6


@pytest.mark.slow
@pytest.mark.needs('pybullet')
@pytest.mark.parametrize('before', [1, 2])
def test_other_numbers_of_processes_continue(tmp_path, before):
  """Each finished episode goes on to wait for the next update, once."""
  params = dict(num_agents=6, update_every=20, eval_episodes=6, max_length=30)
  original = tmp_path / 'original'
  output = train(before, original, {**params, 'steps': 600}, env=PENDULUM)
  run = training_runs.run_dir(original)
  stored = stored_episodes(run)
  assert f'{stored} episodes are stored.' in output and stored
  play(run, tmp_path / 'videos')
  # Two processes have them once, too.
  timestamp = os.path.basename(run).removesuffix('-default')
  flags = [f'--timestamp={timestamp}']
  output = train(2, original, {**params, 'steps': 600}, PENDULUM, flags)
  assert 'There is nothing to do' in output
  assert f'{stored} episodes are stored.' in output
  for after in (2, 1, 3):
    logdir = tmp_path / f'continued{after}'
    shutil.copytree(original, logdir)
    output = train(after, logdir, {**params, 'steps': 1200}, env=PENDULUM)
    assert 'Continue the run' in output, output
    run = training_runs.run_dir(logdir)
    assert runs.last_step(run) == 1560
    (count,) = re.findall(r'(\d+) episodes are stored', output)
    assert stored_episodes(run) == int(count)
    play(run, logdir / 'videos')
