"""Goal environments; does not import TensorFlow."""

import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import adapters, contract, guard, registry, spaces
from agents.envs.wrappers import Wrapper
from agents.run import errors, random_state


class GoalEnv(Wrapper):
  """Goal environment with the old four-tuple interface.

  Args:
    env: Environment of `agents.envs.adapters`.
    env_id: Id that the user asked for.
  """

  def __init__(self, env: Any, env_id: str):
    super().__init__(env)
    self._max_episode_steps = contract.find_time_limit(env)
    self.spec = types.SimpleNamespace(
      id=env_id, max_episode_steps=self._max_episode_steps
    )
    # As the original environments declared them.
    parts = env.observation_space.spaces
    boxes = {key: spaces.vector_box(parts[key]) for key in contract.GOAL_KEYS}
    self.observation_space = spaces.dictionary(boxes)
    dtypes = [np.dtype(parts[key].dtype) for key in contract.GOAL_KEYS[1:]]
    self._whole = [x if x.kind in 'biu' else None for x in dtypes]
    self.action_space = env.action_space
    # Bound once, as the environment is stepped millions of times.
    self.step, self.reset = env.step, env.reset  # type: ignore[method-assign]
    spec = getattr(env, 'spec', None)
    name = getattr(spec, 'id', env_id)
    self._name = name
    self._row_by_row = name.startswith(contract.REWARD_ROW_BY_ROW)

  def compute_reward(
    self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: dict
  ) -> Any:
    """Return rewards [batch] of goals [batch, size] and a dict of arrays.

    The replay stores floats; bits and integers get the dtype of their space.

    Raises:
      EnvError: If the environment fails or does not return finite numbers.
    """
    # Third parties name the second argument differently. A wrapper that has
    # the method may change rewards; through others, adapters look further.
    compute = self._env.compute_reward
    if np.ndim(achieved_goal) < 2:
      return compute(achieved_goal, desired_goal, info)
    with guard.explained(self._name, 'in compute_reward'):
      # Copies, as the function may change what it is given.
      pairs = zip((achieved_goal, desired_goal), self._whole)
      goals = [np.array(goal, dtype) for goal, dtype in pairs]
      if self._row_by_row:
        rewards = np.array([compute(a, d, info) for a, d in zip(*goals)])
      else:
        rewards = compute(*goals, info)
    guard.check_rewards(rewards, len(achieved_goal), self._name)
    return rewards

  def get_state(self) -> dict:
    """Return the state that determines future episodes, to continue exactly.

    Returns:
      Dict of plain data: random state, None if there is none, and for MuJoCo,
      the state of the simulator.
    """
    inner = self._env.unwrapped
    random = random_state.get_generator_state(inner)
    state: dict[str, Any] = {'random': random}
    if adapters.uses_mujoco(inner):
      import mujoco

      kind = mujoco.mjtState.mjSTATE_INTEGRATION
      state['simulator'] = np.empty(mujoco.mj_stateSize(inner.model, kind))
      mujoco.mj_getState(inner.model, inner.data, state['simulator'], kind)
    return state

  def set_state(self, state: dict) -> None:
    """Restore the result of `get_state`; reset the environment first."""
    inner = self._env.unwrapped
    random_state.set_generator_state(inner, state['random'])
    if 'simulator' in state:
      import mujoco

      kind = mujoco.mjtState.mjSTATE_INTEGRATION
      mujoco.mj_setState(inner.model, inner.data, state['simulator'], kind)
      mujoco.mj_forward(inner.model, inner.data)


def find_time_limit(env_id: str) -> int | None:
  """Return the number of steps of an episode, None if it is unknown."""
  try:
    return registry.find_entry(env_id).max_episode_steps
  except (errors.UsageError, errors.EnvError, LookupError):
    return None


def make(
  env_id: Any,
  render_mode: str | None = None,
  time_limit: int | None = None,
  settings: Mapping[str, Any] | None = None,
) -> GoalEnv:
  """Create a goal environment.

  Args:
    env_id: Id of gymnasium; old ones resolve to the maintained version. Or
      another value that `adapters.create` accepts, which has its own mode and
      time limit.
    render_mode: Mode of `render`, None for no images. MuJoCo's images need a
      process without TensorFlow.
    time_limit: Number of steps of an episode; by default that of the id.
    settings: Arguments of the environment.

  Raises:
    UsageError: If the id is unknown, a package is missing, or the environment
      has no goals or cannot render.
    EnvError: If its constructor fails; includes the traceback.
  """
  limit = {'max_episode_steps': time_limit} if time_limit else {}
  env = adapters.create(env_id, render_mode, **limit, **(settings or {}))
  name = adapters.name_of(env_id)
  contract.check_spaces(env, name, 'her')
  return GoalEnv(env, name)


def resolve(env_id: str) -> str:
  """Return the current id for an id, and names of functions as they are.

  Raises:
    UsageError: If the id is unknown.
  """
  if registry.find_function(env_id):
    return env_id
  return registry.resolve(env_id)[1]


def base_name(env_id: str) -> str:
  """Return the id without its version, under which settings are found."""
  name = env_id.strip('<>')
  return name.rpartition('-v')[0] or name
