"""Make the PPO in the PyBullet wheel importable on current TensorFlow.

Also the version of google-research/batch-ppo that it was copied from.

The files are not changed. Replaces what no longer exists and fixes what is
random: seeds, and the order of two operations.
"""

import functools
import itertools
import math
import os
import sys
import types
from collections.abc import Callable, Iterator


def prepare(
  folder: str, clone: str | None = None
) -> Callable[..., Iterator[float]]:
  """Put the folder with `pybullet_envs` on the path.

  Call this before importing TensorFlow.

  Args:
    folder: Folder that contains `pybullet_envs`.
    clone: Folder of batch-ppo to train with instead of the wheel, which still
      provides the settings.

  Returns:
    Function from a seed, the name of a configuration, whether each environment
    has a process, and other settings, to the scores of all phases.
  """
  import gym
  import numpy as np
  import tensorflow.compat.v1 as tf

  tf.disable_v2_behavior()
  vars(np).setdefault('bool8', np.bool_)
  tf.contrib = _define_contrib(tf)
  tf.scan = _order(tf)
  threads = dict.fromkeys(
    ('intra_op_parallelism_threads', 'inter_op_parallelism_threads'), 1
  )
  tf.ConfigProto = functools.partial(tf.ConfigProto, **threads)
  sys.path.insert(0, folder)
  import pybullet_envs  # noqa: F401, registers its environments
  from pybullet_envs.agents import configs, tools, train_ppo, utility

  own = {}
  if clone:
    sys.modules['tensorflow'] = tf
    sys.path.insert(0, clone)
    from agents import ppo, tools
    from agents.scripts import networks, utility
    from agents.scripts import train as train_ppo

    own['algorithm'] = ppo.PPOAlgorithm
    own['network'] = networks.feed_forward_gaussian
  # The configuration looks for the class in the other module.
  from pybullet_envs.bullet import minitaur_duck_gym_env, minitaur_gym_env

  duck = minitaur_duck_gym_env.MinitaurBulletDuckEnv
  vars(minitaur_gym_env)['MinitaurBulletDuckEnv'] = duck
  for wrapper in (tools.wrappers.RangeNormalize, tools.wrappers.ClipAction):
    _keep_spaces(wrapper)
  make, define = gym.make, utility.define_batch_env

  external = tools.wrappers.ExternalProcess

  def train(seed, name='pybullet_pendulum', processes=False, **settings):
    count = itertools.count(1000 * seed)

    class SeededProcess(external):
      def __init__(self, constructor):
        super().__init__(constructor)
        # The process is a copy and has drawn this seed.
        next(count)

    def make_seeded(name):
      env = make(name, disable_env_checker=True).unwrapped
      env.seed(next(count))
      return env

    def define_seeded(*args):
      tf.set_random_seed(seed)
      np.random.seed(seed)
      return define(*args)

    train_ppo.gym = types.SimpleNamespace(make=make_seeded)
    utility.define_batch_env = define_seeded
    tools.wrappers.ExternalProcess = SeededProcess
    config = {**getattr(configs, name)(), **own, **settings}
    config = tools.AttrDict(config)
    return train_ppo.train(config, processes)

  return train


def train(folder: str, flags: list[str], out: str) -> None:
  """Train with flags; writes a row per phase to `progress.csv` in a folder."""
  given = dict(x.removeprefix('--').split('=') for x in flags if '=' in x)
  run, name = prepare(folder), given['config']
  from pybullet_envs.agents import configs

  size = (
    configs.default()['update_every'] * getattr(configs, name)()['max_length']
  )
  processes = '--noenv_processes' not in flags
  scores = run(int(given['seed']), name, processes, steps=float(given['steps']))
  with open(os.path.join(out, 'progress.csv'), 'w', buffering=1) as file_:
    file_.write('global_step,phase,mean_score\n')
    # Training and evaluation phases alternate and have the same size.
    for index, score in enumerate(scores):
      phase = 'eval' if index % 2 else 'train'
      file_.write(f'{(index + 1) * size},{phase},{score:.4f}\n')


def _define_contrib(tf):
  """Return the parts of tf.contrib that the original uses."""

  def fully_connected(
    x, size, activation_fn=tf.nn.relu, weights_initializer=None
  ):
    with tf.variable_scope(None, 'fully_connected'):
      weights = tf.get_variable(
        'weights',
        (x.shape.as_list()[-1], size),
        initializer=weights_initializer or tf.glorot_uniform_initializer(),
      )
      biases = tf.get_variable(
        'biases', (size,), initializer=tf.zeros_initializer()
      )
    y = tf.tensordot(x, weights, 1) + biases
    y.set_shape([*x.shape.as_list()[:-1], size])
    return activation_fn(y) if activation_fn else y

  def variance_scaling_initializer(factor=2.0):
    def initialize(shape, dtype=None, partition_info=None):
      stddev = math.sqrt(1.3 * factor / shape[0])
      return tf.truncated_normal(shape, 0.0, stddev, dtype or tf.float32)

    return initialize

  class MultivariateNormalDiag:
    def __init__(self, mean, stddev):
      self.mean, self.stddev = mean, stddev

    def sample(self):
      return self.mean + self.stddev * tf.random_normal(tf.shape(self.mean))

    def log_prob(self, x):
      z = (x - self.mean) / self.stddev
      terms = -0.5 * z**2 - tf.log(self.stddev) - 0.5 * math.log(2 * math.pi)
      return tf.reduce_sum(terms, -1)

  part = types.SimpleNamespace
  return part(
    layers=part(
      fully_connected=fully_connected,
      variance_scaling_initializer=variance_scaling_initializer,
    ),
    rnn=part(GRUBlockCell=None),
    distributions=part(MultivariateNormalDiag=MultivariateNormalDiag),
    framework=part(nest=tf.nest),
  )


def _keep_spaces(wrapper):
  """Cache the spaces of a wrapper, to save time."""
  for name in ('observation_space', 'action_space'):
    if name in vars(wrapper):
      cached = vars(wrapper)[name].fget
      key = f'_kept_{name}'

      def get(self, cached=cached, key=key):
        if key not in vars(self):
          vars(self)[key] = cached(self)
        return vars(self)[key]

      setattr(wrapper, name, property(get))


def _order(tf):
  """Return a `tf.scan` that waits for the advantage.

  In the original, the first update may change the weights before the baseline
  of the advantage is computed with them.
  """
  scan = tf.scan

  def ordered(*args, **kwargs):
    advantage = [
      op
      for op in tf.get_default_graph().get_operations()
      if op.type == 'Print'
      and op.get_attr('message') == b'normalized advantage: '
    ]
    with tf.control_dependencies(advantage):
      return scan(*args, **kwargs)

  return ordered
