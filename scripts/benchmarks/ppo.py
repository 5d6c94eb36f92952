"""Environment steps of PPO's training: environments, workers, and ranks."""

import argparse
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.tools import batch_env, phases
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


def add_rank_arguments(parser: argparse.ArgumentParser) -> None:
  add_arguments(parser)
  parser.add_argument('--ranks', type=int, default=2, help='processes of MPI')


def run_ranks(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure ours with several processes of MPI, and with one as baseline.

  Beside the seconds of the clock, which count on idle cores only, there is
  what they would be there: between two messages, all wait for the process that
  needs the most CPU seconds.
  """
  if variant == 'baseline':
    return measure(args, _create_batch_env)
  if variant == 'rank':
    from agents.run import mpi

    comm = _TimedComm(mpi.world())
    result = measure(args, None, comm)
    parts = zip(*comm.allgather(comm.parts))
    result.extra['critical_s'] = sum(max(x) for x in parts)
    result.extra['waiting_cpu_s'] = comm.waiting
    return result
  flags = [f'--config={args.config}', f'--updates={args.updates}']
  flags += [f'--episodes={args.episodes}'] if args.episodes else []
  mpirun = os.path.join(os.path.dirname(sys.executable), 'mpirun')
  command = [mpirun, '--oversubscribe', '-n', str(args.ranks), sys.executable]
  command += ['-m', 'scripts.benchmark', 'ppo-ranks', '--child=rank', *flags]
  # Open MPI refuses otherwise, but containers often have no other user.
  names = ('OMPI_ALLOW_RUN_AS_ROOT', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM')
  output = subprocess.run(
    command,
    check=True,
    stdout=subprocess.PIPE,
    text=True,
    env={**os.environ, **dict.fromkeys(names, '1')},
  ).stdout
  found = [
    json.loads(x[len('RESULT ') :])
    for x in output.splitlines()
    if x.startswith('RESULT ')
  ]
  return _combine(found)


def _combine(found):
  """Measurement of all processes from those of each as plain numbers."""
  result = common.Measurement(found[0]['units'])
  result.cpu_s = sum(x['cpu_s'] for x in found)
  result.wall_s = max(x['wall_s'] for x in found)
  waiting = sum(x['extra']['waiting_cpu_s'] for x in found)
  result.extra = {
    'steps_per_wall_s': result.units / result.wall_s,
    'steps_per_critical_s': result.units / found[0]['extra']['critical_s'],
    'waiting_part_of_cpu_s': waiting / result.cpu_s,
  }
  return result


class _TimedComm:
  """Communicator that tells apart the CPU seconds of work and of waiting.

  Attributes:
    parts: CPU seconds of work before each message, once `counting` is True.
    waiting: CPU seconds within messages.
  """

  def __init__(self, comm):
    self._comm = comm
    self._last = time.process_time()
    self.counting = False
    self.parts = []
    self.waiting = 0.0

  def __getattr__(self, name):
    function = getattr(self._comm, name)
    if name in ('Get_rank', 'Get_size'):
      return function
    return functools.partial(self._call, function)

  def _call(self, function, *args, **kwargs):
    began, counting = time.process_time(), self.counting
    result = function(*args, **kwargs)
    ended = time.process_time()
    if counting:
      self.parts.append(began - self._last)
      self.waiting += ended - began
    self._last = ended
    return result


def measure(
  args: argparse.Namespace,
  create: Callable[[Any], Any] | None,
  comm: Any = None,
) -> common.Measurement:
  """CPU and wall seconds of training phases after the second update.

  Args:
    args: Parsed arguments.
    create: Function from a configuration to a batch environment; None for the
      usual one in this process.
    comm: MPI communicator, whose `counting` is True while time is taken.
  """
  from agents import runs, train_ppo

  names = ('num_agents', 'update_every', 'eval_episodes')
  config = runs.prepare(
    args.config, overrides={'seed': 0, **dict.fromkeys(names, args.episodes)}
  )
  steps = config.update_every * config.max_length
  with config.unlocked:
    config.steps = steps * (args.updates + 2)
  clock = _Clock(2, comm)
  for _ in train_ppo.train(
    config,
    False,
    comm,
    observers=lambda *unused: [clock],
    batch_env=create and create(config),
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
    comm: Object whose `counting` is set during training phases, or None.
  """

  def __init__(self, skip, comm=None):
    self._comm = comm
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
      if self._comm:
        self._comm.counting = phase.name == 'train'

  def close(self):
    self._stop()

  def _stop(self):
    if self._current:
      total, part = self._current
      part.__exit__()
      total.cpu_s += part.cpu_s
      total.wall_s += part.wall_s
    self._current = None
    if self._comm:
      self._comm.counting = False


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
    'training of PPO with worker processes, against a single process; look at '
    'the wall, as CPU seconds are those of the first process',
    'steps',
    run_workers,
    add_arguments,
  ),
  common.Subject(
    'ppo-ranks',
    'training of PPO with several processes of MPI, against a single one',
    'steps',
    run_ranks,
    add_rank_arguments,
  ),
]
