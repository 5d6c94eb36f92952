"""HER through the pipeline: the numbers of the stand-alone training."""

import json
import math
import os
import pickle
from unittest import mock

import numpy as np
import pytest

from agents.pipeline import logs
from agents.pipeline.session import Session
from agents.run import errors, stopping
from agents.tools.tf1 import tf
from baselines_her import demonstrations, her, logger, play, vec_env
from baselines_her.params import common
from tests.baselines_her import toy

STEPS = 10
SEED = 2
SMALL = {
  'n_batches': 3,
  'batch_size': 8,
  'hidden': 8,
  'layers': 1,
  'buffer_size': 200,
  'n_test_rollouts': 2,
}
# Full after four episodes, so that chance overwrites some.
CROWDED = {**SMALL, 'buffer_size': 40}

# This module is one of parameters, too.
cpanel = {
  **common.make_cpanel('ToyPoint-v0', number_epochs=2),
  **SMALL,
  'epoch_size': 2,
  'seed': SEED,
}
gen_params = common.gen_params


@pytest.fixture(autouse=True)
def toys(monkeypatch):
  """Environments are toys in this process, whatever their number."""

  def make_vec_env(env_id, env_type, num_env, seed, **unused):
    return toy.vec_env(STEPS, range(seed, seed + num_env))

  toy.use_toy(monkeypatch, STEPS)
  monkeypatch.setattr(vec_env, 'make_vec_env', make_vec_env)
  monkeypatch.setattr('baselines_her.envs.resolve', lambda name: name)


def collect(policy, venv):
  """All that decides about the future of a training."""
  variables = policy.sess.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
  held = policy.buffer.state_dict()
  slots = policy.Q_adam.get_slots() + policy.pi_adam.get_slots()
  return {
    **dict(zip([x.name for x in variables], policy.sess.run(variables))),
    **{f'adam {index}': x for index, x in enumerate(slots)},
    **{f'replay {key}': value for key, value in held.items()},
    'random': np.random.uniform(size=3),
    'envs': np.array([x[1] for x in venv.get_states()]),
  }


def train(path, *args, **panel):
  """Train through the pipeline.

  Returns:
    Dict of arrays that describe its end, and the runner.
  """
  if '--load-checkpoint' not in args:
    args = (
      *('--params', 'tests.baselines_her.test_pipeline'),
      *('--session-path', str(path), '--session-name', 'run', *args),
      *('--cpanel', json.dumps(panel)),
    )
  session = Session([*args, '--no-monitor-cpu', '--no-monitor-gpu'])
  try:
    with session.tf_session():
      runner = session.runner
      runner.start(session)
      runner.train()
      explorer = runner.explorer['train']
      return collect(runner.agents['agent'].policy, explorer.venv), runner
  finally:
    session.finalize()


def tree(panel):
  return gen_params({**cpanel, **panel})


def learn(folder, epochs, num_envs=1, demo_file=None, **settings):
  """Train without the pipeline; returns the same and the rows of the log."""
  logged = logger.scoped_configure(str(folder), ['json'])
  with tf.Graph().as_default(), toy.session(), logged:
    env = vec_env.make_vec_env('ToyPoint-v0', 'robotics', num_envs, SEED)
    policy = her.learn(
      network='mlp',
      env=env,
      total_timesteps=epochs * 2 * STEPS * num_envs,
      seed=SEED,
      override_params={'n_cycles': 2, **settings},
      save_path=str(folder / 'policies'),
      demo_file=demo_file,
    )
    rows = logger.read_json(str(folder / 'progress.json'))
    return collect(policy, env), rows


def assert_same(found, wanted):
  assert set(found) == set(wanted) and len(wanted) > 20
  for key, value in wanted.items():
    np.testing.assert_array_equal(found[key], value, err_msg=key)


def record_demos(path):
  """Three episodes of a point that goes straight to its goal."""
  env = toy.ToyPoint(STEPS, seed=5)
  episodes = []
  for _ in range(3):
    obs, actions, infos = [env.reset()], [], []
    for _ in range(STEPS):
      way = obs[-1]['desired_goal'] - obs[-1]['achieved_goal']
      actions.append(np.clip(2 * way, -1, 1))
      step = env.step(actions[-1])
      obs.append(step[0])
      infos.append(step[3])
    episodes.append((obs, actions, infos))
  demonstrations.save(str(path), *zip(*episodes))
  return str(path)


@pytest.mark.parametrize(
  'num_envs, settings',
  [
    pytest.param(1, SMALL, marks=pytest.mark.slow),
    pytest.param(1, CROWDED, marks=pytest.mark.slow),
    (3, {**SMALL, 'relative_goals': True, 'replay_strategy': 'none'}),
    pytest.param(
      2,
      {**SMALL, 'test_with_polyak': True, 'scope': 'other', 'max_u': 0.5},
      marks=pytest.mark.slow,
    ),
  ],
)
def test_equals_stand_alone(tmp_path, num_envs, settings):
  """Weights, optimizer, replay, random numbers and statistics, to the bit."""
  settings = {**settings, 'n_test_rollouts': 30}
  wanted, rows = learn(tmp_path / 'alone', 2, num_envs, **settings)
  found, _ = train(tmp_path, num_workers=num_envs, **settings)
  assert_same(found, wanted)
  log = logs.read(str(tmp_path / 'run' / 'varlog.json'))
  means = {k: np.divide(v['sum'], v['num']) for k, v in log.items()}
  assert list(log['/success/test']['num']) == [30, 30]
  assert list(log['/update/loss_critic']['num']) == [6] * 2
  for name, key in (
    ('/success/test', 'test/success_rate'),
    ('/success/train', 'train/success_rate'),
    ('/q/test', 'test/mean_Q'),
    ('/stats_o/mean', 'stats_o/mean'),
    ('/stats_g/std', 'stats_g/std'),
  ):
    wanted = [row[key] for row in rows]
    if 'success' in name:
      assert list(means[name]) == wanted
    else:
      # The stand-alone log sums numbers of 32 bits.
      np.testing.assert_allclose(means[name], wanted, 1e-6)
  assert any(row['test/success_rate'] for row in rows)
  for name in ('policy_best.pkl', 'policy_latest.pkl', 'policy_0.pkl'):
    states = [
      load_policy(tmp_path / x / 'policies' / name) for x in ('alone', 'run')
    ]
    np.testing.assert_equal(*states)


def load_policy(path):
  """Weights and settings of a pickled policy."""
  with tf.Graph().as_default(), toy.session():
    return pickle.loads(path.read_bytes()).__getstate__()


def test_demonstrations(tmp_path):
  """Imitation has the numbers of the stand-alone training, too."""
  demos = record_demos(tmp_path / 'demos.npz')
  settings = {**SMALL, 'num_demo': 3, 'demo_batch_size': 3, 'q_filter': 1}
  wanted, _ = learn(tmp_path / 'alone', 2, 2, demo_file=demos, **settings)
  found, runner = train(tmp_path, demo_file=demos, num_workers=2, **settings)
  assert runner.agents['agent'].policy.demo_buffer.current_size == 3
  assert_same(found, wanted)


@pytest.mark.parametrize(
  'settings', [pytest.param(SMALL, marks=pytest.mark.slow), CROWDED]
)
def test_resumed(tmp_path, settings):
  """Two epochs, then two more: the same to the bit as four at once."""
  panel = {**settings, 'number_epochs': 4, 'num_workers': 2}
  wanted, whole = train(tmp_path / 'whole', **panel)
  train(tmp_path / 'parts', max_exec_iter=2, **panel)
  path = tmp_path / 'parts' / 'run'
  assert not (path / 'done.lock').exists()
  found, parts = train(None, '--load-checkpoint', str(path), '--resume')
  assert_same(found, wanted)
  assert (path / 'done.lock').exists()
  for name in ('/success/train', '/success/test', '/q/test', '/stats_o/std'):
    assert log_of(path, name) == log_of(tmp_path / 'whole' / 'run', name)
  for key in ('best_score', 'best_epoch', 'i_frame'):
    assert parts.state[key] == whole.state[key]
  with np.load(path / 'checkpoints' / 'checkpoint-4' / 'rank0.npz') as one:
    assert len(one.files) > 20


def log_of(path, name):
  log = logs.read(str(path / 'varlog.json'))[name]
  return [list(log[x]) for x in ('epoch', 'episode', 'num', 'sum', 'min')]


def test_interrupted_within_an_epoch(tmp_path, monkeypatch):
  """The user stops after the first cycle of the second epoch."""
  panel = {'number_epochs': 3, 'num_workers': 2}
  wanted, _ = train(tmp_path / 'whole', **panel)
  left = [4]  # Asked after each cycle and each epoch.

  def requested():
    left[0] -= 1
    return left[0] <= 0

  with monkeypatch.context() as patch:
    patch.setattr(stopping, 'requested', requested)
    _, runner = train(tmp_path / 'parts', **panel)
  assert (runner.state['i_epoch'], runner.state['i_cycle']) == (1, 1)
  path = tmp_path / 'parts' / 'run'
  found, _ = train(None, '--load-checkpoint', str(path), '--resume')
  assert_same(found, wanted)
  name = '/success/train'
  assert log_of(path, name) == log_of(tmp_path / 'whole' / 'run', name)


@pytest.fixture
def started(tmp_path):
  """Runner whose parts are built, in its graph and session."""
  panel = '--cpanel', '{"num_workers": 3}'
  session = Session(
    ['--params', 'tests.baselines_her.test_pipeline', '--dry-run', *panel]
  )
  with session.tf_session():
    runner = session.runner
    runner.start(session)
    yield runner
  session.finalize()


def test_episodes(started):
  """They pass from the worker to replay and normalizers as they are."""
  episodes = started.explorer['train'].update()
  shapes = {key: value.shape for key, value in episodes.items()}
  assert shapes == {
    'o': (3, STEPS, 4),
    'ag': (3, STEPS, 2),
    'g': (3, STEPS - 1, 2),
    'u': (3, STEPS - 1, 2),
    'info_is_success': (3, STEPS - 1, 1),
  }
  memory = started.memory['train']
  memory.store(episodes)
  for key, value in episodes.items():
    assert memory.task.episodes[key] is value
    np.testing.assert_array_equal(memory.buffer.buffers[key][:3], value)
  started.agents['agent'].policy.update_stats(memory.task.episodes)
  assert set(episodes) == set(shapes)


def test_parts_share_one_task(started):
  """Nothing else passes between them, and nothing of theirs is replaced."""
  task = started.memory['train'].task
  agent, tester = started.agents['agent'], started.explorer['test']
  assert agent.task is task
  assert tester.venv is started.explorer['train'].venv is task.venv
  assert not {'_act', 'generate_rollouts'} & set(vars(tester.worker))
  assert not {'step', 'reset'} & set(vars(task.venv))
  started.explorer['train'].update()
  assert math.isnan(task.success_rate)
  tester.update()
  assert task.success_rate == tester.worker.current_success_rate()
  agent.epoch_done()
  assert math.isnan(task.success_rate)


def test_counters(started):
  """Frames and episodes of training; tests leave the meta data alone."""
  explorer, tester = started.explorer['train'], started.explorer['test']
  assert tester.venv is explorer.venv
  explorer.update()
  tester.reset()
  tester.update()
  assert explorer.timesteps == 3 * STEPS
  assert (explorer.n_episode, tester.n_episode) == (3, 6)
  meta = explorer.session.monitor.meta
  assert (meta['frame'], meta['episode']) == (3 * STEPS, 3)
  assert len(tester.worker.success_history) == 2
  scopes = explorer.session.profiler.pack()
  # Two workers reset; each of three rollouts resets once and steps.
  assert scopes['/envstep']['occurs'] == 2 + 3 * (STEPS + 1)
  assert scopes['/graph']['occurs'] == 3 * STEPS


def test_memory(started):
  """Entries are episodes; contents can be moved to another memory."""
  memory = started.memory['train']
  for _ in range(2):
    memory.store(started.explorer['train'].update())
  assert memory.length == 6
  args = started.params['memory']['train']['args']
  env, settings = args['env'], args['settings']
  other = type(memory)(
    memory.session, env=env, settings={**settings, 'buffer_size': 200}
  )
  other.load_state_dict(memory.state_dict())
  wanted, found = memory.buffer.state_dict(), other.buffer.state_dict()
  assert found['n_transitions_stored'] == 60
  np.testing.assert_equal(found, wanted)
  small = type(memory)(
    memory.session, env=env, settings={**settings, 'buffer_size': 50}
  )
  with pytest.raises(errors.UsageError, match='has room for 4'):
    small.load_state_dict(memory.state_dict())


def test_time_limit_of_what_is_shown(tmp_path, monkeypatch):
  """It is the setting T, as some ids have no limit of their own."""
  find_problem = mock.Mock(return_value='It is dark.')
  monkeypatch.setattr(play, 'find_problem', find_problem)
  monkeypatch.setattr('agents.envs.window.has_display', lambda: False)
  session = Session(
    [
      *('--params', 'tests.baselines_her.test_pipeline', '--play'),
      *('--session-path', str(tmp_path), '--no-monitor-gpu'),
    ]
  )
  with session.tf_session():
    session.runner.start(session)
  session.finalize()
  find_problem.assert_called_once_with('ToyPoint-v0', False, STEPS)


def test_settings_of_the_memory(started):
  """They are checked and completed as on a command line."""
  memory = started.memory['train']
  args = started.params['memory']['train']['args']
  env, settings = args['env'], {**args['settings'], 'lr': 0.1}
  task = type(memory)(memory.session, env=env, settings=settings).task
  assert task.settings.Q_lr == task.settings.pi_lr == 0.1
  settings['gamma'] = 1
  with pytest.raises(errors.UsageError, match='there is no limit to clip'):
    type(memory)(memory.session, env=env, settings=settings)


def test_two_agents_of_one_scope(started):
  """The second one would not be saved, so it is refused."""
  agent = started.agents['agent']
  with pytest.raises(errors.UsageError, match="'ddpg' is used"):
    type(agent)(agent.session, started.memory, 'other')


def test_infinite_weights_are_not_saved(tmp_path):
  """The session ends before there is a checkpoint or policy of them."""
  with pytest.raises(errors.NotFinite, match='last checkpoint: epoch 0'):
    train(tmp_path, Q_lr=1e38, pi_lr=1e38)
  run = tmp_path / 'run'
  assert [x.name for x in (run / 'checkpoints').iterdir()] == ['checkpoint-0']
  assert not (run / 'policies').exists() or not os.listdir(run / 'policies')


@pytest.mark.parametrize(
  'panel, message',
  [
    ({'batch_size': 0}, 'batch_size is 0'),
    ({'epoch_size': -1}, 'n_cycles is -1'),
    ({'replay_strategy': 'past'}, 'replay_strategy'),
    ({'random_eps': 2.0}, 'random_eps'),
    ({'demo_file': '/none.npz'}, 'must be smaller'),
  ],
)
def test_bad_values(panel, message):
  with pytest.raises(errors.UsageError, match=message):
    tree(panel)


def test_without_tests(tmp_path):
  """Training alone keeps periodic policies, but has no best one.

  Tests can be switched on later.
  """
  assert 'test' in tree({'test_activate': False})['explorer']
  _, runner = train(tmp_path, test_activate=False)
  assert set(runner.explorer) == {'train'}
  names = {x.name for x in (tmp_path / 'run' / 'policies').iterdir()}
  assert names == {f'policy_0.{x}' for x in ('json', 'npz', 'pkl')}
  assert runner.state['best_score'] is not None
