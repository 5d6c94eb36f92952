"""Planned episodes on a server, of which some steps fail."""

import contextlib
import types

import numpy as np
import pytest

pytest.importorskip('carla')

from agents import evaluation  # noqa: E402
from agents.run import errors, progress  # noqa: E402
from agents.tools import (
  graph_errors,  # noqa: E402
  wrappers,  # noqa: E402
)
from agents.tools.tf1 import tf  # noqa: E402
from planet.control.simulate import collect_rollouts  # noqa: E402
from planet.envs import constructors  # noqa: E402
from planet.scripts import evaluate  # noqa: E402
from tests.planet.control import test_simulate  # noqa: E402
from tests.planet.envs.carla.recorded_world import constructor  # noqa: E402

DURATION = 12


class Losing(wrappers.Wrapper):
  """Loses the images of some steps, which are counted over all episodes."""

  def __init__(self, env, server, losses):
    super().__init__(env)
    self._server, self._losses, self.steps = server, losses, 0

  def step(self, action):
    self.steps += 1
    self._server.set(lost_images=int(self.steps in self._losses))
    return self._env.step(action)


def collect(server, folder, losses, image_timeout=0.5, simulations=1):
  """Scores and rewards of the last simulation, and the environment."""
  settings = server.config(image_timeout=image_timeout)
  settings = {k: v for k, v in settings.items() if k[1:] != '_res'}
  make = constructor(DURATION, 10, **settings)
  envs = []

  def env_ctor():
    envs.append(Losing(make(), server, losses))
    return constructors.recording_env(lambda: envs[0], folder, ['image'], 1)

  tf.reset_default_graph()
  config = test_simulate.agent_config()
  config.unlock()
  config.encoder = lambda obs: tf.reduce_mean(obs['image'], [2, 3])
  score, _, _, reward, close = collect_rollouts(
    tf.constant(0), env_ctor, DURATION, 1, config
  )
  try:
    with graph_errors.unwrapped():
      for _ in range(simulations):
        scores, rewards = test_simulate.run([score, reward])
  finally:
    close()
  return scores, rewards[0], envs[0]


def test_failed_episodes_are_dropped(server, tmp_path):
  """Neither they nor what follows them are recorded or scored."""
  scores, _, env = collect(server, str(tmp_path), {4, 6}, 2.0)
  assert env.steps == DURATION
  assert not len(scores) and not list(tmp_path.iterdir())


def test_next_simulation_plays_the_episode_again(server, tmp_path):
  """Only the whole one is recorded."""
  scores, reward, env = collect(server, str(tmp_path), {4, 6}, 2.0, 2)
  assert env.steps == 2 * DURATION
  (path,) = tmp_path.iterdir()
  with np.load(path) as episode:
    assert len(episode['image']) == DURATION + 1
    np.testing.assert_allclose(episode['reward'][1:], reward, 1e-6)
  np.testing.assert_allclose(scores, [reward.sum()], 1e-5)


@pytest.mark.parametrize('losses', [range(1, 100), range(8, 100, 12)])
@pytest.mark.slow
def test_five_failures_in_a_row_end_the_run(server, tmp_path, losses):
  """Also if the rest of each simulation works."""
  with pytest.raises(errors.WorkerDeath, match='5 episodes in a row have fai'):
    collect(server, str(tmp_path), losses, simulations=6)
  assert not list(tmp_path.iterdir())


class Driver:
  """Policy that stands still."""

  task = types.SimpleNamespace(name='carla')

  def reset(self):
    pass

  def predict(self, unused_observation, **unused_kwargs):
    return np.zeros(2, np.float32), None


@pytest.mark.parametrize('failures', [{}, {0: 3, 1: 1}])
def test_evaluations_count_whole_episodes(failures):
  env = test_simulate.FailingEnv(5, failures)
  result = evaluation.evaluate(Driver(), env, episodes=2)
  assert result.lengths == [5, 5]
  env = test_simulate.FailingEnv(5, failures)
  with contextlib.closing(progress.Progress()) as bar:
    bar.start_phase('', 5, 0, 0)
    episode = evaluate.play_once(Driver(), env, bar)
  assert len(episode.rewards) == 5
