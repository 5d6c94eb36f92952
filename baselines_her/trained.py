"""A trained HER agent, without its training.

Example:

  import baselines_her

  with baselines_her.load('logs/reach') as agent:
    print(baselines_her.evaluate(agent, episodes=10).success_rate)
"""

import os

import numpy as np

from agents.envs import contract, spaces, wrappers
from agents.evaluation import TrainedAgent
from agents.run import errors, references
from baselines_her import envs, policies, util


class HER(TrainedAgent):
  """Trained HER agent, loaded from a saved policy; it has no state.

  Unpickling can run arbitrary code; only name `.pkl` files that you trust.

  Args:
    path: Folder of a run, for its best policy, or a file such as
      `policies/policy_best.pkl`.
    noise_eps: Standard deviation of the exploration noise, as a fraction of the
      maximum action; only for `predict` with `deterministic=False`. By default
      that of the training.
    random_eps: Probability of a random action, likewise.
    trust: Your modules that the policy may import: a name or a list of names.

  Attributes:
    policy: `DDPG` agent.

  Raises:
    UsageError: If there is no policy or it cannot be read.
  """

  def __init__(
    self,
    path: str | os.PathLike[str],
    noise_eps: float | None = None,
    random_eps: float | None = None,
    trust: references.Trusted = None,
  ) -> None:
    super().__init__()
    self.policy = policy = policies.load(path, trust)
    settings = policy.settings
    self._exploration = {
      'noise_eps': settings.noise_eps if noise_eps is None else noise_eps,
      'random_eps': settings.random_eps if random_eps is None else random_eps,
    }
    self._max_length = policy.T
    self.logdir, self._sess = policies.find_run(path), policy.sess
    sizes = zip(contract.GOAL_KEYS, (policy.dimo, policy.dimg, policy.dimg))
    self.observation_space = spaces.dictionary(
      {key: spaces.box([-np.inf] * x, [np.inf] * x) for key, x in sizes}
    )
    if plain := policy.info.get('action_space'):
      self.action_space = spaces.from_plain(plain)
    else:
      limit = np.broadcast_to(policy.max_u, [policy.dimu])
      self.action_space = spaces.box(-limit, limit)
    self._fit = spaces.fitting(self.action_space)

  def _make_env(self, render_mode=None):
    name = self.policy.info['env_name']
    return wrappers.Guard(envs.make(name, render_mode, self.policy.T), name)

  def save(self, folder: str) -> None:
    folder = self._create(folder)
    policies.save_plain(self.policy, os.path.join(folder, 'policy'))

  def _define_policy(self):
    from agents.tools import exporting
    from agents.tools.tf1 import tf

    policy, space = self.policy, self.action_space
    settings, net = policy.settings, policy.main
    relative = settings.relative_goals
    if relative and policy.subtract_goals is not util.simple_goal_subtract:
      raise errors.UsageError(
        'Goals of this policy are subtracted by a function of its training, '
        'which is not part of its graph, so it cannot be exported.'
      )
    place = exporting.freeze(policy.sess, [net.pi_tf])

    def define(narrow):
      sizes = zip(contract.GOAL_KEYS, (policy.dimo, policy.dimg, policy.dimg))
      inputs = {k: tf.placeholder(tf.float32, [None, x], k) for k, x in sizes}
      o, ag, g = (inputs[key] for key in contract.GOAL_KEYS)
      limit, most = settings.clip_obs, policy.max_u
      o, g = (
        tf.clip_by_value(x, -limit, limit)
        for x in (o, g - ag if relative else g)
      )
      (action,) = place({net.o_tf: o, net.g_tf: g})
      ones = np.ones(policy.dimu, np.float32)
      action = exporting.clip(action, -most * ones, most * ones)
      outputs = {'action': exporting.fit(action, space, narrow)}
      return exporting.Signature(inputs, outputs)

    return define

  def _act(self, observation, states, deterministic):
    parts = [observation[key] for key in contract.GOAL_KEYS]
    exploration = {} if deterministic else self._exploration
    actions = self.policy.get_actions(*parts, **exploration)
    # The original drops the axis of a single row.
    return self._fit(np.reshape(actions, [-1, self.policy.dimu])), None


load = HER
