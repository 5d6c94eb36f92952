"""Compare HER with openai/baselines: batches, single updates, whole trainings.

Both sides store the same episodes of FetchReach and use the same random numbers
to sample batches. The original trains; ours repeats some of its updates from
the same weights and moments. Over many updates, rounding errors grow in both.
"""

import os
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.originals import her_training
from tests.originals.cases import Case, largest, relative, relative_norm

ORIGINAL = 'baselines/her/ddpg.py'
COMMIT = 'ea25b9e'  # 2020-01-31
_EPISODES, _DEMOS, _STEPS = 40, 10, 50
_UPDATES, _CYCLE = 80, 40
# Updates that ours repeats, starting at 1; targets change after whole cycles.
_REPEATED = 1, 2, 10, 40, 41, 60, 80
_SETTINGS: dict[str, dict] = {
  'plain': {},
  'bc': {'bc_loss': 1, 'q_filter': 0, 'num_demo': _DEMOS},
  'q_filter': {'bc_loss': 1, 'q_filter': 1, 'num_demo': _DEMOS},
  'limits': {
    'relative_goals': True,
    'clip_obs': 0.3,
    'norm_clip': 1,
    'max_u': 0.7,
    'polyak': 0.9,
  },
  # Half of the stored steps, so that episodes replace others.
  'full_buffer': {'buffer_size': _EPISODES * _STEPS // 2},
}
_PARTS = 'main/Q/', 'main/pi/', 'target/'


def run(side: str, clone: str, out: str) -> None:
  """Store episodes and train with one side.

  Args:
    side: `original`, which must run first, or `ours`.
    clone: Folder of the original.
    out: Folder for the files that `compare` reads.
  """
  lib = _find_libraries(side, clone)
  episodes, demos = _read_episodes(out)
  for case in _SETTINGS:
    _train(lib, side, case, episodes, demos, out)
  her_training.run(side, clone, out)


def compare(out: str) -> Iterator[Case]:
  """Yield the cases of each group of settings."""
  for case in _SETTINGS:
    original, ours = (
      dict(np.load(_path(out, f'{side}-{case}')))
      for side in ('original', 'ours')
    )
    for words, prefix, limit in (
      ('sampled batches', 'batch', 0.0),
      ('statistics of the normalizers', 'stats', 0.0),
      ('actions and values', 'acts', 1e-6),
      ('losses and Q', 'loss', 2e-6),
    ):
      found = [x for x in original if x.startswith(prefix)]
      difference = largest(relative(original[x], ours[x]) for x in found)
      numbers = sum(original[x].size for x in found)
      yield Case(f'{case}: {words}', numbers, difference, limit)
    for part in _PARTS:
      found = [x for x in original if x.startswith('change') and part in x]
      pairs = [(original[x], ours[x]) for x in found]
      difference = largest(relative_norm(a, b) for a, b in pairs)
      numbers = sum(a.size for a, _ in pairs)
      yield Case(f'{case}: change of {part}', numbers, difference, 2e-5)
  yield from her_training.compare(out)


def _path(out, name):
  return os.path.join(out, name + '.npz')


def _find_libraries(side, clone):
  if side == 'original':
    from tests.originals import her_original

    tf = her_original.prepare(clone)
    from baselines.her.experiment import config
  else:
    from agents.tools.tf1 import tf
    from baselines_her import config
  return types.SimpleNamespace(tf=tf, config=config)


def _read_episodes(out):
  """Return random episodes [1, time, size] and demonstrations.

  The first side records both in the real environment.

  Returns:
    Tuple of a list of dicts and the path of the file of demonstrations.
  """
  demos, path = _path(out, 'demos'), _path(out, 'episodes')
  if not os.path.exists(path):
    import gymnasium
    import gymnasium_robotics  # noqa: F401, registers its environments

    env = gymnasium.make('FetchReach-v4')
    rng = np.random.RandomState(0)
    env.reset(seed=0)
    played = [_play(env, rng, False) for _ in range(_EPISODES)]
    rows: dict[str, Any] = {k: [x[k] for x in played] for k in played[0]}
    np.savez(path, **rows)
    _write_demos(demos, [_play(env, rng, True) for _ in range(_DEMOS)])
  with np.load(path) as data:
    found = {key: data[key] for key in data}
  one_by_one = [
    {key: value[index : index + 1] for key, value in found.items()}
    for index in range(_EPISODES)
  ]
  return one_by_one, demos


def _play(env, rng, towards_goal):
  """Play an episode as long as a rollout of the original."""
  episode: dict[str, list] = {
    x: [] for x in ('o', 'ag', 'g', 'u', 'info_is_success')
  }
  observation, _ = env.reset()
  for step in range(_STEPS):
    episode['o'].append(observation['observation'])
    episode['ag'].append(observation['achieved_goal'])
    if step == _STEPS - 1:
      break
    action = rng.uniform(-1, 1, 4)
    if towards_goal:
      way = observation['desired_goal'] - observation['achieved_goal']
      action[:3] = np.clip(8 * way, -1, 1)
    episode['g'].append(observation['desired_goal'])
    episode['u'].append(action)
    observation, _, _, _, info = env.step(action.astype(np.float32))
    episode['info_is_success'].append([info['is_success']])
  return {key: np.array(x, np.float32) for key, x in episode.items()}


def _write_demos(path, episodes):
  """Write demonstrations in the format of the original."""
  observations = np.empty((_DEMOS, _STEPS), object)
  infos = np.empty((_DEMOS, _STEPS - 1), object)
  for index, episode in enumerate(episodes):
    for step in range(_STEPS):
      observations[index, step] = {
        'observation': episode['o'][step],
        'achieved_goal': episode['ag'][step],
        'desired_goal': episode['g'][0],
      }
    for step in range(_STEPS - 1):
      success = episode['info_is_success'][step, 0]
      infos[index, step] = {'is_success': success}
  actions = np.stack([x['u'] for x in episodes])
  np.savez(path, acs=actions, obs=observations, info=infos)


def _make_agent(lib, settings):
  """Create an agent in the same way as `learn` of both sides."""
  params = {
    **lib.config.DEFAULT_PARAMS,
    'env_name': 'FetchReach-v1',
    'replay_strategy': 'future',
    **settings,
  }
  params = lib.config.prepare_params(params)
  params['rollout_batch_size'] = 1
  dims = lib.config.configure_dims(params)
  return lib.config.configure_ddpg(dims=dims, params=params, clip_return=True)


def _train(lib, side, case, episodes, demos, out):
  """Update an agent; save or restore its state around some updates."""
  tf, threads = lib.tf, {}
  threads['intra_op_parallelism_threads'] = 1
  threads['inter_op_parallelism_threads'] = 1
  results: dict[str, Any] = {}
  with (
    tf.Graph().as_default(),
    tf.Session(config=tf.ConfigProto(**threads)) as sess,
  ):
    # Else the weights differ, and with them how far rounding leads.
    tf.set_random_seed(0)
    agent = _make_agent(lib, _SETTINGS[case])
    variables = {
      x.name: x
      for x in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, 'ddpg/')
    }
    if case == 'limits':
      # Make some targets reach the lowest return.
      bias = variables['ddpg/target/Q/_3/bias:0']
      bias.load(sess.run(bias) - 50.5, sess)
    np.random.seed(1)
    if _SETTINGS[case].get('bc_loss'):
      agent.init_demo_buffer(demos)
    for episode in episodes:
      agent.store_episode({k: x.copy() for k, x in episode.items()})
    for name in variables:
      if '_stats/' in name:
        results[f'stats {name}'] = sess.run(variables[name])
    losses = {
      'critic': agent.Q_loss_tf,
      'actor': agent.pi_loss_tf,
      'Q': agent.main.Q_tf,
    }
    np.random.seed(2)
    for index in range(1, _UPDATES + 1):
      batch = agent.sample_batch()
      for key, value in enumerate(batch):
        results[f'batch {index} {key}'] = value
      if side == 'ours' and index not in _REPEATED:
        continue
      before = _path(out, f'before-{case}-{index}')
      if side == 'ours':
        _restore(sess, agent, variables, np.load(before))
      elif index in _REPEATED:
        np.savez(before, **_keep(sess, agent, variables))
      start = sess.run(variables)
      if index in _REPEATED:
        results.update(_act(agent, episodes[0], index))
        agent.stage_batch(batch)
        for name, value in sess.run(losses).items():
          results[f'loss {index} {name}'] = value
      agent.stage_batch(batch)
      agent.train(stage=False)
      if index % _CYCLE == 0:
        agent.update_target_net()
      for name, value in sess.run(variables).items():
        change = value - start[name]
        if index in _REPEATED and change.any():
          results[f'change {index} {name}'] = change
  np.savez(_path(out, f'{side}-{case}'), **results)


def _act(agent, episode, index):
  """Return actions and values with noise from fixed random numbers."""
  state = np.random.get_state()
  np.random.seed(3)
  inputs = [episode[key][0, :40] for key in ('o', 'ag', 'g')]
  noise = {'noise_eps': 0.2, 'random_eps': 0.3}
  actions, values = agent.get_actions(*inputs, compute_Q=True, **noise)
  np.random.set_state(state)
  return {f'acts {index} u': actions, f'acts {index} Q': values}


def _keep(sess, agent, variables):
  """Return weights and moments of Adam in the units of the original."""
  moments = {
    f'{name} {part}': getattr(adam, part)
    for name, adam in (('Q', agent.Q_adam), ('pi', agent.pi_adam))
    for part in ('m', 'v', 't')
  }
  return {**sess.run(variables), **moments}


def _restore(sess, agent, variables, values):
  """Restore the state that the original saved."""
  for name, variable in variables.items():
    variable.load(values[name].reshape(variable.shape.as_list()), sess)
  for name, adam in (('Q', agent.Q_adam), ('pi', agent.pi_adam)):
    slots = []
    # Our fused operation stores multiples of the moments.
    for part, factor in (('m', adam._m_factor), ('v', adam._v_factor)):
      sizes = [x.shape.num_elements() for x in adam.var_list]
      flat = np.float32(values[f'{name} {part}'] * np.float32(factor))
      pieces = np.split(flat, np.cumsum(sizes)[:-1])
      slots += [
        x.reshape(y.shape.as_list()) for x, y in zip(pieces, adam.var_list)
      ]
    adam.set_slots([*slots, np.int64(values[f'{name} t'])])
