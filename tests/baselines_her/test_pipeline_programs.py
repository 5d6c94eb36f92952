"""Commands of the pipeline with the real simulator."""

import pickle

import numpy as np
import pytest

from agents.pipeline import logs
from agents.tools.tf1 import tf
from tests.agents import training_runs
from tests.baselines_her import test_programs, toy

PANEL = (
  '{"number_epochs": 2, "epoch_size": 1, "n_batches": 2, "batch_size": 16, '
  '"hidden": 8, "layers": 1, "buffer_size": 1000, "n_test_rollouts": 1, '
  '"seed": 1}'
)


def run(*args):
  """Run the pipeline to its end; returns what it prints."""
  process = training_runs.start(
    *('-m', 'scripts.main', *args), DISPLAY='', WAYLAND_DISPLAY=''
  )
  result = training_runs.finish(process, 240)
  assert result.code == 0, result.output
  return result.output


@pytest.fixture(scope='module')
def session(tmp_path_factory):
  """Session of FetchReach with two environments in processes."""
  folder = tmp_path_factory.mktemp('sessions')
  run(
    *('--params', 'baselines_her.params.fetch_reach', '--cpanel', PANEL),
    *('--session-path', str(folder), '--session-name', 'run'),
  )
  return folder / 'run'


def weights(folder):
  with tf.Graph().as_default(), toy.session():
    policy = pickle.loads((folder / 'policy_best.pkl').read_bytes())
    return policy.__getstate__()['tf']


@pytest.mark.slow
def test_equals_stand_alone(session, tmp_path):
  """The same command line settings lead to the same bits."""
  test_programs.run(
    *test_programs.SHORT, '--num_env=2', f'--log_path={tmp_path}'
  )
  wanted, found = weights(tmp_path / 'policies'), weights(session / 'policies')
  assert len(wanted) > 20
  for one, other in zip(wanted, found, strict=True):
    np.testing.assert_array_equal(one, other)


def test_session_is_complete(session):
  """Statistics, times of each kind, and returns of episodes."""
  log = logs.read(str(session / 'varlog.json'))
  assert {'/success/train', '/success/test', '/q/test'} < set(log)
  assert list(log['/update/loss_critic']['frame']) == [100, 200]
  times = logs.read(str(session / 'prolog.json'))
  assert list(times['/train/envstep']['occurs']) == [51, 51]
  assert {'/update/agent/sample', '/update/agent/graph'} < set(times)
  assert (session / 'done.lock').exists()
  assert (session / 'modules' / 'baselines_her' / 'ddpg.py').exists()
  # Training and tests of two environments.
  for index in range(2):
    path = session / 'monitor' / f'0.{index}.monitor.csv'
    assert len(path.read_text().splitlines()) == 2 + 4


@pytest.mark.slow
@pytest.mark.render
def test_play(session):
  """Without a display, each episode becomes a video."""
  output = run('--load-checkpoint', str(session), '--play', '--play-episodes=2')
  assert 'eval success rate' in output
  (child,) = (x for x in (session / 'evaluations').iterdir() if x.is_dir())
  videos = sorted((child / 'videos').iterdir())
  assert len(videos) == 2 and all(x.stat().st_size > 1000 for x in videos)
