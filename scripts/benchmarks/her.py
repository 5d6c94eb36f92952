"""HER: updates against the original's formulation, rollouts against nothing.

Both on one thread, with the networks and the batch of the original.
"""

import argparse
import os
from typing import Any

import numpy as np

from scripts.benchmarks import common

_ENV = 'FetchReach-v4'
_DIMS = {'o': 10, 'u': 4, 'g': 3, 'info_is_success': 1}
_T = 50
_CYCLE = 40
_WARM_UP = 40


def run_update(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Updates of critic and actor, sampling included.

  Ours does the 40 updates of a cycle in one run of the graph, with Adam in
  it. The baseline is the original's formulation: one run per update for
  losses and flat gradients, then Adam in NumPy, which reads and writes all
  weights.
  """
  from agents.tools.tf1 import tf
  from baselines_her import tf_util

  np.random.seed(0)
  tf.set_random_seed(0)
  with tf_util.single_threaded_session().as_default():
    policy = _make_policy()
    update: Any = _Baseline(policy).update if variant == 'baseline' else None
    work = {
      'ours': lambda: policy.train_many(_CYCLE),
      'baseline': lambda: [update() for _ in range(_CYCLE)],
    }[variant]
    for _ in range(_WARM_UP // _CYCLE):
      work()
    with common.Measurement() as measurement:
      for _ in range(args.updates // _CYCLE):
        work()
      measurement.units = args.updates // _CYCLE * _CYCLE
  return measurement


def run_rollout(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Steps of one environment, with the policy or with random actions."""
  if variant == 'baseline':
    return _run_bare(args)
  from agents.tools.tf1 import tf
  from baselines_her import config, logger, rollout, tf_util, vec_env

  np.random.seed(0)
  tf.set_random_seed(0)
  with tf_util.single_threaded_session().as_default():
    policy = _make_policy()
    logger.configure(format_strs=[])
    env = vec_env.make_vec_env(_ENV, 'robotics', 1, 0)
    worker = rollout.RolloutWorker(
      env,
      policy,
      _DIMS,
      logger,
      _T,
      noise_eps=config.DEFAULT_PARAMS['noise_eps'],
      random_eps=config.DEFAULT_PARAMS['random_eps'],
    )
    worker.generate_rollouts()
    with common.Measurement() as measurement:
      for _ in range(args.episodes):
        worker.generate_rollouts()
      measurement.units = args.episodes * _T
    env.close()
  return measurement


def _run_bare(args):
  """The environment as the library makes it, reset once per episode."""
  import gymnasium
  import gymnasium_robotics

  gymnasium.register_envs(gymnasium_robotics)
  env = gymnasium.make(_ENV, disable_env_checker=True)
  env.action_space.seed(0)
  actions = [env.action_space.sample() for _ in range(_T)]
  env.reset(seed=0)
  with common.Measurement() as measurement:
    for _ in range(args.episodes):
      env.reset()
      for action in actions:
        env.step(action)
    measurement.units = args.episodes * _T
  env.close()
  return measurement


def _make_policy():
  """Agent of the default settings, with some episodes to learn from."""
  from baselines_her import config, ddpg, her_sampler

  params = dict(config.DEFAULT_PARAMS, buffer_size=50000)
  for name in (
    'n_cycles',
    'n_batches',
    'n_test_rollouts',
    'test_with_polyak',
    'random_eps',
    'noise_eps',
    'replay_strategy',
    'replay_k',
    'rollout_batch_size',
  ):
    del params[name]
  policy = ddpg.DDPG(
    **params,
    input_dims=_DIMS,
    T=_T,
    rollout_batch_size=1,
    subtract_goals=config.simple_goal_subtract,
    clip_pos_returns=True,
    clip_return=50.0,
    sample_transitions=her_sampler.make_sample_her_transitions(
      'future', 4, _reward
    ),
    gamma=0.98,
  )
  lengths = {'o': _T, 'ag': _T}
  sizes = dict(_DIMS, ag=_DIMS['g'])
  for _ in range(200):
    policy.store_episode(
      {
        key: np.random.uniform(-1, 1, (1, lengths.get(key, _T - 1), size))
        for key, size in sizes.items()
      }
    )
  return policy


def _reward(ag_2, g, info):
  del info
  return -(np.linalg.norm(ag_2 - g, axis=-1) > 0.05).astype(np.float32)


class _Baseline:
  """The original's update: gradients to NumPy, Adam there, weights back."""

  def __init__(self, policy):
    from baselines_her import tf_util

    self._policy = policy
    self._fetches = [
      policy.Q_loss_tf,
      policy.main.Q_pi_tf,
      policy.Q_grad_tf,
      policy.pi_grad_tf,
    ]
    self._adams = []
    for adam in (policy.Q_adam, policy.pi_adam):
      get = tf_util.GetFlat(adam.var_list, policy.sess)
      put = tf_util.SetFromFlat(adam.var_list, policy.sess)
      zeros = np.zeros(len(get()), np.float32)
      self._adams.append((get, put, zeros.copy(), zeros.copy()))
    self._t = 0

  def update(self):
    self._policy.stage_batch()
    results = self._policy.sess.run(self._fetches)
    self._t += 1
    rate = 0.001 * np.sqrt(1 - 0.999**self._t) / (1 - 0.9**self._t)
    for (get, put, m, v), gradient in zip(self._adams, results[2:]):
      # The original copies the gradient, as if to sum over ranks.
      total = np.zeros_like(gradient)
      np.copyto(total, gradient)
      m[:] = 0.9 * m + 0.1 * total
      v[:] = 0.999 * v + 0.001 * (total * total)
      put(get() + (-rate) * m / (np.sqrt(v) + 1e-8))


def _one_thread(unused_variant, unused_args):
  return {
    name: '1'
    for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')
    if name not in os.environ
  }


def _add_updates(parser):
  parser.add_argument(
    '--updates', type=int, default=400, help='number of updates'
  )


def _add_episodes(parser):
  parser.add_argument(
    '--episodes', type=int, default=60, help='number of episodes'
  )


SUBJECTS = [
  common.Subject(
    'her-update',
    'DDPG updates with hindsight, batch 256, networks 3 x 256, one thread; '
    'the baseline runs the graph per update and Adam in NumPy',
    'updates',
    run_update,
    _add_updates,
    _one_thread,
  ),
  common.Subject(
    'her-rollout',
    f'steps of one {_ENV} with the policy; the baseline is the bare '
    'environment with random actions',
    'steps',
    run_rollout,
    _add_episodes,
    _one_thread,
  ),
]
