"""Goal environments by id; does not import TensorFlow.

`make` is the only function that creates an environment by id.
"""

import types
from typing import Any

import numpy as np

from agents.envs import adapters, check, spaces
from agents.envs.wrappers import Wrapper
from agents.run import errors


class GoalEnv(Wrapper):
  """Goal environment with the old four-tuple interface.

  Args:
    env: Environment of `agents.envs.adapters`.
    env_id: Id that the user asked for.
  """

  def __init__(self, env: Any, env_id: str):
    super().__init__(env)
    self._max_episode_steps = check.find_time_limit(env)
    self.spec = types.SimpleNamespace(
      id=env_id, max_episode_steps=self._max_episode_steps
    )
    # As the original environments declared them.
    parts = env.observation_space.spaces
    boxes = {key: parts[key] for key in check.GOAL_KEYS}
    self.observation_space = spaces.dictionary(
      {key: spaces.box(x.low, x.high) for key, x in boxes.items()}
    )
    self.action_space = env.action_space
    # Bound once, as the environment is stepped millions of times.
    self.step, self.reset = env.step, env.reset  # type: ignore[method-assign]
    spec = getattr(env, 'spec', None)
    name = getattr(spec, 'id', env_id)
    self._row_by_row = name.startswith(check.REWARD_ROW_BY_ROW)

  def compute_reward(
    self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: dict
  ) -> Any:
    """Return rewards [batch] of goals [batch, size] and a dict of arrays."""
    # Third parties name the second argument differently, and wrappers do not
    # forward the method.
    compute = self._env.unwrapped.compute_reward
    if not self._row_by_row or np.ndim(achieved_goal) < 2:
      return compute(achieved_goal, desired_goal, info)
    rows = zip(achieved_goal, desired_goal)
    return np.array([compute(a, d, info) for a, d in rows])

  def get_state(self) -> dict:
    """Return the state that determines future episodes, to continue exactly.

    Returns:
      Dict of plain data: random state and, for MuJoCo, the state of the
      simulator.
    """
    inner = self._env.unwrapped
    state = {'random': inner.np_random.bit_generator.state}
    # Whether MuJoCo moves it.
    if type(getattr(inner, 'data', None)).__module__.startswith('mujoco'):
      import mujoco

      kind = mujoco.mjtState.mjSTATE_INTEGRATION
      state['simulator'] = np.empty(mujoco.mj_stateSize(inner.model, kind))
      mujoco.mj_getState(inner.model, inner.data, state['simulator'], kind)
    return state

  def set_state(self, state: dict) -> None:
    """Restore the result of `get_state`; reset the environment first."""
    inner = self._env.unwrapped
    inner.np_random.bit_generator.state = state['random']
    if 'simulator' in state:
      import mujoco

      kind = mujoco.mjtState.mjSTATE_INTEGRATION
      mujoco.mj_setState(inner.model, inner.data, state['simulator'], kind)
      mujoco.mj_forward(inner.model, inner.data)


def find_time_limit(env_id: str) -> int | None:
  """Return the number of steps of an episode, None if it is unknown."""
  import gymnasium

  try:
    return gymnasium.spec(adapters.resolve(env_id)[1]).max_episode_steps
  except (errors.UsageError, gymnasium.error.Error, ImportError):
    return None


def make(
  env_id: Any, render_mode: str | None = None, time_limit: int | None = None
) -> GoalEnv:
  """Create a goal environment.

  Args:
    env_id: Id of gymnasium; old ones resolve to the maintained version. Or
      another value that `adapters.create` accepts, which has its own mode and
      time limit.
    render_mode: Mode of `render`, None for no images. MuJoCo's images need a
      process without TensorFlow.
    time_limit: Number of steps of an episode; by default that of the id.

  Raises:
    UsageError: If the id is unknown, a package is missing, or the environment
      has no goals or cannot render.
    EnvError: If its constructor fails; includes the traceback.
  """
  limit = {'max_episode_steps': time_limit} if time_limit else {}
  env, name = (
    adapters.create(env_id, render_mode, **limit),
    adapters.name_of(env_id),
  )
  check.check_spaces(env, name, 'her')
  return GoalEnv(env, name)


def resolve(env_id: str) -> str:
  """Return the current id for an id.

  Raises:
    UsageError: If the id is unknown.
  """
  return adapters.resolve(env_id)[1]


def base_name(env_id: str) -> str:
  """Return the id without its version, under which settings are found."""
  name = env_id.strip('<>')
  return name.rpartition('-v')[0] or name
