"""A trained PPO agent, without its training.

Example:

  import agents

  with agents.load('logs/pendulum') as agent:
    print(agents.evaluate(agent, episodes=10).mean)
"""

import os
from typing import Any

import numpy as np

from agents import configs, runs
from agents.envs import batches, images, observations, spaces
from agents.evaluation import TrainedAgent
from agents.run import checkpoint as checkpoint_lib
from agents.run import errors, files, references
from agents.tools import attr_dict, continuous, wrappers


def load(
  logdir: str,
  checkpoint: str | None = None,
  trust: references.Trusted = None,
) -> 'PPO':
  """Load the agent of a run of `agents.train_ppo`.

  Args:
    logdir: Log directory of the run, or a folder that contains a single run.
    checkpoint: Name such as `model.ckpt-48000`, or `best` for the one with the
      highest return in evaluation; the newest one by default.
    trust: Your modules that the run may import: a name or a list of names.

  Returns:
    `PPO`.

  Raises:
    UsageError: If there is no run or no checkpoint.
  """
  logdir, config = runs.load(logdir, references.parse(trust))
  path = checkpoint_lib.find_variables(logdir, checkpoint, warn=None)
  if not path:
    raise errors.UsageError(
      f'There is no checkpoint in {logdir} yet. The first one is written after '
      'a phase, after a minute or ten evaluations, or at the end of training.'
    )
  return PPO(config, path)


class PPO(TrainedAgent):
  """Trained PPO agent; its state is that of a recurrent network.

  Args:
    config: Configuration of the run.
    path: Path of the checkpoint.

  Attributes:
    config: The configuration.
    checkpoint: Name of the checkpoint.
  """

  def __init__(self, config: Any, path: str) -> None:
    super().__init__()
    self.config = config
    self.logdir = config.logdir
    self._max_length = config.max_length
    if not (pair := config.spaces):
      env = self._make_env()
      found = env.observation_space, env.action_space
      pair = [spaces.to_plain(x) for x in found]
      env.close()
    self.observation_space, self.action_space = map(spaces.from_plain, pair)
    self._images = configs.sees_images(config)
    self._layout = observations.Layout(self.observation_space, self._images)
    self._ranges = spaces.Ranges(
      self._layout.observation_space,
      self.action_space,
      False if self._images else None,
    )
    self.checkpoint = os.path.basename(path)
    self._define(path)

  def _make_env(self, render_mode=None):
    env = continuous.make(
      self.config.env, render_mode, settings=self.config.env_settings
    )
    return wrappers.LimitDuration(env, self.config.max_length)

  def save(self, folder: str) -> None:
    folder = self._create(folder)
    plain = configs.to_plain({**self.config, 'logdir': None})
    files.write_yaml(os.path.join(folder, 'config.yaml'), plain)
    path = os.path.join(folder, self.checkpoint)
    self._saver.save(self._sess, path)

  def _read(self, observation):
    observation = super()._read(observation)
    if not (self._images and self._layout.unchanged):
      return observation
    try:
      return images.convert(images.with_known_dtype(observation), np.uint8)
    except images.BadImage as error:
      raise errors.UsageError(str(error)) from None

  def _initial_state(self):
    size = self._state_size
    return np.zeros([1, size], np.float32) if size else None

  def _act(self, observation, states, deterministic):
    if not self._layout.unchanged:
      rows = [
        batches.take_row(observation, self.observation_space, row)
        for row in range(len(states))
      ]
      observation = np.stack([self._layout.convert(x) for x in rows])
    observ = np.asarray(self._ranges.observ(observation))
    if not self._images:
      observ = observ.astype(np.float32, copy=False)
    args = [observ, not deterministic]
    if self._state_size:
      initial = self._initial_state()
      args.append(np.concatenate([initial if x is None else x for x in states]))
    actions, *after = self._decide(*args)
    actions = self._ranges.clipped_action(actions)
    return actions, list(after[0][:, None]) if after else None

  def _define_policy(self):
    from agents.tools import exporting
    from agents.tools.tf1 import tf

    if not self._layout.unchanged:
      raise errors.UsageError(
        f'Observations {self.observation_space} are converted before the '
        'network gets them, which export does not do; it exports agents that '
        'observe one vector, or one image of bytes with channels.'
      )
    config = attr_dict.AttrDict(self.config, one_step=True)
    trained = {x.op.name: x for x in self._weights}
    values = self._sess.run(trained)
    with tf.Graph().as_default(), tf.Session() as sess:
      network, inputs = self._define_network(config)
      weights = [x for x in tf.global_variables() if x.op.name in values]
      for weight in weights:
        weight.load(values[weight.op.name], sess)
      observed, _, *states = inputs
      decision = network.act(observed, *states)
      best = [decision.policy.mode(), *([decision.state] if states else [])]
      place = exporting.freeze(sess, best)
    ranges, space = self._ranges, self.action_space

    def define(narrow):
      shape = observed.shape.as_list()
      observation = tf.placeholder(observed.dtype, shape, 'observation')
      inputs, scaled = {'observation': observation}, observation
      if ranges.observ_range:
        low, width = (tf.constant(x, tf.float32) for x in ranges.observ_range)
        scaled = 2 * (observation - low) / width - 1
      feeds = {observed: scaled}
      for state in states:
        shape = state.shape.as_list()
        inputs['state'] = feeds[state] = tf.placeholder(
          tf.float32, shape, 'state'
        )
      action, *after = place(feeds)
      if ranges.start is not None:
        action += ranges.start
      else:
        bounds = ranges.action_space.low, ranges.action_space.high
        action = exporting.clip(action, *bounds)
        if ranges.action_bounds:
          low, high = ranges.action_bounds
          action = exporting.to_box(action, low, high, narrow)
      outputs = {'action': exporting.fit(action, space, narrow)}
      return exporting.Signature(
        inputs, {**outputs, **dict(zip(['state'], after))}
      )

    return define

  def _define_network(self, config):
    """Define the network; return it and its placeholders."""
    from agents.ppo import policy
    from agents.tools.tf1 import tf

    shape = self._layout.observation_space.shape or ()
    dtype = tf.uint8 if self._images else tf.float32
    observ = tf.placeholder(dtype, [None, *shape])
    sampling = tf.placeholder(tf.bool, ())
    network = policy.Policy(
      observ.shape.as_list()[1:],
      spaces.count_outputs(self.action_space),
      sampling,
      config,
      discrete=spaces.is_discrete(self.action_space),
      packing=self._layout.packing,
    )
    inputs = [observ, sampling]
    if network.state_size:
      inputs.append(tf.placeholder(tf.float32, [None, network.state_size]))
    return network, inputs

  def _define(self, path):
    from agents.tools import callables
    from agents.tools.tf1 import tf

    with tf.Graph().as_default() as graph:
      network, inputs = self._define_network(self.config)
      self._state_size = network.state_size
      decision = network.act(inputs[0], *inputs[2:])
      outputs = [decision.action, *([decision.state] if inputs[2:] else [])]
      unread = {x.name for x in network.training_variables}
      weights = [x for x in tf.global_variables() if x.name not in unread]
      self._weights = weights
      self._restore(graph, weights, path)
      self._decide = callables.make_function(outputs, inputs, self._sess)
