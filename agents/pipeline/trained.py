"""A trained DDPG agent of a session, without its training.

Example:

  from agents import evaluation
  from agents.pipeline import trained

  with trained.load('sessions/session_x') as agent:
    print(evaluation.evaluate(agent, episodes=10).mean)
"""

import os
import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import spaces, wrappers
from agents.evaluation import TrainedAgent
from agents.pipeline import (
  checkpoints,
  ddpg,
  env_config,
  normalizers,
  runner,
  session,
  toolbox,
  worker,
)
from agents.run import errors, files, references


class DDPG(TrainedAgent):
  """Trained DDPG agent; its state is that of the exploration noise.

  Args:
    path: Session, for its newest checkpoint, or one of its checkpoints.
    trust: Your modules that the session may import: a name or a list of names.

  Raises:
    UsageError: If there is no checkpoint, or the session has other agents.
  """

  def __init__(
    self, path: str | os.PathLike[str], trust: references.Trusted = None
  ) -> None:
    super().__init__()
    self._path = files.absolute(path)
    trusted = ','.join(sorted(references.parse(trust).names))
    flags = ['--load-checkpoint', self._path, '--play', '--dry-run']
    flags += ['--log-level', '4', *(['--trust', trusted] if trusted else [])]
    self._session = loaded = session.Session(flags)
    try:
      self._make_agent(loaded)
    except BaseException:
      loaded.discard()
      raise
    self.logdir, _ = loaded.loaded
    params = loaded.params['agents'][self._agent.name]['args']
    low, high = params['observation_space']['lim']
    self._key = params.get('observation_key', 'agent')
    self.observation_space = spaces.box(low, high)
    acted = self._agent.action_space
    low, high = acted['lim']
    self.action_space = spaces.box(low, high, acted.get('dtype', np.float32))
    self._fit = spaces.fitting(self.action_space)

  def _make_agent(self, loaded):
    nodes = loaded.params['agents']
    kinds = {x: toolbox.get_class(y['name']) for x, y in nodes.items()}
    found = [x for x, kind in kinds.items() if _is_ddpg(kind)]
    if len(nodes) != 1 or not found:
      names = ', '.join(x['name'] for x in nodes.values())
      raise errors.UsageError(
        f'The session {self._path} trains {names}; only sessions of a single '
        'DDPG agent can be loaded. Play others with agents-session --play.'
      )
    (name,) = nodes
    self._sess = sess = loaded.tf_session()
    with sess.graph.as_default(), sess.as_default():
      make = toolbox.get_part(nodes[name], f'agent {name!r}')
      more = runner.find_parts(nodes[name], name)
      self._agent = make(loaded, {}, name=name, **more)
      states, _ = loaded.load_states()
    settings = loaded.params['explorer']['eval']['args']
    self._env = settings['env']
    self._normalizer: Any = None
    if observed := states['normalizers'].get('observations'):
      self._normalizer = normalizers.ObservationNormalizer(
        settings.get('clip', 10.0)
      )
      self._normalizer.load_state_dict(observed)

  def _make_env(self, render_mode=None):
    env = env_config.make(self._env, bool(render_mode))
    return wrappers.Guard(env, self._env.get('name') or 'of the session')

  def save(self, folder: str) -> None:
    folder = self._create(folder)
    _, checkpoint = self._session.loaded
    name = os.path.basename(checkpoint)
    copy = os.path.join(folder, 'checkpoints', name)
    shutil.copytree(checkpoint, copy, dirs_exist_ok=True)
    for name in ('params.yaml', 'cpanel.json'):
      shutil.copy(os.path.join(self.logdir, name), folder)
    checkpoints.remove_memories(folder, '')

  def close(self) -> None:
    super().close()
    self._session.discard()

  def _read(self, observation):
    if isinstance(observation, Mapping):
      found = worker.flatten(observation)
      if self._key not in found:
        raise ValueError(
          f'The observation has no {self._key}, which the agent observes, but '
          f'{", ".join(found)}.'
        )
      observation = found[self._key]
    return super()._read(observation)

  def _initial_state(self):
    return np.zeros(self.action_space.shape)

  def _act(self, observation, states, deterministic):
    if self._normalizer:
      known = {self._key: observation}
      observation = self._normalizer.transform(known)[self._key]
    actions = self._agent.policy.act(observation)
    after = None
    if not deterministic:
      actions, after = self._agent.explore(actions, states)
    return self._fit(actions), after

  def _define_policy(self):
    from agents.tools import exporting
    from agents.tools.tf1 import tf

    policy = self._agent.policy
    if not isinstance(policy, ddpg.DDPGPolicy):
      raise errors.UsageError(
        f'The policy {type(policy).__name__} is not a DDPGPolicy, whose graph '
        'is known, so it cannot be exported.'
      )
    place = exporting.freeze(self._sess, [policy.chosen])
    normalizer = self._normalizer
    scaling = normalizer.scaling(self._key) if normalizer else ()
    _, size = policy.observed.shape.as_list()
    space = self.action_space

    def define(narrow):
      observed = tf.placeholder(tf.float32, [None, size], 'observation')
      scaled = observed
      if scaling:
        dtype = tf.float32 if narrow else tf.float64
        mean, scale, clip = scaling
        mean, scale = (tf.constant(x, dtype) for x in (mean, scale))
        scaled = (tf.cast(observed, dtype) - mean) / scale
        scaled = tf.cast(tf.clip_by_value(scaled, -clip, clip), tf.float32)
      (action,) = place({policy.observed: scaled})
      outputs = {'action': exporting.fit(action, space, narrow)}
      return exporting.Signature({'observation': observed}, outputs)

    return define


load = DDPG


def _is_ddpg(kind):
  return isinstance(kind, type) and issubclass(kind, ddpg.DDPGAgent)
