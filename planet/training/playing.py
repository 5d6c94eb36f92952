"""Act with a trained model and its planner."""

import logging
import os
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import adapters, spaces, wrappers
from agents.evaluation import TrainedAgent, check_shape
from agents.tools import graph_errors
from agents.tools.tf1 import tf
from planet import control
from planet.envs import gym_pixels
from planet.tools.attr_dict import AttrDict
from planet.training import collection, utility
from planet.training.define_networks import define_networks


class PlaNet(TrainedAgent):
  """Trained model and planner for one task.

  The state of `predict` consists of the latent state, the previous action and,
  with planner_warm_start, the rest of the plan. An observation is the array
  that the model was trained on, or a dict that contains it. Actions that are
  not deterministic have the exploration noise of the training. All actions are
  vectors in [-1, 1]; of those for discrete actions, the largest entry counts.

  Args:
    checkpoint: Path of the checkpoint.
    config: Configuration of the run.
    shapes: Dict from the names of recorded data to the shape of one step.
    name: Name of a simulation in `config.test_collects`.

  Attributes:
    task: Task of the simulation, see `planet.scripts.tasks`.
  """

  def __init__(
    self,
    checkpoint: str,
    config: AttrDict,
    shapes: Mapping[str, Any],
    name: str,
  ) -> None:
    super().__init__()
    self._config = config
    self._name = os.path.basename(checkpoint)
    self._simulation = config.test_collects[name].copy(_unlocked=True)
    self._simulation.save_episode_dir = None
    self.task = self._simulation.task
    with tf.Graph().as_default() as graph:
      if config.seed is not None:
        tf.set_random_seed(config.seed)
      weights = self._define(name, shapes)
      self._restore(graph, weights, checkpoint)
      graph.finalize()
    shape = self._observ.shape.as_list()[1:]
    low, high = (
      (0, 255) if self._observ.dtype == tf.uint8 else (-np.inf, np.inf)
    )
    self.observation_space = spaces.box(
      np.full(shape, low),
      np.full(shape, high),
      self._observ.dtype.as_numpy_dtype,
    )
    ones = np.ones(shapes['action'])
    self.action_space = spaces.box(-ones, ones)
    self.logdir = os.path.dirname(checkpoint)
    logging.getLogger(__name__).info('The model is ready.')

  def make_env(self, render_mode: str | None = None) -> Any:
    env = super().make_env(render_mode)
    env.is_adapted = True  # type: ignore[attr-defined]
    return env

  def _make_env(self, render_mode=None):
    env_ctor = collection.recording_constructor(self._config, self._simulation)
    return collection.isolated_env(
      env_ctor, self._config.isolate_envs, self._seed
    )

  def _adapt(self, env):
    if getattr(env.unwrapped, 'is_adapted', False):
      return env
    config, task = self._config, self.task
    pixels = config.observation == 'image'
    own = task.env_ctor.keywords.get('observation_is_image', False)
    args = task.action_repeat, task.max_length, 0, config.image_size, own
    env = gym_pixels.make(env, *args, pixels)
    if len(config.tasks) > 1:
      # The agent has the actions of the largest task.
      env = wrappers.PadActions(env, [env.action_space, self.action_space])
    check_shape(np.zeros(env.action_space.shape), self.action_space, 'action')
    return adapters.AsGymnasium(
      wrappers.ConcatObservation(env, config.observation_keys)
    )

  def save(self, folder: str) -> None:
    folder = os.path.expanduser(folder)
    os.makedirs(folder, exist_ok=True)
    utility.save_config(self._config, folder)
    self._saver.save(self._sess, os.path.join(folder, self._name))

  def _read(self, observation):
    if isinstance(observation, Mapping):
      keys = self._config.observation_keys
      observation = np.concatenate([observation[x] for x in keys], -1)
    return super()._read(observation)

  def _act(self, observation, states, deterministic):
    # Planning takes all the time, and each row keeps its random numbers.
    rows = [self._plan(*x, deterministic) for x in zip(observation, states)]
    return np.stack([x for x, _ in rows]), [x for _, x in rows]

  def _plan(self, observation, state, deterministic):
    blank = [np.zeros(x.shape.as_list()) for x in self._memory]
    feed = dict(zip(self._memory, state or blank))
    feed[self._observ] = observation[None]
    if not deterministic:
      feed[self._scale] = self._exploration
    with graph_errors.unwrapped():
      action, state = self._sess.run([self._action, self._memory_after], feed)
    return action[0], state

  def _define(self, name, shapes):
    """Define the graph of one decision; return the weights it needs."""
    config, simulation = self._config, self._simulation
    data = {key: tf.zeros([1, 1, *shape]) for key, shape in shapes.items()}
    with tf.variable_scope('graph', use_resource=True):
      graph = define_networks(data, config)
      weights = tf.global_variables()
      explorations = [x.exploration for x in config.train_collects.values()]
      scales = [x.scale for x in explorations if x]
      self._exploration = scales[0] if scales else 0.0
      # Noise is added where its scale is fed.
      self._scale = tf.placeholder_with_default(0.0, ())
      simulation.exploration = AttrDict(scale=self._scale, schedule=None)
      agent_config = collection.agent_config(config, simulation, graph, name)
      self._seed = agent_config.seed
      self._define_decision(agent_config, shapes)
    # Planning needs no decoders.
    names = [x.op.name for x in (self._action, *self._memory_after)]
    definition = tf.get_default_graph().as_graph_def()
    needed = tf.graph_util.extract_sub_graph(definition, names).node
    found = {x.name for x in needed}
    return [x for x in weights if x.op.name in found]

  def _define_decision(self, agent_config, shapes):
    config = self._config
    if config.observation == 'image':
      observ = tf.placeholder(tf.uint8, [1, *shapes['image']])
    else:
      size = sum(shapes[key][0] for key in config.observation_keys)
      observ = tf.placeholder(tf.float32, [1, size])
    env = types.SimpleNamespace(action=tf.zeros([1, *shapes['action']]))
    agent = control.MPCAgent(env, tf.constant(0), False, False, agent_config)
    self._memory = [
      tf.placeholder(x.dtype.base_dtype, x.shape) for x in agent.memory
    ]
    remember = [x.assign(y) for x, y in zip(agent.memory, self._memory)]
    with tf.control_dependencies(remember):
      action, _ = agent.perform(tf.constant([0]), observ)
    with tf.control_dependencies([action]):
      self._memory_after = [x.read_value() for x in agent.memory]
    self._observ, self._action = observ, action
