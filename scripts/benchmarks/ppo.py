"""Environment steps of PPO's training, against environments one by one."""

import argparse
import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.tools import batch_env
from agents.tools import phases
from scripts.benchmarks import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument('--config', default='pybullet_pendulum', help='which')
  parser.add_argument(
    '--updates', type=int, default=6, help='updates to measure, after two'
  )
  parser.add_argument(
    '--episodes', type=int, default=None, help='per update, and agents at once'
  )


def run(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure training phases, each with the update at its end.

  The baseline steps one environment after another, through wrappers that
  build their spaces anew whenever they are asked for them, as the original
  does. Graph and network are the same.
  """
  return measure(args, _create_batch_env if variant == 'ours' else _one_by_one)


def environ(variant: str, args: argparse.Namespace) -> dict[str, str]:
  """The original leaves the number of threads to TensorFlow."""
  del args
  if variant == 'ours':
    return {}
  names = ('TF_NUM_INTRAOP_THREADS', 'TF_NUM_INTEROP_THREADS')
  return {name: str(os.cpu_count()) for name in names}


def run_workers(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure ours with worker processes, and in one process as baseline."""
  workers = None if variant == 'ours' else 0
  return measure(
    args, functools.partial(_create_batch_env, num_workers=workers)
  )


def measure(
  args: argparse.Namespace, create: Callable[[Any], Any]
) -> common.Measurement:
  """CPU and wall seconds of training phases after the second update.

  Args:
    args: Parsed arguments.
    create: Function from a configuration to a batch environment.
  """
  from agents import runs
  from agents import train_ppo

  names = ('num_agents', 'update_every', 'eval_episodes')
  config = runs.prepare(
    args.config, overrides={'seed': 0, **dict.fromkeys(names, args.episodes)}
  )
  steps = config.update_every * config.max_length
  with config.unlocked:
    config.steps = steps * (args.updates + 2)
  clock = _Clock(skip=2)
  for _ in train_ppo.train(
    config,
    False,
    observers=lambda *unused: [clock],
    batch_env=create(config),
  ):
    pass
  clock.total.units = steps * args.updates
  evaluation = clock.evaluation
  clock.total.extra = {
    'evaluation_steps_per_cpu_s': steps * args.updates / evaluation.cpu_s,
    'steps_per_wall_s': steps * args.updates / clock.total.wall_s,
  }
  return clock.total


class _Clock(phases.Observer):
  """Adds up the time of phases, once some of them have passed.

  Args:
    skip: Number of training phases that do not count.
  """

  def __init__(self, skip):
    self.total = common.Measurement()
    self.evaluation = common.Measurement()
    self._skip = skip
    self._current = None

  def start_phase(self, phase, epoch, *unused):
    self._stop()
    if epoch >= self._skip:
      total = self.total if phase.name == 'train' else self.evaluation
      self._current = (total, common.Measurement())
      self._current[1].__enter__()

  def close(self):
    self._stop()

  def _stop(self):
    if self._current:
      total, part = self._current
      part.__exit__()
      total.cpu_s += part.cpu_s
      total.wall_s += part.wall_s
    self._current = None


def _create_batch_env(config, num_workers=0):
  from agents.envs import continuous

  return continuous.batch(config, config.num_agents, 0, num_workers)


def _one_by_one(config):
  from agents.envs import continuous

  envs = []
  for index in range(config.num_agents):
    env = continuous.seeded(config.env, index)
    envs.append(_wrap(env, config.max_length))
  return _BatchEnv(envs)


class _BatchEnv:
  """Step environments one after another, checking each action."""

  def __init__(self, envs):
    self._envs = envs
    self.observation_space = envs[0].observation_space
    self.action_space = envs[0].action_space

  def __len__(self):
    return len(self._envs)

  def step(self, actions):
    for env, action in zip(self._envs, actions):
      if not env.action_space.contains(action):
        raise ValueError(action)
    transitions = [env.step(x) for env, x in zip(self._envs, actions)]
    return batch_env.stack_transitions(transitions)

  def reset(self, indices):
    return np.stack([self._envs[index].reset() for index in indices])

  def close(self):
    for env in self._envs:
      env.close()


def _wrap(env, duration):
  """Wrappers of the original, with the spaces as it builds them."""
  import gym

  from agents.tools import wrappers

  class ClipAction(wrappers.Wrapper):
    @property
    def action_space(self):
      high = np.inf * np.ones(self._env.action_space.shape, np.float32)
      return gym.spaces.Box(-high, high)

    def step(self, action):
      space = self._env.action_space
      return self._env.step(np.clip(action, space.low, space.high))

  class RangeNormalize(wrappers.Wrapper):
    @property
    def action_space(self):
      space = self._env.action_space
      ones = np.ones(space.shape, np.float32)
      return gym.spaces.Box(-ones, ones)

    def step(self, action):
      low, high = self._env.action_space.low, self._env.action_space.high
      return self._env.step((action + 1) / 2 * (high - low) + low)

  env = wrappers.LimitDuration(env, duration)
  return wrappers.ConvertTo32Bit(ClipAction(RangeNormalize(env)))


SUBJECTS = [
  common.Subject(
    'ppo',
    'training of PPO, against environments stepped one by one',
    'steps',
    run,
    add_arguments,
    environ,
  ),
  common.Subject(
    'ppo-workers',
    'training of PPO with worker processes, against a single process',
    'steps',
    run_workers,
    add_arguments,
  ),
]
