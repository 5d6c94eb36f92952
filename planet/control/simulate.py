"""Play episodes from within the graph."""

import functools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import batch_env
from agents.run import progress, stopping
from agents.tools import simulate as simulate_batch
from agents.tools.attr_dict import AttrDict
from agents.tools.in_graph_batch_env import InGraphBatchEnv
from agents.tools.tf1 import tf
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
  """Play episodes and summarise them.

  Args:
    step: Tensor of the training step.
    env_ctor: Function without arguments that returns an environment.
    duration: Number of steps to play.
    num_agents: Number of environments to play in at the same time.
    agent_config: Configuration of `MPCAgent`. An entry `seed` makes the
      environments reproducible.
    isolate_envs: Where the environments live: `none`, `thread`, `process`.
    expensive_summaries: Add histograms and a strip of images.
    gif_summary: Add an animation.
    name: Name of the variable scope.

  Returns:
    Tuple of a summary, the mean return of the episodes that finished within
    the duration, NaN if there was none, and a function that closes the
    environments.
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
          image_strip_summary('image', image, max_length=duration)
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
  """Play for a number of steps, beginning with a reset.

  An environment in which a step fails, as its info says by `step_error`, begins
  and counts its steps anew, unless it has finished an episode before. The
  others play on meanwhile.

  Args:
    step: Tensor of the training step.
    env_ctor: Function without arguments that returns an environment.
    duration: Number of steps to play.
    num_agents: Number of environments to play in at the same time.
    agent_config: Configuration of `MPCAgent`.
    isolate_envs: Where the environments live: `none`, `thread`, `process`.
    name: What to call the episodes in the progress display.

  Returns:
    Tuple of the returns of the episodes that finished, float32 [episodes] in
    the order of time and then agent; observations after each step
    [agents, time, ...]; actions [agents, time, size]; rewards float32
    [agents, time]; and a function that closes the environments.
  """
  watched = define_batch_env(
    env_ctor, num_agents, isolate_envs, agent_config.get('seed')
  )
  watched.duration, watched.name = duration, name
  env = InGraphBatchEnv(watched, initial_done=False)
  agent = MPCAgent(env, step, False, False, agent_config)

  def simulate_fn(index):
    done, score, _ = simulate_step(
      env, agent, log=False, reset=tf.equal(index, 0)
    )
    with tf.control_dependencies([done, score]):
      failed = tf.py_func(lambda: watched.failed, [], tf.bool, name='failed')
      failed.set_shape(done.shape)
      values = env.observ, env.action, env.reward
      return failed, (done & ~failed, score, *values)

  like = env.done, env.reward, env.observ, env.action, env.reward
  values = _collect_steps(simulate_fn, duration, like)
  done, score, image, action, reward = values
  score = tf.boolean_mask(tf.transpose(score), tf.transpose(done))
  return score, image, action, reward, env.close


def _collect_steps(simulate_fn, duration, like):
  """Play until each environment has had its steps without a failure.

  Args:
    simulate_fn: Function from the index of a step to which environments failed
      in it, bool [agents], and a tuple of tensors [agents, ...], the first of
      which says where an episode has ended.
    duration: Number of steps.
    like: Tuple of tensors like those.

  Returns:
    List of tensors [agents, time, ...], the steps from the last failure on.
  """
  (count,) = like[0].shape.as_list()
  arrays = [
    tf.TensorArray(x.dtype, duration, True, element_shape=x.shape) for x in like
  ]

  def body(index, begin, is_over, arrays):
    failed, values = simulate_fn(index)
    with tf.control_dependencies([failed, *values]):
      again = failed & ~is_over & (index - begin < duration)
      return (
        index + 1,
        tf.where(again, tf.fill([count], index + 1), begin),
        is_over | values[0],
        [array.write(index, x) for array, x in zip(arrays, values)],
      )

  # Nothing but the limit of one iteration at a time keeps the steps of the
  # environments in order.
  _, begin, _, arrays = tf.while_loop(
    lambda index, begin, *_: tf.reduce_any(index - begin < duration),
    body,
    (0, tf.zeros(count, tf.int32), tf.zeros(count, tf.bool), arrays),
    parallel_iterations=1,
    back_prop=False,
  )
  results = []
  for steps in (x.stack() for x in arrays):
    rows = [steps[begin[i] : begin[i] + duration, i] for i in range(count)]
    results.append(tf.stack(rows))
    results[-1].set_shape([count, duration, *steps.shape[2:]])
  return results


def simulate_step(
  batch_env: Any,
  algo: Any,
  log: bool | tf.Tensor = True,
  reset: bool | tf.Tensor = False,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Step environments and algorithm; see `agents.tools.simulate`.

  Scores and lengths of the current episodes are local variables, as in the
  original of PlaNet, and are not saved.
  """
  return simulate_batch(
    batch_env, algo, log, reset, [tf.GraphKeys.LOCAL_VARIABLES]
  )


class WatchedEnv(batch_env.VectorEnv):
  """Environments that tell the progress and heed requests to stop.

  A failed step, as its info says by `step_error`, ends the episode at once.

  Attributes:
    duration: Number of steps that are played in a row.
    name: What to call them in the progress display.
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
      '' if last else f'{self.name} {self._steps}/{self.duration}'
    )
    observ, reward, done, infos = super().step(actions)
    self.failed = np.array([bool(x.get('step_error')) for x in infos])
    if self.failed.any():
      logging.getLogger(__name__).warning(
        'A step of %s failed; its episode is not kept.', self.name
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
    isolate_envs: `none` for this thread, `thread` for a thread each, or
      `process` for a process each, since rendering outweighs messages.
    seed: Seed of the first environment; the others get the next ones.

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
