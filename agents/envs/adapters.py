"""Adapters for environments of gymnasium, gym and dm_control.

All other code uses one interface: `reset() -> observation`, `step(action) ->
(observation, reward, done, info)`, `observation_space` and `action_space` (of
gymnasium), `render(mode)`, `seed` and `close`. When a time limit ends an
episode, `info['truncated']` is set. Whatever action arrives, the environment
gets a legal one, see `spaces.fitting`.

Environments that are not those of gymnasium itself may have any of the
interfaces that gym has had, see `agents.envs.interfaces`.
"""

import contextlib
import copy
import importlib
import logging
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from agents.envs import (
  guard,
  hosts,
  interfaces,
  opengl,
  quiet,
  registry,
  spaces,
)
from agents.envs.forwarding import Forwarding, with_own_randomness
from agents.run import errors, references


class _Adapter(Forwarding):
  """Base of adapters; spaces are those of gymnasium.

  Args:
    env: Environment.

  Raises:
    EnvError: If it lacks a space.
  """

  observation_space: gymnasium.Space
  action_space: gymnasium.Space

  def __init__(self, env: Any):
    super().__init__(env)
    for name in ('observation_space', 'action_space'):
      space = getattr(env, name, None)
      if not hasattr(space, 'shape'):
        raise errors.EnvError(
          f'The {name} of {type(getattr(env, "unwrapped", env)).__name__} is '
          f'{space!r:.80}; set this attribute in the constructor, to a space '
          'of gymnasium for one agent.'
        )
      # Spaces of old gym cannot be sent to another process.
      with contextlib.suppress(NotImplementedError):
        space = spaces.convert(space)
      setattr(self, name, space)

  def close(self) -> None:
    """Close the environment; an error in it is only a warning."""
    try:
      super().close()
    except guard.MISTAKES as error:
      logging.getLogger(__name__).warning(
        'Environment %s failed in close with %r; going on.',
        guard.find_name(self),
        error,
      )


class GymnasiumEnv(_Adapter):
  """Adapter for an environment of gymnasium.

  Args:
    env: Result of `gymnasium.make`.
    env_id: Requested id, if it differs from that of the environment.
  """

  def __init__(self, env: Any, env_id: str | None = None):
    super().__init__(env)
    self._seed: int | None = None
    self._rendered = False
    # Some environments call something else so.
    spec_id = getattr(env.spec, 'id', None)
    self.requested_id = env_id or spec_id or type(env.unwrapped).__name__
    self._fit = spaces.fitting(self.action_space)

  def __getattr__(self, name: str) -> Any:
    # Wrappers of gymnasium do not forward attributes.
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return self._env.get_wrapper_attr(name)

  def seed(self, seed: int) -> None:
    """Seed the action space now and the environment at its next reset."""
    self._seed = seed
    self.action_space.seed(seed)

  def reset(self, **given: Any) -> Any:
    # Windows are opened now.
    first = self._env.render_mode == 'human' and not self._rendered
    self._rendered = self._rendered or first
    with quiet.quietly() if first else contextlib.nullcontext():
      observ, _ = self._env.reset(seed=self._seed, **given)
    self._seed = None
    return observ

  def step(self, action: Any) -> tuple:
    action = self._fit(action)
    observ, reward, terminated, truncated, info = self._env.step(action)
    # `Guard` refuses any other type.
    if isinstance(info, dict):
      if truncated and not terminated:
        info = dict(info, truncated=True)
      elif terminated and 'truncated' in info:
        # The environment uses this name for something else.
        info = dict(info, truncated=False)
    # In this order, `Guard` sees a `terminated` that is None.
    return observ, reward, truncated or terminated, info

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return an image in the mode chosen by `make`."""
    if mode != self._env.render_mode:
      raise errors.UsageError(
        f'Cannot render in mode {mode!r}: the environment '
        f'{self.requested_id} has render_mode {self._env.render_mode!r}. Its '
        'constructor must store the render_mode argument.'
      )
    if not self._rendered and wraps_dm_control(self._env):
      _prepare_dm_control(self)
    elif not self._rendered and uses_mujoco(self._env):
      opengl.prepare(guard.find_name(self))
    # Libraries that draw are imported now, and complain about each other.
    with contextlib.nullcontext() if self._rendered else quiet.quietly():
      self._rendered = True
      return self._env.render()


class GymEnv(_Adapter):
  """Adapter for all other environments: of gym, such as PyBullet's, and others.

  Args:
    env: Environment with any of the interfaces of gym, of a class of gym or
      not.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    interfaces.mend_gym()
    interfaces.mend_below(env)
    self._started = False
    self._seed: int | None = None
    self._fit = spaces.fitting(self.action_space)
    self._takes_seed = interfaces.takes_seed(env)
    counting = {'_elapsed_steps', '_max_episode_steps'}
    layers = interfaces.layers(env)
    limits = [x for x in layers if counting <= {*getattr(x, '__dict__', ())}]
    self._limit: Any = limits[0] if limits else None

  @property
  def unwrapped(self) -> Any:
    """The environment without wrappers."""
    return getattr(self._env, 'unwrapped', self._env)

  def seed(self, seed: int) -> None:
    """Seed the environment, now or at its next reset, and its action space."""
    self.action_space.seed(seed)
    seeder = getattr(self.unwrapped, 'seed', None)
    if self._takes_seed:
      self._seed = seed
    elif callable(seeder):
      with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        seeder(seed)

  def reset(self, **given: Any) -> Any:
    if self._seed is not None:
      given['seed'] = self._seed
    self._seed = None
    # PyBullet connects to its server at first, which prints `argv[0]=`.
    with contextlib.nullcontext() if self._started else quiet.quietly():
      self._started = True
      result = self._env.reset(**given)
    return interfaces.read_reset(result, self.observation_space)[0]

  def step(self, action: Any) -> tuple:
    result = self._env.step(self._fit(action))
    observ, reward, terminated, truncated, info = interfaces.read_step(result)
    # gym 0.25 ignores its limit if `done` is a NumPy bool.
    limit = self._limit
    if limit and limit._elapsed_steps == limit._max_episode_steps:
      truncated = True
    if truncated and not terminated and isinstance(info, dict):
      info = dict(info, truncated=True)
    return observ, reward, truncated or terminated, info

  def render(self, mode: str = 'rgb_array') -> Any:
    render = self._env.render
    takes_mode = interfaces.takes(self.unwrapped.render, 'mode')
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      image = render(mode=mode) if takes_mode else render()
    return image if image is None else np.asarray(image)


class DeepMindWrapper(Forwarding):
  """Adapter for a task of dm_control; observations are dictionaries.

  Motors without limits have no bounds. A last step whose discount is not 0 is a
  time limit, not the end of the task.

  Args:
    env: Result of `dm_control.suite.load`, or another environment of
      dm_control, such as those for locomotion and manipulation.
    render_size: Height and width of rendered images in pixels.
    camera_id: Number of the camera to render from.

  Raises:
    UsageError: If it has several agents.
  """

  metadata = {'render.modes': ['rgb_array']}
  reward_range = (-np.inf, np.inf)

  def __init__(
    self, env: Any, render_size: tuple[int, int] = (64, 64), camera_id: int = 0
  ):
    super().__init__(env)
    if isinstance(env.action_spec(), (list, tuple)):
      raise errors.UsageError(
        f'{type(env).__name__} has several agents; give an environment for one.'
      )
    self._render_size = render_size
    self._camera_id = camera_id
    self._rendered = False
    self.observation_space = _observation_space(env.observation_spec())
    self.action_space = _action_space(env.action_spec())
    self._fit = spaces.fitting(self.action_space)

  def seed(self, seed: int) -> None:
    """Seed the environment, if it can be seeded, and its action space."""
    self.action_space.seed(seed)
    random = _find_random(self._env)
    if random is not None:
      random.seed(seed)

  def reset(self) -> Any:
    return dict(self._env.reset().observation)

  def step(self, action: Any) -> tuple:
    time_step = self._env.step(self._fit(action))
    observ, reward = dict(time_step.observation), time_step.reward
    if reward is None and time_step.first():
      # This step has begun an episode. Others need a reward, see `Guard`.
      reward = 0
    done, info = time_step.last(), {'discount': time_step.discount}
    if done and time_step.discount:
      # Later rewards would count, so the task is not over.
      info['truncated'] = True
    return observ, reward, done, info

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return an image, uint8 [height, width, 3].

    Raises:
      ValueError: If the mode is not `rgb_array`.
      UsageError: If OpenGL cannot render, or is software and TensorFlow is
        imported.
    """
    if mode != 'rgb_array':
      raise ValueError(
        f"Cannot render in mode {mode!r}; only 'rgb_array' is available."
      )
    physics = self._env.physics
    # The class, as a context of OpenGL is created when the object is asked. Not
    # `type`, as environments of dm_control.composer return a proxy.
    if not self._rendered and hasattr(physics.__class__, 'contexts'):
      _prepare_dm_control(self)
    self._rendered = True
    height, width = self._render_size
    return physics.render(height, width, camera_id=self._camera_id)


# What MuJoCo gives for a motor without limits.
_UNLIMITED = 1e10


def _observation_space(specs):
  """Return the space of observations of dm_control."""
  parts = {}
  for key, spec in specs.items():
    is_image = getattr(spec, 'dtype', None) == np.uint8
    bounds = (0, 255) if is_image else (-np.inf, np.inf)
    low, high = (np.full(spec.shape, x) for x in bounds)
    kind = np.uint8 if is_image else np.float32
    parts[key] = spaces.box(low, high, kind)
  return spaces.dictionary(parts)


def _action_space(spec):
  """Return the space of actions of dm_control."""
  if hasattr(spec, 'num_values'):
    return spaces.discrete(spec.num_values)
  kind = np.dtype(getattr(spec, 'dtype', np.float32))
  if kind.kind in 'iu':
    ones = np.ones(spec.shape, kind)
    return spaces.box(spec.minimum * ones, spec.maximum * ones, kind)
  bounds = [x * np.ones(spec.shape) for x in (spec.minimum, spec.maximum)]
  low, high = (
    np.where(abs(x) < _UNLIMITED, x, np.sign(x) * np.inf) for x in bounds
  )
  return spaces.box(low, high)


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
    truncated = bool(done and info.get('truncated'))
    reward = np.asarray(reward, float).item()
    return observ, reward, done and not truncated, truncated, info

  def render(self) -> Any:
    return self._inner.render('rgb_array')

  def close(self) -> None:
    getattr(self._inner, 'close', lambda: None)()


class _Foreign(AsGymnasium):
  """Environment in gymnasium's registry that is not of its class."""

  @property
  def np_random(self) -> Any:
    """Generator of the environment."""
    return getattr(self._inner.unwrapped, 'np_random', self._np_random)

  @np_random.setter
  def np_random(self, value: Any) -> None:
    self._np_random = value

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._inner.unwrapped, name)


class _Wrapped(_Foreign):
  """Environment of this project within a wrapper of gymnasium."""

  def __init__(self, env: Any, render_mode: str | None = None):
    super().__init__(env, render_mode)
    self.spec = getattr(env, 'spec', None)

  @property
  def unwrapped(self) -> Any:
    """The environment without wrappers."""
    return getattr(self._inner, 'unwrapped', self._inner)

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._inner, name)


def wrap(
  wrapper: Callable[[Any], Any], env: Any, render_mode: str | None = None
) -> Any:
  """Apply a wrapper of gymnasium to an environment of this project.

  Args:
    wrapper: Class, or function that returns an environment of gymnasium.
    env: Environment with the interface of this module.
    render_mode: Mode it was created for, None for no images.

  Returns:
    Environment with the interface of this module.
  """
  return GymnasiumEnv(interfaces.lenient(wrapper(_Wrapped(env, render_mode))))


class _Creator:
  """Entry of gymnasium's registry that creates any kind of environment.

  Args:
    make: Class, or function that returns an environment.
    env_id: Id of the environment.
  """

  def __init__(self, make: Any, env_id: str):
    self._make, self._id = make, env_id
    metadata = getattr(make, 'metadata', None)
    if isinstance(metadata, Mapping):
      self.metadata = dict(metadata)
      if 'render.modes' in metadata:
        self.metadata.setdefault('render_modes', metadata['render.modes'])

  def __call__(self, **kwargs: Any) -> gymnasium.Env:
    mode = kwargs.get('render_mode')
    given = dict(kwargs)
    if mode and not interfaces.takes(self._make, 'render_mode'):
      del given['render_mode']
    env = _call(self._make, self._id, given)
    if not isinstance(env, gymnasium.Env):
      renders = interfaces.takes(getattr(env, 'render', None), 'mode', False)
      made: gymnasium.Env = _Foreign(adapt(env), mode)
    else:
      bare = env is env.unwrapped
      made = interfaces.Lenient(env, mode) if bare else interfaces.lenient(env)
      renders = made.render_mode == mode
    if len(given) < len(kwargs) and not renders:
      getattr(env, 'close', lambda: None)()
      raise TypeError("unexpected keyword argument 'render_mode'")
    return made


def _call(make, name, given):
  """Call a constructor; refuse settings without those that it requires."""
  try:
    return make(**given)
  except TypeError as error:
    missing = interfaces.list_missing(make, given)
    # Decorators may have given some of them.
    if not missing or 'required' not in str(error):
      raise
  raise errors.UsageError(
    f'Environment {name} lacks values for {", ".join(missing)}; give them in '
    'its settings, or as kwargs where its id is registered.'
  )


def make(env_id: str, render_mode: str | None = None, /, **kwargs: Any) -> Any:
  """Create an environment by its id.

  Args:
    env_id: Id, such as `Pendulum-v1`, `HalfCheetahBulletEnv-v0`, or
      `module:Id`, whose module registers it with gymnasium or gym.
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
  library, resolved = registry.resolve(env_id)
  if library == 'gym':
    if resolved.startswith('Kuka'):
      return _OwnProcess(resolved, kwargs)
    return _make_gym(resolved, kwargs, render_mode)
  # Not every constructor takes a render_mode.
  if render_mode:
    kwargs['render_mode'] = render_mode
  try:
    env = GymnasiumEnv(_make_gymnasium(resolved, kwargs), env_id)
  except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
    raise errors.UsageError(
      f'Environment {resolved} needs a missing package: {error}'
    ) from None
  except gymnasium.error.Error as error:
    raise errors.UsageError(
      f'Cannot create environment {env_id!r}: {error}'
    ) from None
  except guard.MISTAKES as error:
    # A constructor without this argument raises such an error.
    refused = isinstance(error, TypeError) and 'render_mode' in str(error)
    if render_mode and refused:
      raise errors.UsageError(
        f'The constructor of {env_id!r} takes no render_mode, so it cannot '
        'render. Add that argument.'
      ) from None
    when = 'in its module or constructor'
    raise guard.translate(error, env_id, when) from None
  _choose_opengl(env)
  return env


def adapt(env: Any) -> Any:
  """Adapt an environment of another library to the interface of this module.

  Args:
    env: Environment of gymnasium, gym, dm_control, or this project.

  Returns:
    Environment whose actions are fitted to its space, see `spaces.fitting`.

  Raises:
    UsageError: If it is a vector environment.
  """
  if isinstance(env, gymnasium.Env):
    return GymnasiumEnv(interfaces.lenient(env))
  if hasattr(env, 'num_envs'):
    raise errors.UsageError(
      f'{type(env).__name__} steps several environments at once; give a single '
      'one.'
    )
  if _is_of_dm_control(env):
    # Models of users often have only the free camera.
    cameras = getattr(getattr(env.physics, 'model', None), 'ncam', 1)
    return DeepMindWrapper(env, camera_id=0 if cameras else -1)
  return GymEnv(env)


def create(env: Any, render_mode: str | None = None, /, **kwargs: Any) -> Any:
  """Create an environment from an id, a function, or an environment.

  Args:
    env: Id, see `make`; function or class that returns an environment, or its
      name, `module:function`; or an environment, see `adapt`, which only the
      caller closes.
    render_mode: See `make`; also for functions that have this argument.
    **kwargs: See `make`; or arguments of the function, but for
      `max_episode_steps`, which is only for ids.

  Raises:
    UsageError: See `make`; also if a stored name does not identify an object,
      or an environment comes with arguments.
    EnvError: If the function fails or returns something else.
  """
  if isinstance(env, str):
    found = registry.find_function(env)
    if not found:
      return make(env, render_mode, **kwargs)
    env = found
  name = name_of(env)
  kwargs.pop('max_episode_steps', None)
  reading = guard.explained(name, 'while its attributes were read')
  if is_environment(env):
    if kwargs:
      raise errors.UsageError(
        f'The environment {name} exists already and takes no settings; omit '
        f'{", ".join(kwargs)}.'
      )
    with reading:
      return _Borrowed(adapt(env))
  if not callable(env):
    raise errors.UsageError(
      f'The environment is {env!r:.80}; give an id, a function, or an '
      'environment.'
    )
  if render_mode and interfaces.takes(env, 'render_mode', loosely=False):
    kwargs['render_mode'] = render_mode
  with guard.explained(name, 'in its constructor'), warnings.catch_warnings():
    # gym puts a filter of its own before those of `quiet`.
    warnings.filterwarnings('ignore', '.*in old step API')
    # dm_control looks for a display.
    warnings.filterwarnings('ignore', '.*DISPLAY environment variable')
    made = _call(env, name, kwargs)
  if not is_environment(made):
    raise errors.EnvError(
      f'{name} returns {made!r}; it must return an environment.'
    )
  with reading:
    if isinstance(made, gymnasium.Env):
      # Without OpenGL there are no images, which may not be needed.
      with contextlib.suppress(errors.UsageError):
        _choose_opengl(made)
    elif render_mode and _is_of_dm_control(made):
      _prepare_dm_control(made)
    return adapt(made)


def create_rendering(env: Any, /, **kwargs: Any) -> tuple[Any, str]:
  """Create an environment that renders images, if it can.

  Args:
    env: See `create`.
    **kwargs: See `make`; only for ids.

  Returns:
    Tuple of the environment, and of a sentence about why it was created without
    images, '' if it was not.

  Raises:
    UsageError: See `create`.
    EnvError: See `create`.
  """
  try:
    return create(env, 'rgb_array', **kwargs), ''
  except (errors.UsageError, errors.EnvError) as error:
    why = str(error)
  # Whatever else is wrong is raised once more, without the error above.
  return create(env, **kwargs), why


class _Borrowed(Forwarding):
  """Environment that its owner closes."""

  def close(self) -> None:
    pass


def is_environment(value: Any) -> bool:
  """Return whether a value is an environment, not an id or a constructor."""
  return hasattr(value, 'step') and not isinstance(value, type)


def is_old(env: Any) -> bool:
  """Return whether an environment had an older interface than gymnasium's.

  Args:
    env: Result of `create`, possibly after some steps.
  """
  if isinstance(env, GymEnv):
    kind = type(env.unwrapped).__module__
    return not kind.startswith(('pybullet_envs.', *references.PROJECT))
  inner = getattr(env, 'unwrapped', None)
  return isinstance(inner, _Foreign) or getattr(env, 'is_old', False) is True


def name_of(env: Any) -> str:
  """Return the name under which to store the `env` argument of `create`."""
  if isinstance(env, str):
    return env
  is_env = is_environment(env)
  return f'<{guard.find_name(env)}>' if is_env else references.name_of(env)


def _make_gymnasium(env_id, kwargs):
  """Create an environment, which may have an older interface if it is a user's.

  Returns:
    Environment whose wrappers of gymnasium see the interface of gymnasium.
  """
  spec: Any = gymnasium.registry.get(env_id.rpartition(':')[2])
  entry: Any = spec and spec.entry_point
  if not entry or interfaces.is_current(entry):
    return gymnasium.make(env_id, disable_env_checker=True, **kwargs)
  if not callable(entry):
    entry = gymnasium.envs.registration.load_env_creator(entry)
  other = copy.copy(spec)
  other.entry_point = _Creator(entry, env_id)
  env = gymnasium.make(other, disable_env_checker=True, **kwargs)
  made: Any = env.unwrapped.spec
  made.entry_point = spec.entry_point
  return env


def _make_gym(env_id, kwargs, render_mode=None):
  """Create an environment that is registered with gym."""
  bullet = 'Bullet' in env_id
  found = registry.all_ids_of_gym() if bullet else registry.ids_of_gym()
  spec = found.get(env_id.rpartition(':')[2])
  when = 'in its module or constructor'
  with quiet.quietly(), guard.explained(env_id, when):
    import gym
    from gym.envs import registration

    try:
      entry = spec and spec.entry_point
      if isinstance(entry, str):
        entry = registration.load(entry)
      if render_mode and interfaces.takes(entry, 'render_mode', False):
        kwargs = {**kwargs, 'render_mode': render_mode}
      return GymEnv(gym.make(env_id, disable_env_checker=True, **kwargs))
    except gym.error.Error as error:
      raise errors.UsageError(
        f'Cannot create environment {env_id!r}: {error}'
      ) from None


class _OwnProcess(hosts.RemoteEnv):
  """PyBullet environment that cannot share a process with others.

  The Kuka environments act in the first world of their process, and clear it at
  each reset.
  """

  def __init__(self, env_id, kwargs):
    create = lambda: with_own_randomness(_make_gym(env_id, kwargs))
    super().__init__(hosts.EnvHost(create, 'process'))

  @property
  def unwrapped(self):
    return self

  def seed(self, seed):
    super().seed(seed)
    self.action_space.seed(seed)


def _choose_opengl(env):
  """Let MuJoCo find OpenGL before the first image of an environment."""
  if env.render_mode != 'rgb_array':
    return
  if wraps_dm_control(env):
    _prepare_dm_control(env)
  elif uses_mujoco(env):
    opengl.select_backend()


def _prepare_dm_control(env):
  opengl.prepare(guard.find_name(env))
  # dm_control has chosen how to render when it was imported.
  importlib.reload(importlib.import_module('dm_control._render'))


def _find_random(env):
  """Return the generator of an environment of dm_control, None if unknown."""
  task = getattr(env, 'task', None)
  for owner, name in (env, 'random_state'), (task, 'random'):
    if isinstance(found := getattr(owner, name, None), np.random.RandomState):
      return found
  # A wrapper of the user need not forward everything.
  parts = getattr(env, '__dict__', {}).values()
  found = [_find_random(x) for x in parts if hasattr(x, 'action_spec')]
  return next((x for x in found if x is not None), None)


def _is_of_dm_control(env):
  return hasattr(env, 'action_spec') and hasattr(env, 'physics')


def wraps_dm_control(env: Any) -> bool:
  """Return whether an environment that was created steps one of dm_control."""
  inner = getattr(env, 'unwrapped', env)
  parts = getattr(inner, '__dict__', {}).values()
  return 'dm_control' in sys.modules and any(map(_is_of_dm_control, parts))


def uses_mujoco(env: Any) -> bool:
  """Return whether an environment that was created simulates with MuJoCo."""
  inner = getattr(env, 'unwrapped', env)
  data = guard.find_declared(inner, 'data', object)
  return type(data).__module__.startswith('mujoco')
