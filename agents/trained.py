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
from agents.envs import continuous, spaces, wrappers
from agents.evaluation import TrainedAgent
from agents.run import checkpoint as checkpoint_lib
from agents.run import errors, files, references


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
    if not (pair := config.spaces):
      env = self._make_env()
      found = env.observation_space, env.action_space
      pair = [spaces.to_plain(x) for x in found]
      env.close()
    self.observation_space, self.action_space = map(spaces.from_plain, pair)
    self._ranges = spaces.Ranges(self.observation_space, self.action_space)
    self.checkpoint = os.path.basename(path)
    self._define(path)

  def _make_env(self, render_mode=None):
    env = continuous.make(
      self.config.env, render_mode, settings=self.config.env_settings
    )
    return wrappers.LimitDuration(env, self.config.max_length)

  def save(self, folder: str) -> None:
    folder = os.path.expanduser(folder)
    os.makedirs(folder, exist_ok=True)
    plain = configs.to_plain({**self.config, 'logdir': None})
    files.write_yaml(os.path.join(folder, 'config.yaml'), plain)
    path = os.path.join(folder, self.checkpoint)
    self._saver.save(self._sess, path)

  def _act(self, observation, states, deterministic):
    args = [np.float32(self._ranges.observ(observation)), not deterministic]
    if self._state_size:
      blank = np.zeros([1, self._state_size], np.float32)
      blanks = [blank if x is None else x for x in states]
      args.append(np.concatenate(blanks))
    actions, *after = self._decide(*args)
    actions = self._ranges.clipped_action(actions)
    return actions, list(after[0][:, None]) if after else None

  def _define(self, path):
    from agents.ppo import policy
    from agents.tools.tf1 import tf

    with tf.Graph().as_default() as graph:
      shape = self.observation_space.shape or ()
      observ = tf.placeholder(tf.float32, [None, *shape])
      sampling = tf.placeholder(tf.bool, ())
      network = policy.Policy(
        observ.shape.as_list()[1:],
        spaces.count_outputs(self.action_space),
        sampling,
        self.config,
        discrete=spaces.is_discrete(self.action_space),
      )
      self._state_size = network.state_size
      inputs = [observ, sampling]
      if self._state_size:
        inputs.append(tf.placeholder(tf.float32, [None, self._state_size]))
      decision = network.act(observ, *inputs[2:])
      outputs = [decision.action, *([decision.state] if inputs[2:] else [])]
      unread = {x.name for x in network.training_variables}
      weights = [x for x in tf.global_variables() if x.name not in unread]
      self._restore(graph, weights, path)
      self._decide = self._sess.make_callable(outputs, inputs)
