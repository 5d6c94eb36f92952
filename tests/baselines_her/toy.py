"""A point in the plane that is pushed towards a goal, and recorded agents.

The task is the one of the recorded `learn` runs; see `tests/data/README.md`.
"""

import contextlib
import json
import types

import numpy as np

from agents.envs import spaces
from tests import golden

EPISODE_KEYS = ('o', 'u', 'g', 'ag', 'info_is_success')
# Differences between orders of summation add up over the updates of a run.
RUN = dict(rtol=1e-5, atol=3e-5)


class ToyPoint:
  """Goal environment with four-tuple steps.

  Args:
    steps: Time limit.
    seed: Seed of the generator.
  """

  def __init__(self, steps=10, seed=None):
    def free(size):
      return spaces.box([-np.inf] * size, [np.inf] * size)

    self.observation_space = spaces.dictionary(
      {
        'observation': free(4),
        'achieved_goal': free(2),
        'desired_goal': free(2),
      }
    )
    self.action_space = spaces.box([-1, -1], [1, 1])
    self._max_episode_steps = steps
    self.spec = types.SimpleNamespace(id='ToyPoint-v0', max_episode_steps=steps)
    self.resets = 0
    self._random = np.random.RandomState(0)
    if seed is not None:
      self.seed(seed)

  def seed(self, seed):
    self._random = np.random.RandomState(seed)

  def reset(self):
    self._place = self._random.uniform(-1, 1, 2)
    self._speed = np.zeros(2)
    self._goal = self._random.uniform(-1, 1, 2)
    self._time = 0
    self.resets += 1
    return self._observe()

  def step(self, action):
    push = np.clip(np.asarray(action, np.float64), -1, 1)
    self._speed = 0.5 * self._speed + 0.1 * push
    self._place = self._place + self._speed
    self._time += 1
    distance = np.linalg.norm(self._place - self._goal)
    reward = self.compute_reward(self._place, self._goal, {})
    info = {'is_success': np.float32(distance < 0.25)}
    return self._observe(), reward, self._time >= self._max_episode_steps, info

  def compute_reward(self, achieved, desired, unused_info):
    distance = np.linalg.norm(achieved - desired, axis=-1)
    return -(distance > 0.25).astype(np.float32)

  def get_state(self):
    return self._random.get_state()

  def set_state(self, state):
    self._random.set_state(state)

  def close(self):
    pass

  def _observe(self):
    return {
      'observation': np.concatenate([self._place, self._speed]),
      'achieved_goal': self._place.copy(),
      'desired_goal': self._goal.copy(),
    }


def vec_env(steps, seeds):
  """Vector of toy environments."""
  from baselines_her import vec_env as vec_env_lib

  return vec_env_lib.DummyVecEnv(
    [lambda seed=seed: ToyPoint(steps, seed) for seed in seeds]
  )


def use_toy(monkeypatch, steps):
  """Let environments that are made by id be toys."""
  from baselines_her import envs

  monkeypatch.setattr(envs, 'make', lambda *unused, **settings: ToyPoint(steps))


@contextlib.contextmanager
def session():
  """Default session of one thread."""
  from baselines_her import tf_util

  with tf_util.single_threaded_session().as_default() as sess:
    yield sess


def group(data, prefix):
  """Recorded arrays whose names begin with a prefix, which is cut off."""
  return {
    key[len(prefix) :]: data[key] for key in data if key.startswith(prefix)
  }


def key_of(name):
  """Key of a variable in the recorded data."""
  return name.replace('/', '.').replace(':0', '')


def sparse_reward(ag_2, g, info):
  """Reward of most recordings."""
  return -(np.linalg.norm(ag_2 - g, axis=-1) > 0.05).astype(np.float32)


def info_reward(ag_2, g, info):
  """Reward that depends on the info, too."""
  far = np.linalg.norm(ag_2 - g, axis=-1) > 0.5
  return -far.astype(np.float32) + 0.25 * info['is_success'][:, 0]


def make_policy(data, **changes):
  """Agent with the recorded settings and initial weights."""
  from agents.tools.tf1 import tf
  from baselines_her import config, ddpg, her_sampler

  hyper = json.loads(str(data['hyper']))
  settings = dict(
    hyper,
    input_dims={k: int(v) for k, v in hyper.pop('dims').items()},
    buffer_size=2000,
    network_class='baselines_her.actor_critic:ActorCritic',
    scope='ddpg',
    subtract_goals=config.simple_goal_subtract,
    num_demo=len(data['demo_o']) if 'demo_o' in data else 1,
    sample_transitions=her_sampler.make_sample_her_transitions(
      'future', 4, sparse_reward
    ),
  )
  settings.pop('dims', None)
  settings['clip_return'] = float(settings['clip_return'])
  policy = ddpg.DDPG(**{**settings, **changes})
  for variable in tf.global_variables():
    variable.load(data['w0.' + key_of(variable.name)], policy.sess)
  return policy


def values(sess, prefix=''):
  """Dict of the values of all variables whose names begin so."""
  from agents.tools.tf1 import tf

  chosen = [x for x in tf.global_variables() if x.name.startswith(prefix)]
  return dict(zip([x.name for x in chosen], sess.run(chosen)))


def flat(sess, prefix):
  """Values of the variables below a scope as one vector."""
  return np.concatenate([x.ravel() for x in values(sess, prefix).values()])


def load(name):
  """Recorded data of HER."""
  return golden.load(f'her/{name}')
