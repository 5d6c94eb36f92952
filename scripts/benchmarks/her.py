"""HER: updates, and rollouts against the bare environment.

Both on one thread, with the networks and the batch of the original.
"""

from typing import Any

import numpy as np

from scripts.benchmarks import common

_ENV = 'FetchReach-v4'
_STEPS = 50
_CYCLE = 40


def run_update(unused_variant: str, args: Any) -> dict[str, Any]:
  """Measure updates of critic and actor, 40 in one run, sampling included."""
  from baselines_her import tf_util

  with tf_util.single_threaded_session().as_default():
    policy, dims = _make_policy()
    dims = {**dims, 'ag': dims['g']}
    lengths = {'o': _STEPS, 'ag': _STEPS}
    for _ in range(200):
      policy.store_episode(
        {
          key: np.random.uniform(-1, 1, (1, lengths.get(key, _STEPS - 1), size))
          for key, size in dims.items()
        }
      )
    calls = args.updates // _CYCLE
    return common.measure(lambda: policy.train_many(_CYCLE), calls, _CYCLE)


def run_rollout(variant: str, args: Any) -> dict[str, Any]:
  """Measure steps with the policy, or with random actions and no policy."""
  if variant == 'baseline':
    return _run_bare(args)
  from baselines_her import logger, rollout, tf_util, vec_env

  with tf_util.single_threaded_session().as_default():
    policy, dims = _make_policy()
    logger.configure(format_strs=[])
    env = vec_env.make_vec_env(_ENV, 'robotics', 1, 0)
    values = policy.settings
    noise = {x: getattr(values, x) for x in ('noise_eps', 'random_eps')}
    worker = rollout.RolloutWorker(env, policy, dims, logger, _STEPS, **noise)
    result = common.measure(worker.generate_rollouts, args.episodes, _STEPS)
    env.close()
  return result


def _run_bare(args):
  """Measure the environment as the library makes it, reset once per episode."""
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

  return common.measure(play, args.episodes, _STEPS)


def _make_policy():
  """Return an agent of the default settings, and its sizes."""
  from agents.tools.tf1 import tf
  from baselines_her import config, ddpg, settings

  np.random.seed(0)
  tf.set_random_seed(0)
  task = config.Task(_ENV)
  values = settings.Settings.make(_ENV, {}).complete(task.time_limit, 1)
  sampler = task.make_sampler(values)
  policy = ddpg.DDPG(values, task.dims, sample_transitions=sampler)
  return policy, task.dims


def _one_thread(unused_variant):
  names = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')
  return dict.fromkeys(names, '1')


ALL = [
  common.Benchmark(
    'her-update',
    'DDPG updates with hindsight, batch 256, networks 3 x 256, one thread',
    'updates',
    run_update,
    [('updates', 400, 'number of updates')],
    _one_thread,
    baseline=False,
  ),
  common.Benchmark(
    'her-rollout',
    f'steps of {_ENV} with the policy; baseline: bare environment',
    'steps',
    run_rollout,
    [('episodes', 60, 'number of episodes')],
    _one_thread,
  ),
]
