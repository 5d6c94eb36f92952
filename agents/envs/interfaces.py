"""The interfaces that environments of gym and gymnasium have had.

Until gym 0.21, `reset()` returned an observation, `step` four values, `seed`
seeded, and `render` took the mode. In gym 0.26 and gymnasium, `reset` takes the
seed and returns an info as well, `step` returns five values, and the
constructor takes the mode. Between them, environments have some of both. Each
part is read by itself, so that all combinations work.
"""

import inspect
import sys
from collections.abc import Collection, Iterator
from typing import Any

import gymnasium

# Modules whose environments have the interface of gymnasium.
_CURRENT = 'gymnasium.', 'gymnasium_robotics.', 'planet.envs.', 'agents.envs.'


def takes(function: Any, name: str, loosely: bool = True) -> bool:
  """Return whether a function takes a keyword argument.

  Args:
    function: Function, method or class.
    name: Name of the argument.
    loosely: Whether `**kwargs` counts.
  """
  # gym 0.25 hides the signature of `render`.
  inner: Any = getattr(function, '__func__', function)
  if getattr(inner, '__qualname__', '').startswith('_deprecate_mode.'):
    (function,) = (x.cell_contents for x in inner.__closure__)
  try:
    parameters = inspect.signature(function).parameters
  except (TypeError, ValueError):
    # Functions written in C may have no signature.
    return False
  rest = any(x.kind is x.VAR_KEYWORD for x in parameters.values())
  return name in parameters or (loosely and rest)


def list_missing(function: Any, given: Collection[str]) -> list[str]:
  """Return the required arguments of a function that are not given."""
  try:
    parameters = inspect.signature(function).parameters.values()
  except (TypeError, ValueError):
    return []
  kinds = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
  )
  required = [x for x in parameters if x.kind in kinds and x.default is x.empty]
  return [x.name for x in required if x.name not in given]


def takes_seed(env: Any) -> bool:
  """Return whether a seed passes all wrappers of `reset`."""
  *outer, inner = layers(env)
  between = all(takes(x.reset, 'seed') for x in outer)
  return between and takes(inner.reset, 'seed', loosely=False)


def layers(env: Any) -> Iterator[Any]:
  """Yield an environment and what it wraps, from the outside."""
  yield env
  while 'env' in getattr(env, '__dict__', {}):
    if env is getattr(env, 'unwrapped', None):
      # This environment consists of `env` instead of wrapping it.
      return
    env = env.env
    yield env


def read_reset(result: Any, space: gymnasium.Space) -> tuple[Any, bool]:
  """Return the observation in the result of `reset`, and whether it was alone.

  Args:
    result: Observation, or tuple of observation and info.
    space: Space of observations.
  """
  is_pair = isinstance(result, (tuple, list)) and len(result) == 2
  # The info of a reset is not used, so it may be missing.
  if not (is_pair and isinstance(result[1], dict | None)):
    return result, True
  if isinstance(space, gymnasium.spaces.Tuple) and len(space) == 2:
    # Observations may be such a tuple, too.
    is_pair = isinstance(result[0], (tuple, list))
  return (result[0], False) if is_pair else (result, True)


def read_step(result: Any) -> tuple[Any, Any, Any, bool, Any]:
  """Return five values from the four or five that `step` returns."""
  if len(result) != 4:
    return result
  observ, reward, done, info = result
  truncated = isinstance(info, dict) and bool(info.get('TimeLimit.truncated'))
  return observ, reward, not truncated and done, truncated, info


def mend_gym() -> None:
  """Let gym 0.25 work with NumPy 2, on which two of its parts fail.

  These are the checker, which `gym.make` adds, and may be called in the module
  of a user, and generators that are sent to another process.
  """
  seeding: Any = sys.modules.get('gym.utils.seeding')
  if hasattr(seeding, 'RandomNumberGenerator'):
    kind = seeding.RandomNumberGenerator
    kind.__reduce__ = lambda self: (kind, (self.bit_generator,))
  module: Any = sys.modules.get('gym.wrappers.env_checker')
  if module:
    module.env_reset_passive_checker = lambda env, **kwargs: env.reset(**kwargs)
    module.env_step_passive_checker = lambda env, action: env.step(action)


def lenient(env: gymnasium.Env) -> gymnasium.Env:
  """Return an environment with `Lenient` on each class that others wrote."""
  found = list(layers(env))
  if not _is_known(found[-1]):
    # `Lenient` takes the place of the checker.
    checkers = [x for x in found if type(x).__name__ == 'PassiveEnvChecker']
    for outer in found:
      if getattr(outer, 'env', None) in checkers:
        outer.env = outer.env.env
    found = list(layers(env))
  for outer, layer in zip([None, *found], found):
    if _is_known(layer) or isinstance(outer, Lenient):
      continue
    if outer is None:
      env = Lenient(layer)
    else:
      outer.env = Lenient(layer)
  return env


def _is_known(env):
  """Return whether a class has the interface of gymnasium."""
  return type(env).__module__.startswith(_CURRENT)


def is_current(entry_point: Any) -> bool:
  """Return whether an entry of the registry needs no `Lenient`."""
  return isinstance(entry_point, str) and entry_point.startswith(_CURRENT)


class Lenient(gymnasium.Wrapper):
  """Interface of gymnasium for a class of gymnasium with an older one.

  Args:
    env: Environment, or wrapper.
    render_mode: Mode for a `render` that takes it.
  """

  def __init__(self, env: gymnasium.Env, render_mode: str | None = None):
    super().__init__(env)
    mend_gym()
    self._takes_mode = takes(env.render, 'mode', loosely=False)
    self._mode = env.render_mode or None
    if self._takes_mode and not self._mode:
      self._mode = render_mode or 'rgb_array'
    self._arguments = [x for x in ('seed', 'options') if takes(env.reset, x)]
    self._is_old = self._takes_mode or 'seed' not in self._arguments

  @property
  def is_old(self) -> bool:
    """Whether anything, here or below, had another interface so far."""
    below = (x for x in layers(self) if isinstance(x, Lenient))
    return any(x._is_old for x in below)

  @property
  def spec(self) -> Any:  # type: ignore[override]
    """Entry in the registry; without this class, which is not part of it."""
    return self.env.spec

  @property
  def render_mode(self) -> str | None:  # type: ignore[override]
    """Mode of `render`."""
    return self._mode

  def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
    given = {'seed': seed, 'options': options}
    if seed is not None and 'seed' not in self._arguments:
      seeder = getattr(self.env, 'seed', None)
      if callable(seeder):
        seeder(seed)
      elif isinstance(self.env, gymnasium.Wrapper):
        self.env.env.reset(seed=seed)
      else:
        gymnasium.Env.reset(self.env, seed=seed)
    result = self.env.reset(**{x: given[x] for x in self._arguments})
    observ, alone = read_reset(result, self.observation_space)
    self._is_old |= alone
    return (observ, {}) if alone else result

  def step(self, action: Any) -> Any:
    result = self.env.step(action)
    if len(result) == 5:
      return result
    self._is_old = True
    return read_step(result)

  def render(self) -> Any:
    render: Any = self.env.render
    return render(mode=self._mode) if self._takes_mode else render()


class _Alone(Lenient):
  """Environment of gymnasium for `ObservationWrapper` of gym before 0.26.

  Its `reset` returns the observation without an info.
  """

  def reset(self, **given: Any) -> Any:
    return super().reset(**given)[0]


def mend_below(env: Any) -> None:
  """Let gym's `ObservationWrapper` have an environment of gymnasium below it.

  Args:
    env: Environment with wrappers, which is changed.
  """
  gym: Any = sys.modules.get('gym')
  changing = getattr(getattr(gym, 'ObservationWrapper', None), 'reset', None)
  if changing is None or not takes(changing, 'return_info'):
    # This gym has no such wrapper, or one that expects an info.
    return
  found = list(layers(env))
  count = sum(isinstance(x, gym.Wrapper) for x in found)
  resets = [type(x).reset for x in found[:count]]
  # Wrappers of users may expect an info.
  if changing not in resets or {*resets} - {changing, gym.Wrapper.reset}:
    return
  if isinstance(found[count], gymnasium.Env):
    found[count - 1].env = _Alone(found[count])
