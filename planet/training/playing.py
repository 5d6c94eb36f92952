"""Play episodes with a trained model, apart from training."""

import logging
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.tools import graph_errors
from agents.tools.in_graph_batch_env import InGraphBatchEnv
from agents.tools.tf1 import tf
from planet import control
from planet.control.simulate import define_batch_env
from planet.control.simulate import simulate_step
from planet.tools.attr_dict import AttrDict
from planet.training import collection
from planet.training.define_networks import define_networks


class Player:
  """Model of a checkpoint with its planner, in an environment of one task.

  Nothing is recorded to disk. Close the player when done; it is a context
  manager, too.

  Args:
    checkpoint: Path of the checkpoint.
    config: Configuration of the run.
    name: Name of one of the simulations in `config.test_collects`.
    shapes: Dict from the names of recorded data to the shape of one step.
  """

  def __init__(
    self,
    checkpoint: str,
    config: AttrDict,
    name: str,
    shapes: Mapping[str, Sequence[int]],
  ) -> None:
    self._config = config
    self._simulation = config.test_collects[name].copy(_unlocked=True)
    self._simulation.save_episode_dir = None
    self._batch_env: Any = None
    self._sess: Any = None
    self._episodes = 0
    with tf.Graph().as_default() as graph:
      if config.seed is not None:
        tf.set_random_seed(config.seed)
      try:
        weights = self._define(name, shapes)
        self._sess = tf.Session(graph=graph)
        self._sess.run(
          [
            tf.global_variables_initializer(),
            tf.local_variables_initializer(),
          ]
        )
        tf.train.Saver(weights).restore(self._sess, checkpoint)
        graph.finalize()
      except BaseException:
        self.close()
        raise

  def __enter__(self):
    return self

  def __exit__(self, *unused):
    self.close()

  def play(
    self,
    callback: Callable[[int, float], None] | None = None,
    overview: bool = False,
  ) -> AttrDict:
    """Play one episode.

    Args:
      callback: Function called after each step with the number of steps and
        the score so far.
      overview: Whether to keep maps from above, if the environment has them.

    Returns:
      AttrDict of `task`, `number` of the episode from 1 on, `score`,
      `rewards` float32 [time], `actions` float32 [time, size], and
      `observations` [time, ...], each after the action of the same index;
      and `maps`, uint8 [time, height, width, 3] or None.
    """
    self._episodes += 1
    steps: list[list[np.ndarray]] = []
    maps: list[Any] = []
    score, done = 0.0, False
    while not done:
      with graph_errors.unwrapped():
        done, score, *step = self._sess.run(
          self._step, {self._reset: not steps}
        )
      steps.append(step)
      if overview:
        maps.append(getattr(self._batch_env[0], 'birdseye', None))
        overview = maps[-1] is not None
      if callback:
        callback(len(steps), score)
    observations, actions, rewards = map(np.stack, zip(*steps))
    return AttrDict(
      task=self._simulation.task.name,
      number=self._episodes,
      score=float(score),
      rewards=rewards,
      actions=actions,
      observations=observations,
      maps=np.stack(maps) if overview else None,
    )

  def close(self) -> None:
    """End the session and the environment."""
    if self._sess:
      self._sess.close()
    if self._batch_env:
      self._batch_env.close()

  def _define(self, name, shapes):
    """Define the graph of one step; return the weights of the model."""
    config, simulation = self._config, self._simulation
    with tf.variable_scope('graph', use_resource=True):
      graph = define_networks(_blank_data(shapes), config)
      weights = tf.trainable_variables()
      agent_config = collection.agent_config(config, simulation, graph, name)
      self._batch_env = define_batch_env(
        collection.recording_constructor(config, simulation),
        1,
        config.isolate_envs,
        agent_config.seed,
      )
      batch_env = InGraphBatchEnv(self._batch_env)
      agent = control.MPCAgent(
        batch_env, tf.constant(0), False, False, agent_config
      )
      self._reset = tf.placeholder(tf.bool, ())
      done, score, _ = simulate_step(
        batch_env, agent, log=False, reset=self._reset
      )
      with tf.control_dependencies([done, score]):
        self._step = [
          tf.identity(x[0])
          for x in (
            done,
            score,
            batch_env.observ,
            batch_env.action,
            batch_env.reward,
          )
        ]
    logging.getLogger(__name__).info('The model is ready.')
    return weights


def _blank_data(shapes):
  """Return data of one step that gives the networks their shapes."""
  return {key: tf.zeros([1, 1] + list(shape)) for key, shape in shapes.items()}
