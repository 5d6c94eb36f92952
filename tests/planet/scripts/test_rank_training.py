"""PlaNet under the real mpirun."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from tests import golden, processes
from tests.planet.scripts import training_runs

MPIRUN = os.path.join(os.path.dirname(sys.executable), 'mpirun')
ENVIRON = dict(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
# An update per phase, an episode per update.
PARAMS = {
  'tasks': ['dummy'],
  'image_size': 32,
  'batch_shape': [6, 10],
  'train_steps': 6,
  'test_steps': 6,
  'train_collects': [{'after': 6, 'every': 6, 'batch_size': 2}],
  'num_seed_episodes': 3,
  'checkpoint_every': 6,
  'planner_iterations': 0,
}
pytestmark = [
  pytest.mark.skipif(
    not os.path.exists(MPIRUN), reason=f'there is no mpirun at {MPIRUN}'
  ),
  pytest.mark.needs('mpi4py'),
]


def start(ranks, module, *args):
  """Start a module in several processes; output and errors are one pipe."""
  return subprocess.Popen(
    [MPIRUN, '--oversubscribe', '-n', str(ranks)]
    + [sys.executable, '-u', '-m', module, *args],
    cwd=golden.ROOT,
    env={**os.environ, **ENVIRON, 'PYTHONPATH': golden.ROOT},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def start_training(ranks, logdir, **params):
  text = json.dumps({**PARAMS, **params})
  args = ['--logdir', str(logdir), '--config', 'debug', '--params', text]
  module = 'tests.planet.scripts.rank_training'
  return start(ranks, module, *args, '--seed', '1')


def finish(process, seconds=900):
  try:
    output, _ = process.communicate(timeout=seconds)
  finally:
    process.kill()
  return process.returncode, output


def test_wrong_flag_is_told_once(tmp_path):
  """All ranks end, with the exit code of bad input."""
  flags = ['--logdir', str(tmp_path), '--num_rums', '3']
  code, output = finish(start(2, 'planet.scripts.train', *flags), 120)
  assert code == 2
  assert output.count('--num_rums') == 1 and 'Did you mean' in output


@pytest.mark.slow
def test_training(tmp_path):
  """Weights stay the same bit for bit; one folder, one score per phase.

  Other numbers of ranks go on with it, also after one has been killed.
  """
  logdir = tmp_path / 'logs'
  code, output = finish(start_training(2, logdir, max_steps=36))
  assert code == 0, output
  assert '2 processes train together' in output
  assert '6 steps, 3 weights.' in output, output
  assert output.count('Epoch 3: train return') == 1
  assert training_runs.checkpoints(logdir) == [12, 24, 36]
  # Three at random, two in each but the first phase; one per test phase.
  assert len(training_runs.episodes(logdir, 'train')) == 3 + 2 * 2
  assert len(training_runs.episodes(logdir, 'test')) == 3 + 3

  process = start_training(3, logdir, max_steps=6000)
  pids = dict(
    training_runs.wait_for(process, r'Rank (\d) is process (\d+)').groups()
    for _ in range(3)
  )
  training_runs.wait_for(process, 'Epoch 4: train return')
  os.kill(int(pids['1']), signal.SIGKILL)
  code, output = finish(process, 60)
  assert code != 0
  assert re.search('rank 1 .* signal 9', ' '.join(output.split())), output
  assert not processes.wait_for_end([int(x) for x in pids.values()])
  run = training_runs.run_dir(logdir)
  assert not os.path.exists(os.path.join(run, 'DONE'))

  step = training_runs.checkpoints(logdir)[-1]
  assert step >= 48
  result = training_runs.train(
    logdir, {**PARAMS, 'max_steps': step + 12}, seconds=600
  )
  assert result.code == 0, result.output
  assert training_runs.checkpoints(logdir)[-1] == step + 12
