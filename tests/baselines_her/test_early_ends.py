"""Goal environments that end episodes before their time limit."""

import gymnasium
import numpy as np
import pytest

import baselines_her
from agents.envs.contract import GOAL_KEYS
from baselines_her import config, her_sampler, replay_buffer, settings
from baselines_her.params import common
from baselines_her.pipeline import task as pipeline_task
from tests.baselines_her import odd_envs, test_library, test_rollout, toy

LIMIT = 20


class Reach(gymnasium.Env):
  """A point in the plane; the episode ends where its goal is.

  Args:
    size: Bound of the actions, which move by the same distance whatever it is.
  """

  observation_space = gymnasium.spaces.Dict(
    {key: gymnasium.spaces.Box(-1, 1, (2,), np.float32) for key in GOAL_KEYS}
  )

  def __init__(self, size=1.0):
    self._size = size
    self.action_space = gymnasium.spaces.Box(-size, size, (2,), np.float32)

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._place, self._goal = self.np_random.uniform(-1, 1, (2, 2))
    return self._observe(), {}

  def step(self, action):
    place = self._place + 0.2 * np.asarray(action) / self._size
    self._place = np.clip(place, -1, 1)
    reward = float(self.compute_reward(self._place, self._goal, {}))
    reached = reward == 0
    return self._observe(), reward, reached, False, {'is_success': reached}

  def compute_reward(self, achieved, desired, info):
    distance = np.linalg.norm(achieved - desired, axis=-1)
    return -(distance >= 0.15).astype(np.float32)

  def _observe(self):
    values = self._place, self._place, self._goal
    return {k: np.float32(v) for k, v in zip(GOAL_KEYS, values)}


for _name, _size in (('Reach', 1.0), ('ReachFar', 3.0)):
  gymnasium.register(
    f'{_name}-v0', Reach, max_episode_steps=LIMIT, kwargs={'size': _size}
  )
MODULE = 'tests.baselines_her.test_early_ends'


@pytest.mark.parametrize('number', [1, 2])
def test_episodes(number):
  """All steps are stored, and the rest is filled with the last state."""
  worker = test_rollout.make_worker('Early', number=number)
  if number == 2:
    worker.venv[1].unwrapped.oddity = ''
  episode = worker.generate_rollouts()
  np.testing.assert_array_equal(episode['length'], [3, 4][:number])
  assert episode['o'].shape == (number, odd_envs.LIMIT, 2)
  assert episode['u'].shape == (number, odd_envs.LIMIT - 1, 1)
  np.testing.assert_array_equal(worker.returns, [-3, -5][:number])


def test_environments_that_have_ended_do_nothing():
  """Their actions are zero, and the values of these do not count."""
  worker = test_rollout.make_worker('Early')
  worker.venv[1].unwrapped.oddity = ''
  worker.compute_Q = True
  values = np.array([[7.0], [1.0]])
  # Arrays of other libraries cannot be written to.
  actions = np.broadcast_to(np.float32(1), (2, 1))
  worker.policy.get_actions = lambda *a, **k: (actions, values)
  episode = worker.generate_rollouts()
  assert episode['u'][..., 0].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
  assert episode['u'].dtype == np.float32
  assert worker.current_mean_Q() == (3 * 7 + 5 * 1) / 8


def test_success_in_an_array_that_is_used_again():
  """The next episode does not change it."""
  worker = test_rollout.make_worker('Reusing')
  worker.generate_rollouts()
  assert worker.current_success_rate() == 1


def test_last_state_and_success():
  """Success is that of the step that ended the episode."""
  from baselines_her import envs, rollout, vec_env

  venv = vec_env.DummyVecEnv([lambda: envs.make(f'{MODULE}:Reach-v0')])
  venv[0].seed(0)
  dims = {'o': 2, 'g': 2, 'u': 2, 'info_is_success': 1}

  class Greedy(test_rollout.Policy):
    def get_actions(self, o, ag, g, **unused):
      return np.clip(5 * (g - ag), -1, 1)

  worker = rollout.RolloutWorker(
    venv, Greedy(), dims, test_rollout.Logger(), LIMIT
  )
  episode = worker.generate_rollouts()
  (length,) = episode['length']
  assert 1 < length < LIMIT - 1 and worker.current_success_rate() == 1
  distances = np.linalg.norm(episode['ag'][0] - episode['g'][0, 0], axis=-1)
  assert (distances[:length] >= 0.15).all()
  assert (distances[length:] < 0.15).all()
  assert (episode['u'][0, length:] == 0).all()
  assert worker.returns == [1 - length]
  assert (episode['info_is_success'][0, length - 1 :] == 1).all()


class Whole(Reach):
  """Begins each episode at a corner, in integers."""

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._place, self._goal = np.array([[1, 1], [0, 0]])
    values = self._place, self._place, self._goal
    return dict(zip(GOAL_KEYS, values)), {}


def test_last_state_beside_first_states_of_integers():
  """Several environments keep the types that they return."""
  from baselines_her import envs, rollout, vec_env

  def make():
    return envs.make(lambda: gymnasium.wrappers.TimeLimit(Whole(), LIMIT))

  venv = vec_env.DummyVecEnv([make], native=True)
  dims = {'o': 2, 'g': 2, 'u': 2, 'info_is_success': 1}
  policy = test_rollout.Policy()
  policy.get_actions = lambda *args, **kwargs: np.array([[-0.95, -0.95]])
  worker = rollout.RolloutWorker(
    venv, policy, dims, test_rollout.Logger(), LIMIT
  )
  episode = worker.generate_rollouts()
  assert episode['length'] == [5]
  np.testing.assert_allclose(episode['ag'][0, 5:], 0.05, rtol=1e-5)


def make_buffer(sampler=None):
  shapes = {'o': (5, 1), 'ag': (5, 1), 'g': (4, 1), 'u': (4, 1)}
  sampler = sampler or her_sampler.make_sample_her_transitions(
    'future', 4, toy.sparse_reward
  )
  buffer = replay_buffer.ReplayBuffer(shapes, 50, 5, sampler)
  time = np.arange(5.0)
  # Episode and time of each entry.
  rows = {k: np.empty((3, v[0], 1)) for k, v in shapes.items()}
  for key, values in rows.items():
    values[..., 0] = 10 * np.arange(3)[:, None] + time[: values.shape[1]]
    if key == 'g':
      values[:] = -1
  return buffer, rows


def test_sampling():
  """Uniform over the steps that were taken; goals are of later steps."""
  buffer, rows = make_buffer()
  buffer.store_episode({**rows, 'length': np.array([1, 4, 2])})
  np.random.seed(0)
  found = buffer.sample(7000)
  steps, counts = np.unique(found['o'], return_counts=True)
  np.testing.assert_array_equal(steps, [0, 10, 11, 12, 13, 20, 21])
  assert counts.min() > 850 and counts.max() < 1150
  np.testing.assert_array_equal(found['o_2'], found['o'] + 1)
  new = found['g'] >= 0
  assert abs(new.mean() - 0.8) < 0.03
  ends = np.array([1, 14, 22])[(found['o'] // 10).astype(int)]
  assert (found['g'][new] > found['o'][new]).all()
  assert (found['g'][new] <= ends[new]).all()
  assert {1, 11, 14, 22} <= {*found['g'][new]}


def test_checkpoints_and_full_episodes():
  """Lengths are restored; full episodes give the numbers of before."""
  buffer, rows = make_buffer()
  buffer.store_episode({**rows, 'length': np.array([1, 4, 2])})
  other, _ = make_buffer()
  other.load_state_dict(buffer.state_dict())
  np.testing.assert_array_equal(other.lengths, buffer.lengths)
  for lengths in ({'length': np.array([4, 4, 4])}, {}):
    buffer, _ = make_buffer()
    buffer.store_episode({**rows, **lengths})
    assert 'length' not in buffer.state_dict()
    other.load_state_dict(buffer.state_dict())
    assert (other.lengths == 4).all()
    np.random.seed(0)
    result = buffer.sample(5)
    np.random.seed(0)
    draws = buffer.sample_transitions.draw(3, 4, 5)
    np.testing.assert_array_equal(
      result['o'][:, 0], 10 * draws.episode + draws.time
    )


def test_own_sampler():
  """It sees the filled arrays and no lengths."""
  seen = []
  buffer, rows = make_buffer(lambda episodes, count: seen.append(episodes))
  buffer.store_episode({**rows, 'length': np.array([1, 4, 2])})
  buffer.sample(2)
  assert set(seen[0]) == {'o', 'ag', 'g', 'u', 'o_2', 'ag_2'}


def test_limit_of_actions():
  """That of the action space, unless it is given."""
  name = f'{MODULE}:ReachFar-v0'
  task = config.Task(name)
  assert task.usual == {'max_u': 3.0}
  _, values, _ = settings.settle(name, 1, {}, usual=task.usual)
  assert values.max_u == 3 and task.notes(values) == []
  _, values, _ = settings.settle(name, 1, {'max_u': 1.0}, usual=task.usual)
  assert values.max_u == 1
  (note,) = task.notes(values)
  assert 'go up to 3.0, but max_u is 1.0' in note
  assert config.Task(f'{MODULE}:Reach-v0').usual == {}


@pytest.mark.parametrize('given, wanted', [(None, 3), (0.5, 0.5)])
def test_limit_in_the_pipeline(given, wanted):
  from unittest import mock

  panel = {**common.make_cpanel(f'{MODULE}:ReachFar-v0', 1), 'max_u': given}
  args = common.gen_params(panel)['memory']['train']['args']
  assert pipeline_task.Task(mock.Mock(), **args).settings.max_u == wanted


@pytest.mark.slow
def test_solved(tmp_path):
  """HER learns where reaching the goal ends the episode."""
  params = {
    **test_library.PARAMS,
    'n_cycles': 10,
    'n_batches': 40,
    'hidden': 32,
    'layers': 2,
    'batch_size': 128,
    'n_test_rollouts': 10,
  }
  rates = []
  for record in baselines_her.train(
    f'{MODULE}:ReachFar-v0', tmp_path, 8000, params, 0
  ):
    rates.append(record['test_success_rate'])
    if rates[-4:] == [1, 1, 1, 1]:
      break
  assert rates[-4:] == [1, 1, 1, 1]
  with baselines_her.load(str(tmp_path), trust='tests') as agent:
    assert baselines_her.evaluate(agent, episodes=20).success_rate >= 0.9
