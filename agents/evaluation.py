"""Trained agents as objects that act in any environment, and their evaluation.

Does not import TensorFlow. `load` of `agents`, `planet` and `baselines_her`
returns agents with these methods.
"""

import abc
import dataclasses
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import gymnasium
import numpy as np

from agents.envs import (
  adapters,
  batches,
  contract,
  guard,
  interfaces,
  spaces,
  wrappers,
)
from agents.run import errors, files, schema

Agent = TypeVar('Agent', bound='TrainedAgent')
_CLOSED = (
  'The agent is closed; use it before the end of its with block, or load it '
  'again.'
)


class TrainedAgent(abc.ABC):
  """Agent that acts in one or more environments.

  The methods match those of stable-baselines3. For single observations, the
  agent remembers its state between calls, unless a state is given; start each
  episode with `reset` or `episode_start`.

  Attributes:
    observation_space: Observation space of the training, of gymnasium.
    action_space: Action space of the environment of the training, of gymnasium.
    logdir: Log directory that it was loaded from.
    action_repeat: Steps of the environment for which each action is repeated;
      environments of `make_env` and `evaluate` do that themselves.
  """

  action_repeat = 1
  observation_space: gymnasium.Space
  action_space: gymnasium.Space
  logdir: str
  _sess: Any
  _saver: Any
  # Whether other programs than TensorFlow can run its graph.
  _is_portable = True
  # Actions per episode in environments without a limit, as in training.
  _max_length: int | None = None

  def __init__(self) -> None:
    self._state: Any = None
    self._closed = False

  def __enter__(self: Agent) -> Agent:
    return self

  def __exit__(self, *unused: Any) -> None:
    self.close()

  def __getstate__(self) -> Any:
    raise TypeError(
      'A loaded agent cannot be copied or sent to another process; load it '
      f'there, from {self.logdir}.'
    )

  def reset(self) -> None:
    """Start an episode: clear the remembered state."""
    self._state = None

  def predict(
    self,
    observation: Any,
    state: Any = None,
    episode_start: Any = None,
    deterministic: bool = False,
  ) -> tuple[np.ndarray, Any]:
    """Choose an action, or one for each of several observations.

    Args:
      observation: Observation of the environment, an array, or a dict or tuple
        of arrays; or a batch of them, [n, ...].
      state: State returned by the last call. By default, the initial state, or
        for single observations the remembered one.
      episode_start: Whether an episode starts, bool or bool [n]; its state is
        then ignored.
      deterministic: Whether to omit exploration noise.

    Returns:
      Tuple of the action, [size] with bounds and dtype of `action_space`, or
      an integer if actions are discrete, and the state, None if the agent has
      none; for a batch, arrays [n, ...] and a list of n states. PPO and HER
      compute a batch at once, with actions that differ from those for single
      observations by rounding.

    Raises:
      UsageError: If the agent is closed.
      ValueError: If the observation does not have the parts and shape of the
        training, is infinite or NaN, an image has values out of range, a batch
        is empty, a state is not one that the agent returns, or the numbers of
        observations, states and starts of episodes differ.
    """
    if self._closed:
      raise errors.UsageError(_CLOSED)
    observation = self._read(observation)
    count = batches.check(observation, self.observation_space)
    if count is None:
      state = self._state if state is None else state
      state = None if np.any(episode_start) else state
      self._check_states([state])
      single = batches.of_one(observation, self.observation_space)
      actions, states = self._act(single, [state], deterministic)
      self._state = states and states[0]
      return actions[0], self._state
    if not count:
      raise ValueError('The batch has no rows; give at least one observation.')
    states = [None] * count if state is None else state
    given = len(states) if hasattr(states, '__len__') else 1
    if given != count:
      raise ValueError(
        f'There are {given} states for {count} rows; give one for each.'
      )
    starts = np.asarray(False if episode_start is None else episode_start)
    if starts.shape not in ((), (count,)):
      raise ValueError(
        f'The starts of episodes have shape {starts.shape} for {count} rows; '
        'give one bool, or one for each.'
      )
    starts = np.broadcast_to(starts, (count,))
    states = [None if start else x for x, start in zip(states, starts)]
    self._check_states(states)
    return self._act(observation, states, deterministic)

  def make_env(self, render_mode: str | None = None) -> gymnasium.Env:
    """Create an environment as in training, see `evaluate`.

    Args:
      render_mode: `rgb_array` for images, None for none. MuJoCo's software
        rendering needs a process without TensorFlow.

    Raises:
      UsageError: If it is another mode.
    """
    if render_mode not in (None, 'rgb_array'):
      raise errors.UsageError(
        f"Argument 'render_mode' is {render_mode!r:.80}; give 'rgb_array' for "
        'images, or None for none.'
      )
    return adapters.AsGymnasium(self._make_env(render_mode), render_mode)

  @abc.abstractmethod
  def _make_env(self, render_mode: str | None = None) -> Any:
    """Create an environment with the interface of `agents.envs.adapters`."""

  def _adapt(self, env: gymnasium.Env) -> gymnasium.Env:
    """Adapt an environment to `predict`; without a time limit, it gets one."""
    # Limits below other wrappers are known to the adapters only.
    inner: Any
    if isinstance(env, adapters.AsGymnasium):
      inner = env._inner
    else:
      inner = adapters.create(env)
    if self._max_length and not contract.find_time_limit(inner):
      return gymnasium.wrappers.TimeLimit(env, self._max_length)
    return env

  @abc.abstractmethod
  def save(self, folder: str) -> None:
    """Write only what `load` needs, which is settings and weights.

    Args:
      folder: Folder, created if needed; it should be empty.
    """

  def _create(self, folder: str) -> str:
    """Create the folder that `save` writes to, and return its path.

    Raises:
      UsageError: If it is that of the run, empty, or cannot be written to.
    """
    path = files.absolute(folder)
    if path == os.path.abspath(self.logdir) or not folder:
      raise errors.UsageError(
        f'Cannot save to {folder!r}, which is empty or the folder of the run; '
        'give a new folder.'
      )
    files.check_writable(path)
    return path

  def export(self, folder: str) -> dict[str, str]:
    """Write the policy for programs that do without this project.

    A SavedModel has the signature `serving_default`, from `observation` (for
    HER, also `achieved_goal` and `desired_goal`) and `state` to the best
    `action` and the next `state`, which only agents with a state have; it is
    zero when an episode starts. All have a leading dimension, which for PlaNet
    is 1. PPO, HER and DDPG are also written as `policy.tflite` and, if tf2onnx
    is installed, `policy.onnx`. See docs/export.md.

    Args:
      folder: Folder, created if needed; it must be empty.

    Returns:
      Dict from `saved_model`, `tflite` and `onnx` to the path, or to a sentence
      about why there is none, which is also logged.

    Raises:
      UsageError: If the folder is not empty, or the policy consists of code
        that is not a graph.
    """
    from agents.tools import exporting

    if self._closed:
      raise errors.UsageError(_CLOSED)
    return exporting.write(folder, self._define_policy(), self._is_portable)

  @abc.abstractmethod
  def _define_policy(self) -> Any:
    """Return the argument `define` of `agents.tools.exporting.write`."""

  def close(self) -> None:
    """Free the graph of the agent."""
    self._closed = True
    self._sess.close()

  def _restore(self, graph: Any, variables: Iterable[Any], path: str) -> None:
    """Open a session of a graph with the weights of a checkpoint."""
    from agents import utility
    from agents.tools import devices
    from agents.tools.tf1 import tf

    if not os.path.exists(f'{path}.index'):
      raise errors.UsageError(
        f'The checkpoint {path} has just been removed, as its training has '
        'newer ones. Repeat the command, or load a copy of the run.'
      )
    self._sess = tf.Session(graph=graph, config=devices.session_options())
    with graph.as_default():
      self._saver = utility.define_saver(variables=variables)
      utility.initialize_variables(self._sess, None, None)
      self._saver.restore(self._sess, path)

  def _read(self, observation: Any) -> Any:
    """Return an observation, or a batch, in the form of its space."""
    return batches.read(observation, self.observation_space)

  def _initial_state(self) -> Any:
    """Return the state of one row as an episode starts, None without states.

    It is an array, or a list of arrays.
    """
    return None

  def _check_states(self, states):
    """Raise a ValueError unless states have the form of the initial one."""
    initial = self._initial_state()
    if initial is None:
      return
    expected = _shapes_of(initial, initial)
    for state in states:
      if state is not None and _shapes_of(state, initial) != expected:
        raise ValueError(
          f'The state is {state!r:.80}, but must be one that predict has '
          'returned, for a batch a list of them; or None as an episode starts.'
        )

  @abc.abstractmethod
  def _act(
    self, observation: Any, states: Sequence[Any], deterministic: bool
  ) -> tuple[np.ndarray, list[Any] | None]:
    """Choose actions for a batch.

    Args:
      observation: Array [n, ...], or dict of arrays.
      states: State of each row, None for the initial one.
      deterministic: Whether to omit exploration noise.

    Returns:
      Tuple of the actions [n, ...] and the next states, None without states.
    """


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """Results of `evaluate`.

  Attributes:
    returns: Sum of rewards of each episode.
    lengths: Number of actions in each episode.
    successes: Whether each episode ended in success, if the environment
      reports `is_success` or `success` in its info; empty otherwise.
  """

  returns: list[float]
  lengths: list[int]
  successes: list[bool]

  @property
  def mean(self) -> float:
    """Mean return."""
    return float(np.mean(self.returns))

  @property
  def std(self) -> float:
    """Standard deviation of the returns."""
    return float(np.std(self.returns))

  @property
  def success_rate(self) -> float | None:
    """Fraction of successful episodes, None if unknown."""
    return float(np.mean(self.successes)) if self.successes else None


def evaluate(
  policy: Any,
  env: Any = None,
  episodes: int = 10,
  seed: int | None = None,
  deterministic: bool = True,
) -> Evaluation:
  """Play episodes and collect their returns.

  Args:
    policy: `TrainedAgent`, or any object with the same `predict`.
    env: Environment of gymnasium, gym or this project; or an id or function,
      which are made without rendering: agents of PlaNet that see images need an
      environment that was made with `render_mode='rgb_array'`. By default, one
      from `make_env` of the agent. What is made here is closed afterwards.
      Without a time limit, it gets that of the training.
    episodes: Number of episodes.
    seed: Seed of the environment before the first episode.
    deterministic: Whether to omit exploration noise.

  Returns:
    `Evaluation`.

  Raises:
    UsageError: If an argument is not valid, the id is unknown, or the actions
      of the policy are not those of the environment.
    EnvError: If the environment breaks its interface or raises an error.
  """
  if not hasattr(policy, 'predict'):
    raise errors.UsageError(
      f'The policy is {policy!r:.80}; give an agent, such as what load returns.'
    )
  if not isinstance(episodes, numbers.Real) or episodes < 1 or episodes % 1:
    raise errors.UsageError(
      f'Cannot play {episodes!r:.80} episodes; give 1 or more.'
    )
  seed = schema.convert(schema.Count | None, seed, "Argument 'seed'")
  if env is None and not hasattr(policy, 'make_env'):
    raise errors.UsageError(
      f'The policy {policy!r:.80} does not know its environment; give one.'
    )
  own = not adapters.is_environment(env)
  made = policy.make_env() if env is None else to_gymnasium(env)
  name = guard.find_name(made) if env is None else adapters.name_of(env)
  try:
    adapted = policy._adapt(made) if isinstance(policy, TrainedAgent) else made
    guarded = wrappers.Guard(adapted, name)
    if seed is not None:
      guarded.seed(seed)
    played = [
      _play(policy, guarded, name, deterministic) for _ in range(int(episodes))
    ]
  finally:
    if own:
      made.close()
  returns, lengths, successes = zip(*played)
  return Evaluation(
    list(returns), list(lengths), [bool(x) for x in successes if x is not None]
  )


def to_gymnasium(env: Any) -> gymnasium.Env:
  """Create an environment with the interface of gymnasium.

  Args:
    env: See `adapters.create`.
  """
  if isinstance(env, gymnasium.Env):
    return interfaces.lenient(env)
  # Its results are checked before they are converted.
  guarded = wrappers.Guard(adapters.create(env), adapters.name_of(env))
  return adapters.AsGymnasium(guarded)


def _play(policy, env, name, deterministic):
  """Play an episode; return its return, length and success.

  Starts over if a step fails, that is, if its info contains `step_error`.
  """
  played = None
  while played is None:
    played = _try_episode(policy, env, name, deterministic)
  return played


def _try_episode(policy, env, name, deterministic):
  """Return what `_play` returns, None if a step fails."""
  if hasattr(policy, 'reset'):
    policy.reset()
  observation, info, state, done = env.reset(), {}, None, False
  return_, length = 0.0, 0
  while not done:
    action, state = policy.predict(
      observation, state=state, deterministic=deterministic
    )
    _check_action(action, env.action_space, name)
    observation, reward, done, info = env.step(action)
    if guard.has_failed(info):
      return None
    guard.check_finite(reward, 'reward', name)
    return_ += float(reward)
    length += 1
  success = contract.find_success(info)
  if success is not None:
    guard.check_finite(success, 'success', name)
  return return_, length, success


def _check_action(action, space, name):
  """Refuse actions of another kind, which NumPy would fit to the space."""
  whole = np.asarray(action).dtype.kind in 'biu'
  fits = whole if spaces.is_discrete(space) else True
  if spaces.is_box(space):
    fits = np.shape(action) == space.shape
  if not fits:
    raise errors.UsageError(
      f'The policy chooses the action {action!r:.80}, but those of {name} are '
      f'{space}; give an environment with the actions of its training.'
    )


def _shapes_of(state, initial):
  """Shapes of the arrays in a state; None if it is none of the initial kind."""
  try:
    return [np.shape(x) for x in (state if type(initial) is list else [state])]
  except (TypeError, ValueError):
    return None
