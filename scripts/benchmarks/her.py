"""Benchmarks of HER: updates, and rollouts compared with the environment alone.

Both use one thread and the networks and batch size of the original.
"""

import contextlib

from scripts.benchmarks import common

_ENV = 'FetchReach-v4'
_STEPS = 50
_CYCLE = 40
_STORED = 50
# Also limits OpenBLAS and MKL.
_ONE_THREAD = {'OMP_NUM_THREADS': '1'}


@common.benchmark('updates', baseline='', environ=_ONE_THREAD)
def her_update(variant: str, updates: int = 400) -> common.Result:
  """DDPG updates with hindsight, batch 256, networks 3 x 256, one thread.

  Includes sampling; each execution makes 40 updates.
  """
  with _training() as (policy, worker):
    for _ in range(_STORED):
      policy.store_episode(worker.generate_rollouts())
    calls = max(1, updates // _CYCLE)
    return common.measure(lambda: policy.train_many(_CYCLE), calls, _CYCLE)


@common.benchmark('steps', environ=_ONE_THREAD)
def her_rollout(variant: str, episodes: int = 60) -> common.Result:
  """Steps of FetchReach with the policy; baseline: environment alone."""
  if variant == 'baseline':
    return common.measure(_define_bare_episode(), episodes, _STEPS)
  with _training() as (_, worker):
    return common.measure(worker.generate_rollouts, episodes, _STEPS)


def _define_bare_episode():
  """Return a function that plays in the environment without wrappers."""
  import gymnasium
  import gymnasium_robotics

  gymnasium.register_envs(gymnasium_robotics)
  env = gymnasium.make(_ENV, disable_env_checker=True)
  env.action_space.seed(0)
  actions = [env.action_space.sample() for _ in range(_STEPS)]
  env.reset(seed=0)

  def play():
    env.reset()
    for action in actions:
      env.step(action)

  return play


@contextlib.contextmanager
def _training():
  """Yield an agent with default settings and its rollout worker."""
  import numpy as np

  from agents.tools.tf1 import tf
  from baselines_her import (
    config,
    ddpg,
    logger,
    rollout,
    settings,
    tf_util,
    vec_env,
  )

  np.random.seed(0)
  tf.set_random_seed(0)
  logger.configure(format_strs=[])
  task = config.Task(_ENV)
  values = settings.Settings.make(_ENV, {}).complete(task.time_limit, 1)
  sampler = task.make_sampler(values)
  env = vec_env.make_vec_env(_ENV, 'robotics', 1, 0)
  with tf_util.single_threaded_session().as_default(), contextlib.closing(env):
    policy = ddpg.DDPG(values, task.dims, sample_transitions=sampler)
    yield policy, rollout.make_worker(policy, env, logger)
