"""Random environment with known episode lengths, for tests."""

from typing import Any

import numpy as np

from agents.envs import spaces


class MockEnvironment:
  """Draw random observations and rewards, and record what happened.

  Args:
    observ_shape: Shape of the observations, drawn from [0, 1].
    action_shape: Shape of the actions, within [0, 1].
    min_duration: Minimum number of steps per episode.
    max_duration: Maximum number of steps per episode.

  Attributes:
    steps: List of the steps taken in each episode.
    durations: List of the drawn length of each episode.
  """

  def __init__(
    self,
    observ_shape: tuple[int, ...],
    action_shape: tuple[int, ...],
    min_duration: int,
    max_duration: int,
  ):
    self._observ_shape = observ_shape
    self._min_duration = min_duration
    self._max_duration = max_duration
    self._random = np.random.RandomState(0)
    self.observation_space = spaces.box(
      np.zeros(observ_shape), np.ones(observ_shape)
    )
    self.action_space = spaces.box(
      np.zeros(action_shape), np.ones(action_shape)
    )
    self.steps: list[int] = []
    self.durations: list[int] = []

  @property
  def unwrapped(self) -> Any:
    return self

  def step(self, action: np.ndarray) -> tuple:
    assert self.action_space.contains(action), action
    assert self.steps[-1] < self.durations[-1], 'episode is over'
    self.steps[-1] += 1
    observ = self._observe()
    reward = self._random.uniform(-1, 1)
    done = self.steps[-1] >= self.durations[-1]
    return observ, reward, done, {}

  def reset(self) -> np.ndarray:
    self.steps.append(0)
    self.durations.append(
      self._random.randint(self._min_duration, self._max_duration + 1)
    )
    return self._observe()

  def _observe(self):
    return self._random.uniform(0, 1, self._observ_shape)
