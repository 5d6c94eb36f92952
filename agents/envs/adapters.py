"""Adapters for environments of gymnasium, gym and dm_control.

All other code uses one interface: `reset() -> observation`, `step(action) ->
(observation, reward, done, info)`, `observation_space` and `action_space` (of
gymnasium), `render(mode)`, `seed` and `close`. When a time limit ends an
episode, `info['truncated']` is set. Whatever action arrives, the environment
gets a legal one, see `spaces.fitting`.
"""

import contextlib
import functools
import importlib
import logging
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np

from agents.envs import guard, hosts, quiet, spaces
from agents.envs.wrappers import FitActions, Wrapper, with_own_randomness
from agents.run import errors, references


class GymnasiumEnv(Wrapper):
  """Adapter for an environment of gymnasium.

  Args:
    env: Result of `gymnasium.make`.
    env_id: Requested id, if it differs from that of the environment.
  """

  def __init__(self, env: Any, env_id: str | None = None):
    super().__init__(env)
    self._seed: int | None = None
    self._rendered = False
    self.requested_id = env_id or (env.spec.id if env.spec else None)
    self.observation_space = env.observation_space
    self.action_space = env.action_space
    self._fit = spaces.fitting(env.action_space)

  def __getattr__(self, name: str) -> Any:
    # Wrappers of gymnasium do not forward attributes.
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return self._env.get_wrapper_attr(name)

  def seed(self, seed: int) -> None:
    """Seed the action space now and the environment at its next reset."""
    self._seed = seed
    self.action_space.seed(seed)

  def reset(self) -> Any:
    # Windows are opened now.
    first = self._env.render_mode == 'human' and not self._rendered
    self._rendered = self._rendered or first
    with quiet.quietly() if first else contextlib.nullcontext():
      observ, _ = self._env.reset(seed=self._seed)
    self._seed = None
    return observ

  def step(self, action: Any) -> tuple:
    action = self._fit(action)
    observ, reward, terminated, truncated, info = self._env.step(action)
    if truncated and not terminated:
      info = dict(info, truncated=True)
    return observ, reward, terminated or truncated, info

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return an image in the mode chosen by `make`."""
    if mode != self._env.render_mode:
      raise errors.UsageError(
        f'Cannot render in mode {mode!r}: the environment '
        f'{self.requested_id} has render_mode {self._env.render_mode!r}. Its '
        'constructor must store the render_mode argument.'
      )
    # Libraries that draw are imported now, and complain about each other.
    with contextlib.nullcontext() if self._rendered else quiet.quietly():
      self._rendered = True
      return self._env.render()


class GymEnv(Wrapper):
  """Adapter for an environment of gym 0.25 or older, such as PyBullet's.

  Args:
    env: Result of `gym.make`.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._started = False
    self.observation_space = spaces.convert(env.observation_space)
    self.action_space = spaces.convert(env.action_space)
    self._fit = spaces.fitting(self.action_space)

  def seed(self, seed: int) -> None:
    """Seed the environment and its action space."""
    self._env.unwrapped.seed(seed)
    self.action_space.seed(seed)

  def reset(self) -> Any:
    # PyBullet connects to its server at first, which prints `argv[0]=`.
    with contextlib.nullcontext() if self._started else quiet.quietly():
      self._started = True
      return self._env.reset()

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(self._fit(action))
    if info.get('TimeLimit.truncated'):
      info = dict(info, truncated=True)
    return observ, reward, bool(done), info

  def render(self, mode: str = 'rgb_array') -> Any:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      return np.asarray(self._env.render(mode=mode))


class DeepMindWrapper(Wrapper):
  """Adapter for a task of the control suite; observations are dictionaries.

  Args:
    env: Result of `dm_control.suite.load`.
    render_size: Height and width of rendered images in pixels.
    camera_id: Number of the camera to render from.
  """

  metadata = {'render.modes': ['rgb_array']}
  reward_range = (-np.inf, np.inf)

  def __init__(
    self, env: Any, render_size: tuple[int, int] = (64, 64), camera_id: int = 0
  ):
    super().__init__(env)
    self._render_size = render_size
    self._camera_id = camera_id

  @functools.cached_property
  def observation_space(self) -> Any:
    parts = {}
    for key, spec in self._env.observation_spec().items():
      infinity = np.full(spec.shape, np.inf, np.float32)
      parts[key] = spaces.box(-infinity, infinity)
    return spaces.dictionary(parts)

  @functools.cached_property
  def action_space(self) -> Any:
    spec = self._env.action_spec()
    ones = np.ones(spec.shape)
    return spaces.box(spec.minimum * ones, spec.maximum * ones)

  @functools.cached_property
  def _fit(self):
    return spaces.fitting(self.action_space)

  def seed(self, seed: int) -> None:
    """Seed the environment and its action space."""
    self._env.task.random.seed(seed)
    self.action_space.seed(seed)

  def reset(self) -> Any:
    return dict(self._env.reset().observation)

  def step(self, action: Any) -> tuple:
    time_step = self._env.step(self._fit(action))
    observ, reward = dict(time_step.observation), time_step.reward or 0
    return observ, reward, time_step.last(), {'discount': time_step.discount}

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return an image, uint8 [height, width, 3].

    Raises:
      ValueError: If the mode is not `rgb_array`.
    """
    if mode != 'rgb_array':
      raise ValueError(
        f"Cannot render in mode {mode!r}; only 'rgb_array' is available."
      )
    height, width = self._render_size
    return self._env.physics.render(height, width, camera_id=self._camera_id)


class AsGymnasium(gymnasium.Env):
  """Adapter from an environment of this project to gymnasium's interface.

  Args:
    env: Environment.
    render_mode: Mode it was created for, None for no images.
  """

  def __init__(self, env: Any, render_mode: str | None = None):
    self._inner = env
    self.observation_space = spaces.convert(env.observation_space)
    self.action_space = spaces.convert(env.action_space)
    self.metadata = {'render_modes': ['rgb_array']}
    self.render_mode = render_mode

  def reset(
    self, *, seed: int | None = None, options: Any = None
  ) -> tuple[Any, dict[str, Any]]:
    super().reset(seed=seed)
    if seed is not None:
      self._inner.seed(seed)
    return self._inner.reset(), {}

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._inner.step(action)
    truncated = bool(info.get('truncated'))
    return observ, float(reward), done and not truncated, truncated, info

  def render(self) -> Any:
    return self._inner.render('rgb_array')

  def close(self) -> None:
    getattr(self._inner, 'close', lambda: None)()


def make(env_id: str, render_mode: str | None = None, **kwargs: Any) -> Any:
  """Create an environment by its id.

  Looks up ids in gymnasium first, then in gymnasium-robotics and PyBullet. Ids
  whose simulator no longer exists resolve to the maintained version.

  Args:
    env_id: Id, such as `Pendulum-v1` or `HalfCheetahBulletEnv-v0`.
    render_mode: Mode for `render`, usually `rgb_array`; None for no images.
      MuJoCo needs OpenGL to render, see `agents.envs.opengl`.
    **kwargs: Passed on to the constructor of the environment.

  Returns:
    Environment with the interface of this module.

  Raises:
    UsageError: If the id is unknown, a package is missing, or the environment
      cannot render.
    EnvError: If its module or constructor fails; includes the traceback.
  """
  library, resolved = resolve(env_id)
  if library == 'gym':
    is_kuka = resolved.startswith('Kuka')
    return (_OwnProcess if is_kuka else _make_gym)(resolved, kwargs)
  # Not every constructor takes a render_mode.
  if render_mode:
    kwargs['render_mode'] = render_mode
  if render_mode == 'rgb_array' and renders_with_opengl(env_id):
    from agents.envs import opengl

    opengl.select_backend()
  try:
    env = gymnasium.make(resolved, disable_env_checker=True, **kwargs)
  except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
    raise errors.UsageError(
      f'Environment {resolved} needs a missing package: {error}'
    ) from None
  except gymnasium.error.Error as error:
    raise errors.UsageError(
      f'Cannot create environment {env_id!r}: {error}'
    ) from None
  except Exception as error:  # Whatever the user's code may raise.
    # It was called with an argument that it lacks.
    refused = isinstance(error, TypeError) and 'render_mode' in str(error)
    if render_mode and refused:
      raise errors.UsageError(
        f'The constructor of {env_id!r} takes no render_mode, so it cannot '
        'render. Add that argument, or work without images: omit videos and '
        '--play, and train PlaNet with --params "{observations: vector}".'
      ) from None
    when = 'in its module or constructor'
    raise guard.translate(error, env_id, when) from None
  return GymnasiumEnv(env, env_id)


def adapt(env: Any) -> Any:
  """Adapt an environment of another library to the interface of this module.

  Args:
    env: Environment of gymnasium, gym, or this project.

  Returns:
    Environment whose actions are fitted to its space, see `spaces.fitting`.
  """
  if isinstance(env, gymnasium.Env):
    return GymnasiumEnv(env)
  # Without importing gym, which few environments need.
  gym = sys.modules.get('gym')
  is_gym = gym and isinstance(env, gym.Env)
  return GymEnv(env) if is_gym else FitActions(env)


def create(env: Any, render_mode: str | None = None, **kwargs: Any) -> Any:
  """Create an environment from an id, a function, or an environment.

  Args:
    env: Id, see `make`; function without arguments that returns an
      environment, or its name, `module:function`; or an environment, see
      `adapt`, which only the caller closes.
    render_mode: See `make`; only for ids.
    **kwargs: See `make`; only for ids.

  Raises:
    UsageError: See `make`; also if a stored name does not identify an object.
    EnvError: If the function fails or returns something else.
  """
  if isinstance(env, str):
    found = _find_function(env)
    if not found:
      return make(env, render_mode, **kwargs)
    env = found
  if is_environment(env):
    return _Borrowed(adapt(env))
  name = name_of(env)
  with guard.explained(name, 'in its constructor'):
    made = env()
  if not is_environment(made):
    raise errors.EnvError(
      f'{name} returns {made!r}; it must return an environment.'
    )
  return adapt(made)


def portable(env: Any) -> Any:
  """Return a value for `create` that may go to another process.

  An id then takes its entry in the registry along, as that process does not
  know what only the main program has registered.
  """
  return _Registered(env) if isinstance(env, str) else env


class _Registered(str):
  """Id that `pickle` restores with its entry in gymnasium's registry."""

  def __reduce__(self):
    return _register, (str(self), gymnasium.registry.get(self))


def _register(env_id, spec):
  if spec:
    gymnasium.registry.setdefault(env_id, spec)
  return _Registered(env_id)


class _Borrowed(Wrapper):
  """Environment that its owner closes."""

  def close(self) -> None:
    pass


def is_environment(value: Any) -> bool:
  """Return whether a value is an environment, not an id or a constructor."""
  return hasattr(value, 'step') and not isinstance(value, type)


def name_of(env: Any) -> str:
  """Return the name under which to store the `env` argument of `create`."""
  if isinstance(env, str):
    return env
  is_env = is_environment(env)
  return f'<{guard.find_name(env)}>' if is_env else references.name_of(env)


def _find_function(name):
  """Return the function of a name such as `module:function`, None for ids."""
  if name.startswith('<'):
    raise errors.UsageError(
      f'The environment was the object {name}, which cannot be restored by '
      'name; pass the object again.'
    )
  module, _, function = name.partition(':')
  if not function.isidentifier():
    return None
  try:
    return getattr(importlib.import_module(module), function, None)
  except ModuleNotFoundError:
    return None


def to_gymnasium(env: Any) -> gymnasium.Env:
  """Create an environment with the interface of gymnasium.

  Args:
    env: See `create`.
  """
  return env if isinstance(env, gymnasium.Env) else AsGymnasium(create(env))


def _make_gym(env_id, kwargs):
  _gym_registry()  # imports PyBullet
  with quiet.quietly():
    import gym

    return GymEnv(gym.make(env_id, disable_env_checker=True, **kwargs))


class _OwnProcess(hosts.ExternalProcess):
  """PyBullet environment that cannot share a process with others.

  The Kuka environments act in the first world of their process, and clear it at
  each reset.
  """

  def __init__(self, env_id, kwargs):
    super().__init__(lambda: with_own_randomness(_make_gym(env_id, kwargs)))

  @property
  def unwrapped(self):
    return self

  def seed(self, seed):
    super().seed(seed)
    self.action_space.seed(seed)


def renders_with_opengl(env_id: str) -> bool:
  """Return whether an environment renders with MuJoCo and thus OpenGL."""
  try:
    library, resolved = resolve(env_id)
    spec = library == 'gymnasium' and gymnasium.spec(resolved)
  except (errors.UsageError, gymnasium.error.Error):
    # Those that have no id, such as the minitaur, draw otherwise.
    return False
  name = str(spec and spec.entry_point)
  return 'mujoco' in name or 'robotics' in name


@functools.cache
def resolve(env_id: str) -> tuple[str, str]:
  """Return the library, `gymnasium` or `gym`, and the current id.

  Raises:
    UsageError: If the id is unknown or its library is not installed.
  """
  if ':' in env_id:
    return 'gymnasium', env_id
  if not _versions(gymnasium.registry, env_id) and 'Bullet' not in env_id:
    with contextlib.suppress(ImportError), quiet.quietly():
      import gymnasium_robotics

      gymnasium.register_envs(gymnasium_robotics)
  registry = gymnasium.registry
  if env_id in registry and _is_maintained(registry[env_id]):
    return 'gymnasium', env_id
  versions = _versions(registry, env_id)
  if versions:
    newest = versions[max(versions)]
    logging.getLogger(__name__).info(
      '%s no longer exists; using %s.', env_id, newest
    )
    return 'gymnasium', newest
  if env_id in _gym_registry():
    return 'gym', env_id
  raise errors.UsageError(_explain_unknown(env_id, registry))


def _versions(registry, env_id):
  """Return a dict from version to id of the maintained environments."""
  base = env_id.rpartition('-v')[0] or env_id
  versions = {}
  for name, spec in registry.items():
    if name.rpartition('-v')[0] == base and _is_maintained(spec):
      versions[spec.version or 0] = name
  return versions


def _is_maintained(spec):
  entry = spec.entry_point
  name = entry if isinstance(entry, str) else getattr(entry, '__name__', '')
  # Once it is imported, gymnasium-robotics offers those that need mujoco_py.
  gone = ('mujoco_py', ':MujocoPy', 'gymnasium_robotics.envs.mujoco.')
  return not any(x in name for x in gone)


@functools.cache
def _gym_registry():
  """Ids of gym, with those of PyBullet; none if not installed."""
  try:
    with quiet.quietly():
      import pybullet_envs  # noqa: F401
      from gym.envs.registration import registry
    return frozenset(registry.keys())
  except ImportError:
    return frozenset()


def _explain_unknown(env_id, registry):
  known = [*registry, *_gym_registry()]
  extras = {'Bullet': 'pybullet'}
  extras.update(dict.fromkeys(('Fetch', 'Hand', 'AntMaze'), 'robotics'))
  for word, extra in extras.items():
    if word in env_id and not any(word in x for x in known):
      return (
        f'Environment {env_id!r} needs the extra {extra!r}: '
        f'{errors.how_to_install(extra)}.'
      )
  return f'Environment {env_id!r} is unknown. {errors.suggest(env_id, known)}'
