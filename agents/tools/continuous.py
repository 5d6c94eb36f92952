"""Environments for PPO, single and in batches."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agents.envs import (
  adapters,
  batch_env,
  contract,
  guard,
  minitaur,
  observations,
  shared_arrays,
  spaces,
  vector,
)
from agents.envs.forwarding import with_own_randomness
from agents.envs.wrappers import Guard
from agents.run import errors
from agents.tools import wrappers


def make(
  env: Any,
  render_mode: str | None = None,
  seed: int | None = None,
  settings: Mapping[str, Any] | None = None,
) -> Any:
  """Create an environment without wrappers.

  Args:
    env: Id from PyBullet, gymnasium or gymnasium-robotics, `minitaur`,
      `duck_minitaur` or one of `minitaur.CLASSES`; or any other value that
      `adapters.create` accepts.
    render_mode: Mode for `render`, usually `rgb_array`; None for no images.
    seed: Seed of the environment, None to leave it unseeded.
    settings: Arguments of the environment, if `env` is an id.

  Returns:
    Environment with the interface of `agents.envs.adapters`. Once seeded, its
    episodes do not depend on anything else in the process.

  Raises:
    UsageError: If the environment is unknown, a package is missing, or its
      observations do not suit a network, or its actions are neither vectors
      nor discrete.
    EnvError: If its constructor fails.
  """
  settings = settings or {}
  with guard.explained(env, 'in its constructor'):
    if env in ('minitaur', 'duck_minitaur'):
      created = minitaur.minitaur(duck='duck' in env, **settings)
    elif isinstance(env, str) and env in minitaur.CLASSES:
      created = minitaur.create(env, **settings)
    else:
      created = adapters.create(env, render_mode, **settings)
  contract.check_spaces(created, env, 'ppo')
  created = with_own_randomness(Guard(created, env))
  if seed is not None:
    created.seed(seed)
  return created


def constructors(
  config: Any, num_agents: int, seed: int | None = None, images: bool = False
) -> list[Callable[[], Any]]:
  """Return functions that create the environments of a training run.

  Args:
    config: AttrDict with `env` and optionally `env_settings`.
    num_agents: Number of environments.
    seed: Seed of the first environment; environment i gets this plus i. None
      to leave them unseeded.
    images: Whether the network has convolutions, see `observations.Layout`.
  """
  env, settings = config.env, config.env_settings
  seeds = [None if seed is None else seed + x for x in range(num_agents)]
  return [functools.partial(_make, env, x, settings, images) for x in seeds]


def _make(env, seed, settings, images):
  """Environment whose observations are the input of a network."""
  made = make(env, None, seed, settings)
  if observations.Layout(made.observation_space, images).unchanged:
    return made
  return observations.NetworkInput(made, images)


class _Rows(vector.Group):
  """Environments that keep their data in rows of shared arrays."""

  _arrays: Any = None
  _first = 0

  @property
  def names(self):
    return [guard.find_name(env) for env in self.envs]

  def attach(self, rows, arrays):
    """Use arrays from now on, of which some rows belong to this group."""
    self._arrays, self._first = arrays, int(rows[0])

  def advance(self):
    """Read actions from the arrays, and write what they lead to."""
    arrays = self._arrays
    observ, reward, done = arrays.observ, arrays.reward, arrays.done
    # Environments may keep their actions, but the rows are used again.
    own = slice(self._first, self._first + len(self.envs))
    actions = arrays.action[own].copy()
    for row, (env, action) in enumerate(zip(self.envs, actions), self._first):
      value, reward[row], done[row], _ = env.step(action)
      if type(value) is np.ndarray and value.dtype == observ.dtype:
        observ[row] = value
      else:
        _write(observ[row, ...], value, env)

  def reset(self, rows):
    """Return first observations, or write them to the arrays if there are."""
    if self._arrays is None:
      return super().reset(rows)
    for row in rows:
      env = self.envs[row]
      _write(self._arrays.observ[self._first + row, ...], env.reset(), env)
    return None

  def close(self):
    super().close()
    if self._arrays:
      self._arrays.close()


def _write(row, observ, env):
  """Write an observation, unless its numbers would become others."""
  try:
    np.copyto(row, observ, casting='same_kind')
  except TypeError:
    raise errors.EnvError(
      f'Environment {guard.find_name(env)} returned an observation of type '
      f'{np.asarray(observ).dtype}, but of {row.dtype} before; return one type.'
    ) from None


class ScaledVectorEnv(batch_env.VectorEnv):
  """Batch of environments with time limit, normalized ranges and 32 bit data.

  Returns the same numbers as a `BatchEnv` of environments wrapped in
  `LimitDuration`, `RangeNormalize`, `ClipAction` and `ConvertTo32Bit`, but does
  much less work in Python.

  Args:
    constructors: Functions that create environments with box observations, and
      box or discrete actions.
    duration: Maximum number of steps per episode; None for no limit.
    num_workers: See `VectorEnv`.
    images: Whether observations stay bytes, for a network that scales them.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  group = _Rows
  _arrays: Any = None
  _attached = False  # from the first reset on

  def __init__(
    self,
    constructors: Iterable[Callable[[], Any]],
    duration: int | None = None,
    num_workers: int | None = 0,
    images: bool = False,
  ):
    super().__init__(constructors, num_workers)
    self._dtype = np.uint8 if images else np.float32
    self._is_shared = num_workers != 0
    self._duration = duration or np.inf
    self._steps = np.full(len(self), np.inf)
    self._raw_action_space = self.action_space
    self._raw_observ_dtype = np.dtype(self.observation_space.dtype)
    self._ranges = spaces.Ranges(
      self.observation_space, self.action_space, False if images else None
    )
    self.observation_space = self._ranges.observation_space
    # Any action is clipped.
    self.action_space = wrappers.unbounded(self._ranges.action_space)
    try:
      # Allocated now, so that a lack of memory shows before a run begins.
      first = np.empty(self.observation_space.shape, self._raw_observ_dtype)
      self._arrays = self._allocate(first)
    except BaseException:
      self.close()
      raise

  def step(self, actions: np.ndarray) -> tuple:
    """Step all environments.

    Args:
      actions: Float array [N, size]; clipped to [-1, 1] and mapped to the range
        of the environments if that is finite. Discrete actions are integers
        [N], counted from zero.

    Returns:
      Tuple of 32 bit observations [N, ...], rewards float32 [N], done flags
      bool [N], and a tuple of N empty dictionaries.

    Raises:
      RuntimeError: If an episode has ended and was not reset.
      BadNumber: If an observation or reward is infinite or NaN.
    """
    if (self._steps >= self._duration).any():
      raise RuntimeError('Must reset environment.')
    self._arrays.action[:] = self._ranges.clipped_action(actions)
    self.call('advance')
    self._steps += 1
    done = self._arrays.done | (self._steps >= self._duration)
    everywhere = np.arange(len(self))
    with np.errstate(over='ignore'):
      reward = self._arrays.reward.astype(np.float32)
    self._check_finite('reward', reward, everywhere)
    observ = self._convert(self._arrays.observ, everywhere)
    return observ, reward, done, ({},) * len(self)

  def reset(
    self, indices: Sequence[int] | np.ndarray | None = None
  ) -> np.ndarray:
    indices = np.arange(len(self)) if indices is None else indices
    self._steps[indices] = 0
    observ = super().reset(indices)
    if not self._attached:
      # The first observation tells the type; spaces may name another one.
      if not np.can_cast(observ.dtype, self._raw_observ_dtype):
        self._arrays.close()
        self._arrays = self._allocate(observ[0])
      self.call('attach', np.arange(len(self)), arrays=self._arrays)
      self._arrays.forget_name()
      self._attached = True
    else:
      observ = self._arrays.observ[indices]
    return self._convert(observ, indices)

  def close(self) -> None:
    super().close()
    if self._arrays:
      self._arrays.close()
      self._arrays = None

  def _allocate(self, observ):
    space, count = self._raw_action_space, len(self)
    # The first observation may be of a smaller type than later ones.
    observ_dtype = np.result_type(observ, self._raw_observ_dtype)
    layout = {
      'action': ((count, *space.shape), np.dtype(space.dtype)),
      'observ': ((count, *observ.shape), observ_dtype),
      'reward': ((count,), np.float64),
      'done': ((count,), bool),
    }
    return shared_arrays.Arrays(layout, self._is_shared)

  def _check_finite(self, what, values, indices):
    if not np.isfinite(values).all():
      names = vector.join(self.get('names'))
      for index, value in zip(indices, values):
        guard.check_finite(value, what, names[index])

  def _convert(self, observ, indices):
    with np.errstate(over='ignore'):
      # The caller may keep what it gets while the buffers are used again.
      converted = self._ranges.observ(observ).astype(self._dtype)
    if observ.dtype.kind == 'f':
      self._check_finite('observation', converted, indices)
    return converted
