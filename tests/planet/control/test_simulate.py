"""Episodes played from within the graph, against `planet/simulate`."""

import ast
import functools
import inspect
import os

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.control import simulate as simulate_fn
from planet.control.simulate import collect_rollouts, define_batch_env
from planet.tools.attr_dict import AttrDict
from tests import golden, graphs, processes, scripted_envs

DURATION = 10


def agent_config(gain=1.0, **kwargs):
  """Agent with the recorded model that acts by 1.3 tanh(sample policy)."""
  data = golden.load('planet/simulate')
  policy = tf.constant(data['w/policy'] * np.float32(gain))

  def planner(cell, objective, state, obs_shape, action_shape):
    action = 1.3 * tf.tanh(tf.matmul(state['sample'], policy))
    return tf.tile(action[:, None], [1, 3, 1])

  return AttrDict(
    cell=graphs.make_cell(data.meta),
    objective=None,
    exploration=None,
    encoder=lambda obs: tf.reduce_mean(obs['image'], [2, 3]),
    planner=planner,
    preprocess_fn=lambda image: tf.cast(image, tf.float32) / 255 - 0.5,
    **kwargs,
  )


def run(fetches):
  """Values with the recorded weights of the model."""
  data = golden.load('planet/simulate')
  pairs = graphs.pair_weights(graphs.cell_roles(data.meta))
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    return sess.run(fetches)


def rollout(lengths, gain=1.0, isolate_envs='none'):
  """Outputs of environments of the given lengths, one pixel per image."""
  tf.reset_default_graph()
  env_ctor = functools.partial(scripted_envs.CountingImageEnv, lengths[0])
  if isolate_envs == 'none':
    # Environments are made one after another while the graph is built.
    remaining = iter(lengths)
    env_ctor = lambda: scripted_envs.CountingImageEnv(next(remaining))
  *outputs, close = collect_rollouts(
    tf.constant(0),
    env_ctor,
    DURATION,
    len(lengths),
    agent_config(gain),
    isolate_envs,
  )
  try:
    values = dict(zip(('score', 'image', 'action', 'reward'), run(outputs)))
  finally:
    close()
  assert (values['image'] == values['image'][:, :, :1, :1]).all()
  values['image'] = values['image'][:, :, 0, 0]
  return values


@pytest.mark.parametrize(
  'name', ['one_env', 'two_envs_same_length', 'not_finished']
)
def test_recorded_episodes(name):
  """Scores, images, actions and rewards [agents, time]; MODEL, images exact."""
  data = golden.load('planet/simulate')
  assert data['cfg/duration'] == DURATION
  values = rollout(data[f'cfg/{name}/lengths'])
  expected = data.below('out/' + name)
  golden.assert_all_close(values, expected, **golden.MODEL)
  np.testing.assert_array_equal(values['image'], expected['image'])


def test_environments_of_different_length():
  """Each acts as it does alone, whoever else resets; MODEL.

  (In the recording, a reset makes all agents forget their last action.)
  """
  data = golden.load('planet/simulate')
  lengths = data['cfg/two_envs_different_length/lengths']
  alone = [rollout([x]) for x in lengths]
  values = rollout(lengths)
  for key in ('image', 'action', 'reward'):
    expected = np.concatenate([x[key] for x in alone])
    golden.assert_close(values[key], expected, name=key, **golden.MODEL)
  scores = [
    values['reward'][index, step - length : step].sum()
    for step in range(1, DURATION + 1)
    for index, length in enumerate(lengths)
    if step % length == 0
  ]
  golden.assert_close(values['score'], np.float32(scores), **golden.MODEL)
  recorded = data['out/two_envs_different_length/action']
  assert np.abs(values['action'] - recorded).max() > 1e-3


def test_actions_are_clipped():
  """The agent sees what the environment gets, within [-1, 1]."""
  action = rollout([15], gain=20.0)['action']
  assert np.abs(action).max() == 1


@pytest.mark.parametrize('strategy', ['thread', 'process'])
def test_isolated_environments(strategy):
  """The same numbers from environments that live elsewhere."""
  with processes.time_limit(60):
    values = rollout([4, 4], isolate_envs=strategy)
  expected = golden.load('planet/simulate').below('out/two_envs_same_length')
  golden.assert_all_close(values, expected, **golden.MODEL)


def test_each_environment_has_a_process():
  """However few cores there are."""
  count = 2 + (os.cpu_count() or 1)
  env_ctor = functools.partial(scripted_envs.EchoEnv, 3)
  with processes.time_limit(60):
    batch_env = define_batch_env(env_ctor, count, 'process')
    try:
      pids = {env.pid for env in batch_env}
    finally:
      batch_env.close()
  assert len(pids - {os.getpid()}) == count


def test_unknown_isolation():
  with pytest.raises(NotImplementedError, match='other'):
    define_batch_env(lambda: scripted_envs.CountingImageEnv(3), 1, 'other')


def test_steps_happen_in_order():
  """Resets and steps alternate as they should, and none is made twice."""
  log = []

  class Logging(scripted_envs.CountingImageEnv):
    def reset(self):
      log.append('reset')
      return super().reset()

    def step(self, action):
      log.append(self._t + 1)
      return super().step(action)

  outputs = collect_rollouts(
    tf.constant(0), lambda: Logging(3), DURATION, 1, agent_config()
  )
  run(outputs[0])
  expected = ['reset', 1, 2, 3] * 3 + ['reset', 1]
  assert log == expected


def test_summaries():
  """Mean return, histograms, strip and animation, below the scope."""
  summary, return_, close = simulate_fn(
    tf.constant(0),
    lambda: scripted_envs.CountingImageEnv(4),
    DURATION,
    1,
    agent_config(),
    expensive_summaries=True,
    name='test_main',
  )
  summary, return_ = run([summary, return_])
  close()
  scores = golden.load('planet/simulate')['out/one_env/score']
  np.testing.assert_allclose(return_, scores.mean(), 1e-4)
  tags = [x.tag for x in tf.Summary.FromString(summary).value]
  names = 'return return_hist reward_hist action_hist image animation/gif'
  assert len(tags) == 6
  for tag, name in zip(tags, names.split()):
    assert tag.startswith(f'test_main/{name}'), tag


def test_mean_of_no_episodes_is_nan():
  _, return_, _ = simulate_fn(
    tf.constant(0),
    lambda: scripted_envs.CountingImageEnv(15),
    DURATION,
    1,
    agent_config(),
    gif_summary=False,
  )
  assert np.isnan(run(return_))


class FailingEnv(scripted_envs.CountingImageEnv):
  """Fails from chosen steps of chosen episodes on, and says so.

  Such episodes end with the others, or later than that.
  """

  def __init__(self, length, failures, first=0):
    super().__init__(length)
    self._failures, self._episode = failures, first - 1
    self.played = []

  def reset(self):
    self.played.append(0)
    return super().reset()

  def step(self, action):
    observ, reward, done, info = super().step(action)
    self.played[-1] += 1
    if self._t >= self._failures.get(self._episode, 100):
      return observ, np.float32(0), done, {'step_error': True}
    return observ, reward, done, info


def play(*envs, simulations=1):
  """Outputs of each simulation, and the steps of each episode."""
  tf.reset_default_graph()
  remaining = iter(envs)
  *outputs, close = collect_rollouts(
    tf.constant(0), lambda: next(remaining), DURATION, len(envs), agent_config()
  )
  values = [run(outputs) for _ in range(simulations)]
  close()
  return values, [x.played for x in envs]


def test_scan_plays_the_episodes():
  """Of the original: all steps of all agents, one at a time."""
  tree = ast.parse(inspect.getsource(collect_rollouts))
  calls = {
    ast.unparse(x.func): x for x in ast.walk(tree) if isinstance(x, ast.Call)
  }
  scan = calls['tf.scan']
  assert [ast.unparse(x) for x in scan.args] == [
    'simulate_fn',
    'tf.range(duration)',
    'initializer',
  ]
  assert {x.arg: ast.unparse(x.value) for x in scan.keywords} == {
    'parallel_iterations': '1'
  }
  assert 'tf.while_loop' not in calls


def test_failed_episodes_are_dropped():
  """They are no scores, nor is their rest; the next simulation plays again."""
  values, played = play(FailingEnv(10, {0: 3}), simulations=2)
  assert played == [[3, 7, 10]]
  assert [len(x[0]) for x in values] == [0, 1]
  expected, _ = play(FailingEnv(10, {}, first=2))
  for value, other in zip(values[1], expected[0]):
    np.testing.assert_array_equal(value, other)


def test_others_play_on_after_failures():
  """Each gives what it gives alone, whichever fails; whole episodes count."""
  values, played = play(FailingEnv(6, {}), FailingEnv(6, {0: 4, 1: 2}))
  assert played == [[6, 4], [4, 2, 4]]
  alone = [play(FailingEnv(6, x))[0][0] for x in ({}, {0: 4, 1: 2})]
  for index in (0, 1, 2, 3):
    expected = np.concatenate([x[index] for x in alone])
    golden.assert_close(values[0][index], expected, **golden.MODEL)
  assert values[0][0].shape == (1,)


def test_failures_after_whole_episodes():
  """They are no scores, and change none."""
  values, played = play(FailingEnv(4, {1: 2}))
  assert played == [[4, 2, 4]]
  assert values[0][0].shape == (1 + 1,)
