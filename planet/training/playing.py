"""Act with a trained model and its planner."""

import logging
import math
import os
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.envs import adapters, batches, spaces
from agents.evaluation import TrainedAgent
from agents.tools import exporting, graph_errors
from agents.tools.tf1 import tf
from planet.control import mpc_agent, wrappers
from planet.envs import constructors, gym_pixels, interface
from planet.tools.attr_dict import AttrDict
from planet.training import collection, utility
from planet.training.define_networks import define_networks

if TYPE_CHECKING:
  from planet.scripts.configs import Config

_logger = logging.getLogger(__name__)


class PlaNet(TrainedAgent):
  """Trained model and planner for one task.

  The state of `predict` consists of the latent state, the previous action in
  [-1, 1], as the model knows it, and, with planner_warm_start, the rest of the
  plan. An observation is what the environment returns, or a dict of what the
  model was trained on, such as `image` and `state`; where only images count,
  also an image. Images of any size are resized as in the training; they are of
  integers from 0 to 255, or of floats from 0 to 1 or within the bounds that the
  environment declares. Actions are those of the environment, scaled as in the
  training; those that are not deterministic have its exploration noise.

  `observation_space` is that of the input of the model. Runs with environments
  that were objects, from before their spaces were stored, act in [-1, 1].

  `export` includes the planner and needs observations that `observation_space`
  contains; the state is one vector.

  Args:
    checkpoint: Path of the checkpoint.
    config: Configuration of the run.
    shapes: Dict from the names of recorded data to the shape of one step.
    name: Name of a simulation in `config.test_collects`.

  Attributes:
    task: Task of the simulation, see `planet.scripts.tasks`.
  """

  _is_portable = False

  def __init__(
    self,
    checkpoint: str,
    config: 'Config',
    shapes: Mapping[str, Any],
    name: str,
  ) -> None:
    super().__init__()
    self._config = config
    self._checkpoint = os.path.basename(checkpoint)
    self._simulation = AttrDict(
      config.test_collects[name], save_episode_dir=None
    )
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
    self._unit_space = spaces.box(-ones, ones)
    self._own = self._find_interface()
    self.action_space = self._own.action_space
    self.action_repeat = self.task.steps_per_action
    self._to_actions = self._own.to_actions()
    keys = config.observation_keys
    self._reader = interface.Reader(self._own, keys, shapes)
    self.logdir = os.path.dirname(checkpoint)
    _logger.info('The model is ready.')

  def _find_interface(self):
    """Return what the environment of the training declares."""
    known = self._config.source.get('interfaces', {})
    if self.task.name in known:
      return interface.Interface.from_plain(known[self.task.name])
    _logger.warning(
      'The run does not tell the actions of its environment, which was an '
      'object: they are in [-1, 1]. Continue the run once to store them.'
    )
    return interface.Interface(None, self._unit_space)

  def make_env(self, render_mode: str | None = None) -> Any:
    env = super().make_env(render_mode)
    env.is_adapted = True  # type: ignore[attr-defined]
    return env

  def make_training_env(self) -> Any:
    """Return an environment of the training that takes its own actions.

    It has the interface of `agents.envs.adapters`, and records nothing.
    """
    return self._make_env()

  def _make_env(self, render_mode=None):
    make = constructors.with_own_actions(self.task.env_ctor)
    task = self.task._replace(env_ctor=make)
    simulation = AttrDict(self._simulation, task=task)
    env_ctor = collection.recording_constructor(self._config, simulation)
    return collection.isolated_env(
      env_ctor, self._config.isolate_envs, self._seed
    )

  def _adapt(self, env):
    if getattr(env.unwrapped, 'is_adapted', False):
      return env
    config, task = self._config, self.task
    pixels = config.observation != 'vector'
    own = task.env_ctor.keywords.get('observation_is_image', False)
    args = task.action_repeat, task.max_length, 0, config.image_size, own
    is_same = env.action_space == self.action_space
    both = config.observation == 'both'
    env = gym_pixels.make(env, *args, pixels, state=both, own_actions=is_same)
    if not is_same:
      if len(config.tasks) > 1:
        # The agent has the actions of the largest task.
        env = wrappers.PadActions(env, [env.action_space, self._unit_space])
      shape = env.action_space.shape
      batches.check_shape(np.zeros(shape), self._unit_space, 'action')
      # Actions have the same effect within other bounds.
      env = interface.RescaleActions(env, self._own)
    return adapters.AsGymnasium(constructors.join(env, config.observation_keys))

  def save(self, folder: str) -> None:
    folder = self._create(folder)
    utility.save_config(self._config, folder)
    self._saver.save(self._sess, os.path.join(folder, self._checkpoint))

  def _define_policy(self):
    observed, memory = self._observ, self._memory
    place = exporting.freeze(self._sess, [self._action, *self._memory_after])
    shapes = [x.shape.as_list() for x in memory]
    sizes = [math.prod(x) for x in shapes]

    def define(narrow):
      observation = tf.placeholder(
        observed.dtype, observed.shape.as_list(), 'observation'
      )
      state = tf.placeholder(tf.float32, [1, sum(sizes)], 'state')
      parts = tf.split(state, sizes, 1)
      parts = [tf.reshape(x, shape) for x, shape in zip(parts, shapes)]
      unit, *after = place({observed: observation, **dict(zip(memory, parts))})
      after = [tf.reshape(x, [1, size]) for x, size in zip(after, sizes)]
      action = self._convert_action(unit, narrow)
      return exporting.Signature(
        {'observation': observation, 'state': state},
        {'action': action, 'state': tf.concat(after, 1)},
      )

    return define

  def _convert_action(self, action, narrow):
    """Compute `Interface.to_actions` in the graph."""
    own, unit, choice = self._own, self._own.unit, self._own.choice
    action = action[..., : unit.space.shape[0]]
    if own.scaled:
      scaled = exporting.to_box(action, unit.low, unit.high, narrow)
      as_it_is = tf.cast(action, scaled.dtype)
      action = tf.where(unit.enabled[None], scaled, as_it_is)
    if choice:
      action = choice.start + tf.argmax(action, -1)
    return exporting.fit(action, own.action_space, narrow)

  def _read(self, observation):
    batches.check_alone(observation, self._own.observation_space)
    return self._reader.read(observation)

  def split_images(self, observations: np.ndarray) -> np.ndarray:
    """Return the images in observations, uint8 [n, height, width, channels].

    Args:
      observations: Images together with vectors, [n, size].
    """
    images = observations[:, : math.prod(self._image)]
    return images.reshape(-1, *self._image).astype(np.uint8)

  def _initial_state(self):
    return [np.zeros(x.shape.as_list()) for x in self._memory]

  def _act(self, observation, states, deterministic):
    # Row by row, equal seeds give equal plans. On a CPU, the default planner
    # would take as long for a batch at once, and planning takes all the time.
    rows = [self._plan(*x, deterministic) for x in zip(observation, states)]
    actions = self._to_actions(np.stack([x for x, _ in rows]))
    return actions, [x for _, x in rows]

  def _plan(self, observation, state, deterministic):
    state = self._initial_state() if state is None else state
    feed = dict(zip(self._memory, state))
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
      # Decisions have no noise unless they feed its scale.
      self._scale = tf.placeholder_with_default(0.0, ())
      exploration = AttrDict(scale=self._scale, schedule=None)
      simulation = AttrDict(simulation, exploration=exploration)
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
    self._image = shapes.get('image')
    if config.observation == 'image':
      observ = tf.placeholder(tf.uint8, [1, *shapes['image']])
    else:
      size = sum(math.prod(shapes[key]) for key in config.observation_keys)
      observ = tf.placeholder(tf.float32, [1, size])
    env = types.SimpleNamespace(action=tf.zeros([1, *shapes['action']]))
    agent = mpc_agent.MemorylessAgent(
      env, tf.constant(0), False, False, agent_config
    )
    self._action, _ = agent.perform(tf.constant([0]), observ)
    self._observ, self._memory = observ, agent.memory
    self._memory_after = agent.memory_after
