"""Play episodes in the graph."""

import functools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import batch_env, guard, video
from agents.run import progress, stopping
from agents.tools import nested
from agents.tools import simulate as simulate_batch
from agents.tools.attr_dict import AttrDict
from agents.tools.tf1 import tf
from planet.control.in_graph_batch_env import InGraphBatchEnv
from planet.control.mpc_agent import MPCAgent
from planet.envs.seeding import seeded_constructor
from planet.tools.gif_summary import gif_summary as define_gif_summary
from planet.tools.image_strip_summary import image_strip_summary


def simulate(
  step: tf.Tensor,
  env_ctor: Callable,
  duration: int,
  num_agents: int,
  agent_config: AttrDict,
  isolate_envs: str = 'none',
  expensive_summaries: bool = False,
  gif_summary: bool = True,
  name: str = 'simulate',
) -> tuple[tf.Tensor, tf.Tensor, Callable]:
  """Play episodes and summarize them.

  Args:
    step: Tensor of the training step.
    env_ctor: Function without arguments that returns an environment.
    duration: Number of steps to play.
    num_agents: Number of parallel environments.
    agent_config: Configuration of `MPCAgent`, with an optional `seed` for the
      environments.
    isolate_envs: `none`, `thread` or `process`.
    expensive_summaries: Whether to add histograms and an image strip.
    gif_summary: Whether to add an animation.
    name: Name of the variable scope.

  Returns:
    Tuple of a summary, the mean return of finished episodes, or NaN without
    any, and a function that closes the environments.
  """
  with tf.variable_scope(name):
    score, image, action, reward, cleanup = collect_rollouts(
      step, env_ctor, duration, num_agents, agent_config, isolate_envs, name
    )
    return_mean = tf.reduce_mean(score)
    summaries = [tf.summary.scalar('return', return_mean)]
    is_image = image.shape.ndims == 5
    if expensive_summaries:
      summaries += [
        tf.summary.histogram('return_hist', score),
        tf.summary.histogram('reward_hist', reward),
        tf.summary.histogram('action_hist', action),
      ]
      if is_image:
        summaries.append(
          image_strip_summary('image', image, duration, gap=video.GAP)
        )
    if gif_summary and is_image:
      summaries.append(
        define_gif_summary('animation', image, max_outputs=1, fps=20)
      )
    return tf.summary.merge(summaries), return_mean, cleanup


def collect_rollouts(
  step: tf.Tensor,
  env_ctor: Callable,
  duration: int,
  num_agents: int,
  agent_config: AttrDict,
  isolate_envs: str = 'none',
  name: str = 'episodes',
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, Callable]:
  """Reset the environments and play a number of steps.

  If a step of an environment fails, that is, if its info contains `step_error`,
  its episode is dropped: it counts in no score, and the environment is reset
  for the steps that are left. The next simulation plays another one.

  Args:
    step: Tensor of the training step.
    env_ctor: Function without arguments that returns an environment.
    duration: Number of steps to play.
    num_agents: Number of parallel environments.
    agent_config: Configuration of `MPCAgent`.
    isolate_envs: `none`, `thread` or `process`.
    name: Name of the episodes in the progress display.

  Returns:
    Tuple of returns of finished episodes, float32 [episodes], ordered by time
    and then agent; observations after each step [agents, time, ...]; actions
    [agents, time, size]; rewards float32 [agents, time]; and a function that
    closes the environments.
  """
  watched = define_batch_env(
    env_ctor, num_agents, isolate_envs, agent_config.get('seed')
  )
  watched.duration, watched.name = duration, name
  env = InGraphBatchEnv(watched)
  agent = MPCAgent(env, step, False, False, agent_config)

  def simulate_fn(unused_last, index):
    done, score, _ = simulate_step(
      env, agent, log=False, reset=tf.equal(index, 0)
    )
    with tf.control_dependencies([done, score]):
      failed = tf.py_func(lambda: watched.failed, [], tf.bool, name='failed')
      failed.set_shape(done.shape)
      return done & ~failed, score, env.observ, env.action, env.reward

  initializer = nested.map(
    tf.zeros_like, (env.done, env.reward, env.observ, env.action, env.reward)
  )
  # The steps do not depend on the carried values: only parallel_iterations=1
  # keeps them in order.
  done, score, image, action, reward = tf.scan(
    simulate_fn, tf.range(duration), initializer, parallel_iterations=1
  )
  score = tf.boolean_mask(score, done)
  image, action, reward = map(_agents_first, (image, action, reward))
  return score, image, action, reward, env.close


def _agents_first(tensor):
  """Transpose [time, agents, ...] to [agents, time, ...]."""
  return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.ndims)])


def simulate_step(
  batch_env: Any,
  algo: Any,
  log: bool | tf.Tensor = True,
  reset: bool | tf.Tensor = False,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Step environments and algorithm; see `agents.tools.simulate`.

  As in the original PlaNet, scores and lengths of the current episodes are
  local variables, which are not saved.
  """
  return simulate_batch(
    batch_env, algo, log, reset, [tf.GraphKeys.LOCAL_VARIABLES]
  )


class WatchedEnv(batch_env.VectorEnv):
  """Environments that report progress and respond to requests to stop.

  A failed step, with `step_error` in its info, ends the episode.

  Attributes:
    duration: Number of steps of one simulation.
    name: Name of the episodes in the progress display.
    failed: Whether the last step failed, bool [agents].
  """

  duration, name = 1, 'episodes'
  failed: np.ndarray
  _steps = 0

  def step(self, actions: np.ndarray) -> tuple:
    stopping.check()
    self._steps = self._steps % self.duration + 1
    last = self._steps == self.duration
    progress.set_activity(
      '' if last else f'{self.name}, step {self._steps} of {self.duration}'
    )
    observ, reward, done, infos = super().step(actions)
    self.failed = np.array([guard.has_failed(x) for x in infos])
    if self.failed.any():
      logging.getLogger(__name__).warning(
        'A step of %s failed; the episode is dropped.', self.name
      )
    return observ, reward, done | self.failed, infos


def define_batch_env(
  env_ctor: Callable,
  num_agents: int,
  isolate_envs: str,
  seed: int | None = None,
) -> WatchedEnv:
  """Create the environments of a simulation.

  Args:
    env_ctor: Function without arguments that returns an environment.
    num_agents: Number of environments.
    isolate_envs: `none` for this thread, `thread` for one thread or `process`
      for one process per environment.
    seed: Seed of the first environment, incremented for each of the others.

  Raises:
    NotImplementedError: For other values of `isolate_envs`.
  """
  agents = range(num_agents)
  seeds = [None if seed is None else seed + index for index in agents]
  constructors = [
    functools.partial(seeded_constructor, env_ctor, seed) for seed in seeds
  ]
  workers = 0 if isolate_envs == 'none' else num_agents
  return WatchedEnv(constructors, workers, isolate_envs)
