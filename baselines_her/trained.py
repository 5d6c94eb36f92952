"""A trained HER agent, without its training.

Example:

  import baselines_her

  with baselines_her.load('logs/reach') as agent:
    print(baselines_her.evaluate(agent, episodes=10).success_rate)
"""

import os

import numpy as np

from agents.envs import check, spaces
from agents.evaluation import TrainedAgent
from agents.run import references
from baselines_her import envs, policies


class HER(TrainedAgent):
  """Trained HER agent, loaded from a saved policy; it has no state.

  Unpickling can run arbitrary code; only name `.pkl` files that you trust.

  Args:
    path: Folder of a run, for its best policy, or a file such as
      `policies/policy_best.pkl`.
    noise_eps: Standard deviation of the exploration noise, as a fraction of the
      maximum action; only for `predict` with `deterministic=False`.
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
    noise_eps: float = 0.2,
    random_eps: float = 0.3,
    trust: references.Trusted = None,
  ) -> None:
    super().__init__()
    self._exploration = {'noise_eps': noise_eps, 'random_eps': random_eps}
    self.policy = policy = policies.load(path, trust)
    self.logdir, self._sess = policies.find_run(path), policy.sess
    sizes = zip(check.GOAL_KEYS, (policy.dimo, policy.dimg, policy.dimg))
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
    return envs.make(self.policy.info['env_name'], render_mode, self.policy.T)

  def save(self, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    policies.save_plain(self.policy, os.path.join(folder, 'policy'))

  def _act(self, observation, states, deterministic):
    parts = [observation[key] for key in check.GOAL_KEYS]
    exploration = {} if deterministic else self._exploration
    actions = self.policy.get_actions(*parts, **exploration)
    # The original drops the axis of a single row.
    return self._fit(np.reshape(actions, [-1, self.policy.dimu])), None


load = HER
