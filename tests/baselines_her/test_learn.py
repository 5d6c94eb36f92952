"""Whole trainings on the toy task against recorded ones, and interrupted."""

import json
import os
import types

import joblib
import numpy as np
import pytest

from agents.run import errors, stopping
from agents.tools.tf1 import tf
from baselines_her import checkpoints, config, her, logger, rollout, tf_util
from baselines_her.ddpg import DDPG
from tests import golden
from tests.baselines_her import toy

SMALL = {
  'n_cycles': 2,
  'n_batches': 3,
  'batch_size': 8,
  'hidden': 8,
  'layers': 1,
  'buffer_size': 200,
  'n_test_rollouts': 2,
}


def learn(folder, total_timesteps=60, seed=1, num_envs=1, **kwargs):
  """Train on the toy task in a fresh graph; returns values of variables."""
  kwargs.setdefault('override_params', SMALL)
  with tf.Graph().as_default(), toy.session():
    with logger.scoped_configure(str(folder), ['json', 'csv']):
      policy = her.learn(
        network='mlp',
        env=toy.vec_env(10, range(num_envs)),
        total_timesteps=total_timesteps,
        seed=seed,
        **kwargs,
      )
    variables = tf.global_variables()
    return dict(zip([x.name for x in variables], policy.sess.run(variables)))


def rows(folder):
  return logger.read_json(os.path.join(str(folder), 'progress.json'))


@pytest.mark.parametrize(
  'name', ['learn_1env', 'learn_3env_relative', 'learn_kwargs']
)
def test_recorded(name, tmp_path, monkeypatch):
  """learn_*.npz: rollouts, log, replay, random numbers and weights of a run."""
  data = toy.load(name)
  meta = data.meta
  names = list(data['var_names'])
  toy.use_toy(monkeypatch, meta['max_episode_steps'])
  rollouts, generate = [], rollout.RolloutWorker.generate_rollouts

  def recording(worker):
    episode = generate(worker)
    Q = worker.Q_history[-1] if worker.compute_Q else np.nan
    rollouts.append((worker.exploit, episode, worker.success_history[-1], Q))
    return episode

  monkeypatch.setattr(rollout.RolloutWorker, 'generate_rollouts', recording)
  weights = str(tmp_path / 'weights')
  with tf.Graph().as_default(), toy.session() as sess:
    for key in names:
      tf.get_variable(key[:-2], initializer=data['w_load.' + toy.key_of(key)])
    sess.run(tf.global_variables_initializer())
    tf_util.save_variables(weights)
  with tf.Graph().as_default(), toy.session() as sess:
    env = toy.vec_env(meta['max_episode_steps'], meta['env_seeds'])
    with logger.scoped_configure(str(tmp_path), ['json']):
      policy = her.learn(
        network='mlp',
        env=env,
        total_timesteps=meta['total_timesteps'],
        seed=meta['seed'],
        override_params=meta['override_params'],
        load_path=weights,
        **meta['learn_kwargs'],
      )
    following = np.random.uniform(size=3)
    final = toy.values(sess)
  np.testing.assert_array_equal(following, data['next_uniform'])
  assert [x.resets for x in env] == meta['resets_per_env']
  for key in ('hidden', 'batch_size', 'gamma', 'clip_return'):
    golden.assert_close(
      float(getattr(policy, key)), float(meta['effective_' + key]), rtol=1e-9
    )
  assert [x[0] for x in rollouts] == list(data['episode_is_eval'])
  for index in (0, 1, len(rollouts) - 1):
    for key in toy.EPISODE_KEYS:
      wanted = data[f'ep{index}_{key}']
      np.testing.assert_allclose(rollouts[index][1][key], wanted, **toy.RUN)
  golden.assert_close([x[2] for x in rollouts], data['episode_success'])
  golden.assert_close([x[3] for x in rollouts], data['episode_Q'], atol=1e-5)
  _check_end(data, policy, final, rows(tmp_path))
  params = json.loads((tmp_path / 'params.json').read_text())
  assert params['env_name'] == 'ToyPoint-v0'


def _check_end(data, policy, final, table):
  """Log, replay and weights of a recorded run."""
  meta, names = data.meta, list(data['var_names'])
  assert len(table) == meta['n_epochs']
  for row, wanted in zip(table, data['logs']):
    assert sorted(row) == list(data['logs_keys'])
    found = [row[key] for key in data['logs_keys']]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)
  held = meta['buffer_current_size_episodes']
  assert policy.buffer.current_size == held
  assert policy.buffer.size == meta['buffer_episodes']
  for key in toy.EPISODE_KEYS:
    stored = policy.buffer.buffers[key][:held]
    np.testing.assert_allclose(stored, data[f'buffer_{key}'], **toy.RUN)
  assert list(final) == names
  for key in names:
    wanted = data['w_final.' + toy.key_of(key)]
    np.testing.assert_allclose(final[key], wanted, **toy.RUN, err_msg=key)


def test_number_of_epochs(tmp_path, monkeypatch):
  """cmdline_logger.json: whole epochs of all environments of a rank."""
  seen = []
  monkeypatch.setattr(her, 'train', lambda **kwargs: seen.append(kwargs))
  cases = golden.load_json('her/cmdline_logger')['n_epochs']
  assert len(cases) == 6
  # Without a graph.
  monkeypatch.setattr(
    her,
    'DDPG',
    lambda values, dims, **_: types.SimpleNamespace(
      settings=values, input_dims=dims, T=values.T
    ),
  )
  for case in cases:
    toy.use_toy(monkeypatch, case['T'])
    with logger.scoped_configure(str(tmp_path), []):
      her.learn(
        network='mlp',
        env=toy.vec_env(case['T'], range(case['num_envs'])),
        total_timesteps=case['total_timesteps'],
        override_params={'n_cycles': case['n_cycles']},
      )
    assert seen[-1]['n_epochs'] == case['n_epochs']


def test_several_times_in_one_graph(tmp_path, monkeypatch):
  """Settings of one training do not leak; a second agent finds a place."""
  toy.use_toy(monkeypatch, 10)
  before = dict(config.DEFAULT_PARAMS)
  with tf.Graph().as_default(), toy.session():
    policies = []
    for index in range(2):
      with logger.scoped_configure(str(tmp_path / str(index)), ['json']):
        policies.append(
          her.learn(
            network='mlp',
            env=toy.vec_env(10, [0]),
            total_timesteps=20,
            seed=2,
            override_params=SMALL,
          )
        )
    assert policies[0].sess is not policies[1].sess
  assert config.DEFAULT_PARAMS == before
  assert rows(tmp_path / '0') == rows(tmp_path / '1')


def test_policies_are_written(tmp_path, monkeypatch):
  toy.use_toy(monkeypatch, 10)
  learn(
    tmp_path,
    save_path=str(tmp_path / 'a' / 'policies'),
    policy_save_interval=2,
  )
  assert sorted(os.listdir(tmp_path / 'a' / 'policies')) == [
    f'policy_{x}.{ending}'
    for x in ('0', '2', 'best', 'latest')
    for ending in ('json', 'npz', 'pkl')
  ]


def test_loaded_variables_become_a_policy(tmp_path, monkeypatch):
  """Without steps to train, such as those that Baselines wrote."""
  toy.use_toy(monkeypatch, 10)
  trained = learn(tmp_path / 'trained', 20)
  weights, policies = str(tmp_path / 'weights'), tmp_path / 'policies'
  joblib.dump(trained, weights)
  given = dict(seed=2, load_path=weights, save_path=str(policies))
  found = learn(tmp_path / 'loaded', 0, **given)
  for key, value in trained.items():
    np.testing.assert_array_equal(found[key], value, err_msg=key)
  endings = 'json', 'npz', 'pkl'
  names = [f'policy_{x}.{y}' for x in ('best', 'latest') for y in endings]
  assert sorted(os.listdir(policies)) == names
  with np.load(policies / 'policy_best.npz') as stored:
    held = {x.tobytes() for x in stored.values()}
  assert all(
    value.tobytes() in held
    for key, value in trained.items()
    if key.startswith('ddpg/main/pi')
  )
  wrong = joblib.load(weights)
  wrong['ddpg/o_stats/sum:0'] = np.zeros(5, np.float32)
  joblib.dump(wrong, weights)
  with pytest.raises(errors.UsageError, match=r'sum:0 of shape \(4,\); use'):
    learn(tmp_path / 'loaded', 0, **given)


def interrupt_after(monkeypatch, cycles):
  """Let the user ask to stop after some cycles."""
  left = [cycles]

  def requested():
    left[0] -= 1
    return left[0] == 0

  monkeypatch.setattr(stopping, 'requested', requested)


@pytest.mark.parametrize('cycles', [3, pytest.param(5, marks=pytest.mark.slow)])
def test_interrupted(cycles, tmp_path, monkeypatch):
  """Stopped within an epoch or between two, the end is the same to the bit."""
  toy.use_toy(monkeypatch, 10)
  kwargs = {'num_envs': 2, 'total_timesteps': 120}
  wanted = learn(tmp_path / 'whole', **kwargs)
  folder = str(tmp_path / 'checkpoints')
  with monkeypatch.context() as patch:
    interrupt_after(patch, cycles)
    with pytest.raises(stopping.StopRequested):
      learn(tmp_path / 'parts', checkpoint_dir=folder, **kwargs)
  assert len(rows(tmp_path / 'parts')) < 3
  found = learn(tmp_path / 'parts', checkpoint_dir=folder, **kwargs)
  for key, value in wanted.items():
    np.testing.assert_array_equal(found[key], value, err_msg=key)
  assert rows(tmp_path / 'parts') == rows(tmp_path / 'whole')
  # It is over now, unless it is to be longer.
  said = []
  with monkeypatch.context() as patch:
    patch.setattr(logger, 'warn', lambda *args: said.append(args[0]))
    again = learn(tmp_path / 'parts', checkpoint_dir=folder, **kwargs)
  (line,) = [x for x in said if 'Nothing to do: the run in' in x]
  assert 'has 120 environment' in line and 'total_env_steps to 160' in line
  for key, value in wanted.items():
    np.testing.assert_array_equal(again[key], value)


@pytest.mark.parametrize(
  'step, cycles', [(25, 2), pytest.param(55, 3, marks=pytest.mark.slow)]
)
def test_failing_environment(step, cycles, tmp_path, monkeypatch):
  """All cycles before are kept, whether it fails in one or in a test."""
  toy.use_toy(monkeypatch, 10)
  kwargs = {'checkpoint_dir': str(tmp_path / 'checkpoints')}
  left = [step]
  original = toy.ToyPoint.step

  def fail(self, action):
    left[0] -= 1
    if left[0] < 0:
      raise errors.EnvError('on purpose')
    return original(self, action)

  with monkeypatch.context() as patch:
    patch.setattr(toy.ToyPoint, 'step', fail)
    # The first checkpoint leaves no time for one that is not forced.
    patch.setattr(checkpoints, '_TIME_SHARE', 1e-9)
    with pytest.raises(errors.EnvError, match='on purpose'):
      learn(tmp_path, **kwargs)
  (*_, newest) = sorted(os.listdir(tmp_path / 'checkpoints'))[:-1]
  assert newest.rstrip('+') == f'{3 * cycles:09d}'
  learn(tmp_path, **kwargs)
  assert [x['epoch'] for x in rows(tmp_path)] == [0, 1, 2]


def test_other_settings_are_refused(tmp_path, monkeypatch):
  toy.use_toy(monkeypatch, 10)
  kwargs = {'checkpoint_dir': str(tmp_path / 'checkpoints')}
  learn(tmp_path, total_timesteps=20, **kwargs)
  with pytest.raises(errors.UsageError, match='hidden: 8 -> 16'):
    learn(tmp_path, override_params={**SMALL, 'hidden': 16}, **kwargs)
  params = tmp_path / 'params.json', tmp_path / 'checkpoints' / 'params.json'
  before = [x.read_text() for x in params]
  with pytest.raises(errors.UsageError, match='1 environments per rank'):
    other = {**SMALL, 'lr': 0.5}
    learn(tmp_path, num_envs=2, override_params=other, **kwargs)
  # What is refused does not count when the run is continued.
  assert [x.read_text() for x in params] == before
  with pytest.raises(errors.UsageError, match='gamma: None -> 0.5'):
    learn(tmp_path, gamma=0.5, **kwargs)
  with pytest.raises(errors.UsageError, match='seed: 1 -> 2'):
    learn(tmp_path, seed=2, **kwargs)


def test_time_limit(tmp_path, monkeypatch):
  """T counts for episodes, replay and number of epochs, not for gamma."""
  toy.use_toy(monkeypatch, 10)
  seen = []
  monkeypatch.setattr(
    her.Checkpoints, 'save', lambda self, *_, **__: seen.append(self._policy)
  )
  with tf.Graph().as_default(), toy.session():
    with logger.scoped_configure(str(tmp_path), ['json']):
      her.learn(
        network='mlp',
        env=toy.vec_env(6, [0]),
        total_timesteps=36,
        seed=1,
        override_params=SMALL,
        T=6,
      )
  assert len(rows(tmp_path)) == 3
  assert seen[0].buffer.buffers['o'].shape[1:] == (6, 4)
  assert seen[0].gamma == 0.9


def test_from_settings_to_agent_as_in_the_original(monkeypatch):
  """Functions of its `config`, which comparisons with it call."""
  toy.use_toy(monkeypatch, 10)
  given = {**config.DEFAULT_PARAMS, 'hidden': 8, 'layers': 1, 'lr': 0.5}
  params = config.prepare_params({**given, 'env_name': 'ToyPoint-v0'})
  dims = config.configure_dims(params)
  assert dims == {'o': 4, 'u': 2, 'g': 2, 'info_is_success': 1}
  with tf.Graph().as_default(), toy.session():
    policy = config.configure_ddpg(dims, params, clip_return=True)
  assert (policy.T, policy.gamma, round(policy.clip_return, 9)) == (10, 0.9, 10)
  assert policy.Q_lr == policy.pi_lr == 0.5 and params['_hidden'] == 8
  assert policy.buffer.sample_transitions.relabel_probability == 0.8


def test_values_without_limit(tmp_path, monkeypatch):
  """Without discounting nothing is clipped, if the user says so."""
  toy.use_toy(monkeypatch, 10)
  learn(tmp_path, total_timesteps=20, gamma=1, clip_return=False)
  with pytest.raises(errors.UsageError, match='clip_return=False'):
    learn(tmp_path, total_timesteps=20, gamma=1)


def test_infinite_weights_are_not_saved(tmp_path, monkeypatch):
  """The training stops; what was saved before is whole and stays."""
  toy.use_toy(monkeypatch, 10)
  kwargs = {
    'checkpoint_dir': str(tmp_path / 'checkpoints'),
    'save_path': str(tmp_path / 'policies'),
  }
  params = {**SMALL, 'lr': 1e38}
  with pytest.raises(errors.NotFinite, match='3 updates.*checkpoint: none'):
    learn(tmp_path, override_params=params, **kwargs)
  assert os.listdir(tmp_path / 'checkpoints') == ['params.json']
  assert not (tmp_path / 'policies').exists()
  learn(tmp_path, total_timesteps=20, **kwargs)
  before = (tmp_path / 'policies' / 'policy_best.npz').read_bytes()

  def diverge(self, unused_count):
    variable = tf.trainable_variables()[0]
    variable.load(np.full(variable.shape, np.nan), self.sess)

  with monkeypatch.context() as patch:
    patch.setattr(DDPG, 'train_many', diverge)
    with pytest.raises(errors.NotFinite, match=r'checkpoints/000000006\+?\.'):
      learn(tmp_path, **kwargs)
  assert (tmp_path / 'policies' / 'policy_best.npz').read_bytes() == before
  learn(tmp_path, **kwargs)


def test_settings_without_effect(tmp_path, monkeypatch):
  """As in the original, but with a warning; unknown ones are refused."""
  toy.use_toy(monkeypatch, 10)
  said = []
  monkeypatch.setattr(logger, 'warn', lambda *args: said.append(args[0]))
  learn(tmp_path, total_timesteps=19, hidden=5)
  assert any('hidden has no effect' in x for x in said)
  with pytest.raises(errors.UsageError, match='hiden is unknown'):
    learn(tmp_path, total_timesteps=19, hiden=5)


def test_too_short(tmp_path, monkeypatch):
  """An untrained policy comes with a warning, not in silence."""
  toy.use_toy(monkeypatch, 10)
  said = []
  monkeypatch.setattr(logger, 'warn', lambda *args: said.append(args[0]))
  learn(tmp_path, total_timesteps=19)
  assert any('an epoch has 20.' in x for x in said)


def test_killed_after_a_checkpoint(tmp_path, monkeypatch):
  """Rows of epochs that are repeated are not listed twice."""
  toy.use_toy(monkeypatch, 10)
  folder = str(tmp_path / 'checkpoints')
  kwargs = {'num_envs': 2, 'checkpoint_dir': folder}

  class Killed(Exception):
    pass

  def die(self, state, forced=False):
    if state['epoch'] == 2:
      raise Killed
    return save(self, state, forced=True)

  save = her.Checkpoints.save
  with monkeypatch.context() as patch:
    patch.setattr(her.Checkpoints, 'save', die)
    with pytest.raises(Killed):
      learn(tmp_path, 120, **kwargs)
  assert [x['epoch'] for x in rows(tmp_path)] == [0, 1]
  learn(tmp_path, 120, **kwargs)
  found = logger.read_csv(str(tmp_path / 'progress.csv'))
  assert [x['epoch'] for x in found] == [0, 1, 2]
  assert [x['epoch'] for x in rows(tmp_path)] == [0, 1, 2]
  metrics = logger.read_json(str(tmp_path / 'metrics.jsonl'))
  assert [x['step'] for x in metrics] == [0, 1, 2]
