"""Trained agents as objects that act anywhere, and their evaluation.

Free of TensorFlow; `load` of `agents`, `planet` and `baselines_her` return
agents of these methods.
"""

import abc
import dataclasses
from typing import Any, TypeVar

import numpy as np

from agents.envs import adapters
from agents.run import errors

Agent = TypeVar('Agent', bound='TrainedAgent')


class TrainedAgent(abc.ABC):
  """Agent that acts, one environment at a time.

  The methods are those that users of stable-baselines3 know. The agent
  remembers its state between two calls, as long as no other one is given;
  begin each episode with `reset`.
  """

  def __init__(self) -> None:
    self._state: Any = None

  def __enter__(self: Agent) -> Agent:
    return self

  def __exit__(self, *unused: Any) -> None:
    self.close()

  def reset(self) -> None:
    """Begin an episode: forget what was seen before."""
    self._state = None

  def predict(
    self, observation: Any, state: Any = None, deterministic: bool = True
  ) -> tuple[np.ndarray, Any]:
    """Choose an action.

    Args:
      observation: Observation as the environment of the training returns it,
        without dimension for a batch.
      state: What the last call has returned; by default what the agent
        remembers.
      deterministic: Whether to leave out the noise of exploration.

    Returns:
      Tuple of the action float32 [size], in the range of the environment, or
      an integer if actions are discrete, and the state, None if the agent
      needs none.

    Raises:
      ValueError: If the observation does not have the shape of the training.
    """
    if state is None:
      state = self._state
    action, self._state = self._act(observation, state, deterministic)
    return action, self._state

  @abc.abstractmethod
  def make_env(self) -> Any:
    """Create an environment of the training, for `evaluate`."""

  @abc.abstractmethod
  def save(self, folder: str) -> None:
    """Write what `load` needs, settings and weights, and nothing else.

    Args:
      folder: Folder, created if needed; it should be empty.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Free the graph of the agent."""

  @abc.abstractmethod
  def _act(
    self, observation: Any, state: Any, deterministic: bool
  ) -> tuple[np.ndarray, Any]:
    """Return an action and the next state; a state of None is the first."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """Episodes of `evaluate`.

  Attributes:
    returns: Sum of rewards of each episode.
    lengths: Number of decisions of each episode.
    successes: Whether each episode ended in success, as far as the
      environment says so in `info['is_success']`; empty otherwise.
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
    """Share of episodes that ended in success, None if unknown."""
    return float(np.mean(self.successes)) if self.successes else None


def evaluate(
  policy: Any,
  env: Any = None,
  episodes: int = 10,
  deterministic: bool = True,
  seed: int | None = None,
) -> Evaluation:
  """Play episodes and count.

  Args:
    policy: `TrainedAgent`, or anything with a `predict` like it.
    env: Environment of gymnasium, gym or this project, or an id. An
      environment of the training by default, which is closed afterwards.
    episodes: Number of episodes.
    deterministic: Whether to leave out the noise of exploration.
    seed: Seed of the environment before the first episode.

  Returns:
    `Evaluation`.

  Raises:
    UsageError: If the number of episodes is not positive, or the id is
      unknown.
  """
  if episodes < 1:
    raise errors.UsageError(f'Cannot play {episodes} episodes; give 1 or more.')
  own = env is None or isinstance(env, str)
  env = policy.make_env() if env is None else adapters.adapt(env)
  try:
    if seed is not None:
      env.seed(seed)
    played = [_play(policy, env, deterministic) for _ in range(episodes)]
  finally:
    if own:
      env.close()
  returns, lengths, successes = zip(*played)
  return Evaluation(
    list(returns), list(lengths), [bool(x) for x in successes if x is not None]
  )


def _play(policy, env, deterministic):
  """Play an episode; return its return, length and success.

  One in which the environment fails, as its info says, is played again.
  """
  if hasattr(policy, 'reset'):
    policy.reset()
  observation, state, done = env.reset(), None, False
  return_, length, info = 0.0, 0, {}
  while not done:
    action, state = policy.predict(
      observation, state=state, deterministic=deterministic
    )
    observation, reward, done, info = env.step(action)
    if info.get('step_error'):
      return _play(policy, env, deterministic)
    return_ += float(reward)
    length += 1
  return return_, length, info.get('is_success')
