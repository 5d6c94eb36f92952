"""What explorers return, and when episodes begin and end."""

import csv
import glob
import os

import numpy as np
import pytest

from agents.pipeline import gym_explorer, memory
from agents.run import checkpoint, errors, stopping
from tests.agents.pipeline import sessions, toy_agents

COUNT = 'tests.agents.pipeline.toy_envs.CountEnv'
TWO = 'tests.agents.pipeline.toy_envs.TwoAgentsEnv'


@pytest.fixture
def session(tmp_path):
  return sessions.SmallSession(tmp_path)


def make(session, agents=None, mode='train', kwargs=None, **args):
  """Explorer of `CountEnv` in this process, unless told otherwise."""
  agents = agents or {'agent': toy_agents.CountingAgent(session)}
  args.setdefault('env', {'constructor': COUNT, 'kwargs': kwargs or {}})
  args.setdefault('processes', 0)
  if 'n_episodes' not in args:
    args.setdefault('n_steps', 5)
  return gym_explorer.GymExplorer(session, agents, mode, **args)


def column(chunk, key, index=0):
  """List of the values of each worker over time."""
  return chunk[key][..., index].tolist()


def test_actions_of_another_size(session):
  """Many environments would read the first one only."""
  agent = toy_agents.CountingAgent(session, size=2)
  explorer = make(session, {'agent': agent}, num_workers=2)
  with pytest.raises(errors.UsageError, match=r'shape \[1\] for each of 2'):
    explorer.update()


@pytest.mark.parametrize('result', [np.zeros((1, 1)), {'actions': [[0.0]]}])
def test_results_that_lack_something(session, result):
  agent = toy_agents.CountingAgent(session)
  agent.action_generator = lambda *args: result
  with pytest.raises(errors.UsageError, match='dictionary of actions and hid'):
    make(session, {'agent': agent}).update()


def test_results_without_arrays(session):
  """Lists and numbers become arrays."""
  agent = toy_agents.CountingAgent(session)
  agent.action_generator = lambda *args: {
    'actions': [[0.5]] * 2,
    'hidden_state': [[1.0]] * 2,
    'artifacts': {'one': 3.0, 'each': [1, 2]},
  }
  chunk = make(session, {'agent': agent}, num_workers=2).update()
  assert chunk['/agents/agent/artifacts/one'][:, 0].tolist() == [3, 3]
  assert chunk['/agents/agent/artifacts/each'][:, 0].tolist() == [1, 2]


@pytest.mark.parametrize('length, count', [(4, 1), (4, 2), (6, 1)])
def test_episodes_that_may_never_end(session, monkeypatch, length, count):
  """Waiting for one is told."""
  monkeypatch.setattr(gym_explorer, '_MANY_STEPS', 5)
  said = []
  session.logger.warn = said.append
  make(session, None, 'test', {'length': length}, n_episodes=count).update()
  assert bool(said) == (length == 6)
  assert all('ended in 5 steps' in x for x in said)


def test_waiting_for_an_episode_ends_when_asked(session, monkeypatch):
  monkeypatch.setattr(gym_explorer, '_MANY_STEPS', 5)
  monkeypatch.setattr(stopping, 'requested', lambda: True)
  with pytest.raises(stopping.StopRequested):
    make(session, None, 'test', {'length': 10**9}, n_episodes=1).update()


@pytest.mark.parametrize('count', [0, 2])
def test_chunk_of_two_workers(session, count):
  """Acceptance test 2: episodes of 3 steps, chunks of 5 and a half-step."""
  explorer = make(session, num_workers=2, processes=count)
  try:
    first, second = explorer.update(), explorer.update()
  finally:
    explorer.close()
  assert set(first) == {
    '/observations/agent',
    '/masks',
    '/rewards',
    '/terminals',
    '/truncations',
    '/final_observations/agent',
    '/infos/episode/r',
    '/infos/episode/l',
    '/infos/episode/t',
    '/agents/agent/actions',
    '/agents/agent/hidden_state',
    '/agents/agent/artifacts/twice',
  }
  assert all(x.shape[:2] == (2, 6) for x in first.values())
  nan = np.nan
  for chunk, times in (
    (first, (0, 1, 2, 0, 1, 2)),
    (second, (2, 0, 1, 2, 0, 1)),
  ):
    times = np.array(times)
    ends = (times == 2) & (np.arange(6) < 5)
    for row in range(2):
      assert chunk['/observations/agent'][row, :, 0].tolist() == times.tolist()
      np.testing.assert_array_equal(chunk['/masks'][row, :, 0], times > 0)
      rewards = np.where(np.arange(6) < 5, times + 1, nan)
      np.testing.assert_array_equal(chunk['/rewards'][row, :, 0], rewards)
      np.testing.assert_array_equal(chunk['/terminals'][row, :, 0], ends)
      assert not chunk['/truncations'].any()
      final = np.where(ends, 3, nan)
      observed = chunk['/final_observations/agent'][row, :, 0]
      np.testing.assert_array_equal(observed, final)
      sums = np.where(ends, 6, nan)
      np.testing.assert_array_equal(chunk['/infos/episode/r'][row], sums)
  # The next chunk goes on where the half-step was.
  for key in ('/observations/agent', '/masks'):
    np.testing.assert_array_equal(second[key][:, 0], first[key][:, -1])
  actions = second['/agents/agent/actions'][0, :, 0]
  np.testing.assert_allclose(actions, [0.06, 0.07, 0.08, 0.09, 0.1, nan])
  np.testing.assert_allclose(
    second['/agents/agent/artifacts/twice'][1, :, 0], 2 * actions
  )
  # States are those that the agent acted with.
  hidden = second['/agents/agent/hidden_state'][0, :, 0]
  np.testing.assert_array_equal(hidden, [5, 6, 7, 8, 9, nan])
  assert explorer.timesteps == 20
  assert explorer.n_episode == 6
  assert session.monitor.meta['frame'] == 20


def test_final_action(session):
  """Acting in the half-step does not move the state of the agent."""
  explorer = make(session, n_steps=2, final_action=True)
  first, second = explorer.update(), explorer.update()
  assert column(first, '/agents/agent/hidden_state') == [[0, 1, 2]]
  assert column(second, '/agents/agent/hidden_state') == [[2, 3, 4]]
  np.testing.assert_allclose(
    column(first, '/agents/agent/actions'), [[0.01, 0.02, 0.03]]
  )


def test_truncated_episodes(session):
  """A limit of time is no end of the task; masks tell both."""
  chunk = make(session, kwargs={'truncated': True}).update()
  assert not chunk['/terminals'].any()
  assert column(chunk, '/truncations') == [[0, 0, 1, 0, 0, 0]]
  assert column(chunk, '/masks') == [[0, 1, 1, 0, 1, 1]]
  assert chunk['/infos/truncated'][0, 2] == 1


def test_infos(session):
  """Flat numbers, NaN where there is none; texts are left out."""
  chunk = make(session, kwargs={'info': 'more', 'length': 9}).update()
  keys = {x for x in chunk if x.startswith('/infos')}
  assert keys == {'/infos/more/number', '/infos/more/size'}
  nan = np.nan
  for key, values in (
    ('number', [1, nan, 3, nan, 5, nan]),
    ('size', [0.5, nan, 1.5, nan, 2.5, nan]),
  ):
    np.testing.assert_array_equal(chunk[f'/infos/more/{key}'], [values])


def test_warm_start_counts_frames(session):
  """Two workers: six frames are three steps."""
  explorer = make(session, num_workers=2, warm_start=6)
  chunk = explorer.update()
  actions = chunk['/agents/agent/actions'][:, :5, 0]
  assert ((actions[:, :3] >= 5) & (actions[:, :3] <= 6)).all()
  assert len(np.unique(actions[:, :3])) == 6
  np.testing.assert_allclose(actions[:, 3:], [[0.01, 0.02]] * 2)


def test_share_of_episodes(session):
  """Three episodes of two workers are two each; more do not count."""
  explorer = make(session, mode='test', num_workers=2, n_episodes=3)
  chunk = explorer.update()
  assert chunk['/masks'].shape == (2, 7, 1)
  assert explorer.n_episode == 4
  statistics = session.monitor.last['/reward/test/episodic']
  assert statistics['num'] == 4 and statistics['sum'] == 24
  agent = explorer.agents['agent']
  assert all(x[3] for x in agent.calls)
  # New episodes with each update; once after a reset.
  again = explorer.update()
  assert column(again, '/masks')[0][0] == 0
  episodes = column(again, '/observations/agent', 1)[0]
  assert episodes[0] == column(chunk, '/observations/agent', 1)[0][-1] + 1
  explorer.reset()
  explorer.reset()
  assert column(explorer.update(), '/observations/agent', 1)[0][0] == 6


def test_long_update_grows(session):
  """More steps than arrays begin with, both bounds unmet until the end."""
  explorer = make(session, kwargs={'length': 50}, n_steps=10, n_episodes=4)
  chunk = explorer.update()
  assert chunk['/rewards'].shape == (1, 201, 1)
  expected = list(range(1, 51)) * 4
  assert column(chunk, '/rewards')[0][:-1] == expected
  assert np.isnan(chunk['/rewards'][0, -1, 0])
  ends = np.isfinite(chunk['/infos/episode/l'][0])
  assert np.flatnonzero(ends).tolist() == [49, 99, 149, 199]


def test_two_agents(session):
  """Dictionaries of actions and nested observations, by paths."""
  agents = {
    'left': toy_agents.CountingAgent(session, name='left'),
    'right': toy_agents.CountingAgent(session, name='right', size=2),
  }
  env = {'constructor': TWO}
  explorer = make(session, agents, env=env, n_steps=4, num_workers=2)
  chunk = explorer.update()
  assert chunk['/agents/right/actions'].shape == (2, 5, 2)
  calls = agents['left'].calls
  assert set(calls[0][0]) == {'hand/left', 'hand/right', 'time'}
  np.testing.assert_allclose(
    column(chunk, '/observations/hand/left')[1], [0, 0.01, 0.02, 0.03, 0]
  )
  np.testing.assert_allclose(
    column(chunk, '/observations/hand/right')[1], [0, 0.02, 0.04, 0.06, 0]
  )
  np.testing.assert_allclose(
    column(chunk, '/rewards')[0][:4], [-0.01, -0.02, -0.03, -0.04]
  )
  wrong = {'left': agents['left'], 'middle': agents['right']}
  with pytest.raises(errors.UsageError, match='actions of left, right, but'):
    make(session, wrong, env=env)


@pytest.mark.parametrize('count', [0, 1])
@pytest.mark.parametrize(
  'kwargs, message',
  [
    ({'nan_at': 2}, 'NaN observation agent .*CountEnv'),
    ({'fail_at': 2}, r"CountEnv failed in step 2 with KeyError\('broken'\)"),
    ({'exit_at': 2}, r'CountEnv failed in step 2 with SystemExit\(0\)'),
    ({'reward': '1'}, "CountEnv returned reward '1' in step 1"),
    ({'reward': np.nan}, 'NaN reward .*CountEnv'),
    # More than 32 bits can hold.
    ({'reward': 1e300}, 'Infinite reward .*CountEnv'),
  ],
)
def test_bad_environments(session, count, kwargs, message):
  """One sentence names the environment and what it does."""
  explorer = make(session, kwargs=kwargs, num_workers=2, processes=count)
  with pytest.raises(errors.EnvError, match=message):
    explorer.update()
  explorer.close()


def test_files_of_episodes(session):
  """A row per episode and worker, by mode; a later run goes on."""
  for number in (1, 2):
    for mode in ('train', 'test'):
      make(session, mode=mode, num_workers=2, n_steps=7).update()
    folder = os.path.join(session.folder('monitor'), 'train')
    assert sorted(os.listdir(folder)) == ['0.monitor.csv', '1.monitor.csv']
    with open(os.path.join(folder, '1.monitor.csv')) as file_:
      header, *lines = file_.read().splitlines()
    assert header.startswith('# {"t_start"') and 'CountEnv' in header
    rows = list(csv.DictReader(lines))
    assert [(x['r'], x['l']) for x in rows] == [('6.0', '3')] * 2 * number


def test_no_files_without_folder():
  """A dry run leaves nothing behind."""
  explorer = make(sessions.SmallSession(), mode='eval', n_episodes=1)
  assert explorer.update()['/masks'].shape == (1, 4, 1)


def test_videos_in_eval(session):
  """A video per episode and worker, of moderate size."""
  imageio = pytest.importorskip('imageio.v2')
  explorer = make(session, mode='eval', n_episodes=1)
  explorer.update()
  explorer.update()
  folder = os.path.join(session.folder('videos'), '0')
  videos = sorted(glob.glob(os.path.join(folder, 'episode-*')))
  assert [os.path.basename(x)[:13] for x in videos] == [
    'episode-00001',
    'episode-00002',
  ]
  frames = imageio.mimread(videos[0])
  assert len(frames) == 4 and frames[0].shape[:2] == (384, 256)


@pytest.mark.parametrize('train, test', [(True, False), (False, True)])
def test_explorers_that_normalize_otherwise(session, train, test):
  """Observations have to be what the agent was trained on."""
  first = make(session, normalize_observations=train)
  second = make(session, mode='test', normalize_observations=test)
  with pytest.raises(errors.UsageError, match='set its normalize_obs'):
    second.import_normalizers(first.export_normalizers())


def test_observation_normalizer(session):
  """Training learns the scale; the test explorer imports it and keeps it."""
  args = dict(normalize_observations=True, normalize_rewards=True)
  train = make(session, kwargs={'length': 50}, n_steps=200, **args)
  chunk = train.update()
  times = chunk['/observations/agent'][0, 100:200, 0]
  assert abs(times.mean()) < 0.2 and abs(times.std() - 1) < 0.2
  exported = train.export_normalizers()
  assert exported['observations']['agent']['count'] == 201
  test = make(session, mode='test', kwargs={'length': 50}, n_episodes=1, **args)
  test.import_normalizers(exported)
  test.reset()
  seen = test.update()['/observations/agent'][0, :50, 0]
  moments = exported['observations']['agent']
  scale = np.sqrt(moments['variance'][0] + 1e-8)
  expected = (np.arange(50) - moments['mean'][0]) / scale
  np.testing.assert_allclose(seen, expected, 1e-5)
  again = test.export_normalizers()
  assert again['observations']['agent']['count'] == 201
  # Scores are those of the environment.
  assert session.monitor.last['/reward/test/episodic']['max'] == 1275


def test_rewards_are_scaled_by_returns(session):
  """Divided by the deviation of discounted sums that stop at ends."""
  explorer = make(session, n_steps=30, normalize_rewards=True, gamma=0.5)
  rewards = column(explorer.update(), '/rewards')[0][:-1]
  sums, carry = [], 0.0
  for time in range(30):
    raw = time % 3 + 1
    carry = 0.5 * carry + raw
    sums.append(carry)
    scale = np.sqrt(np.var(sums) + 1e-8)
    np.testing.assert_allclose(rewards[time], min(10, raw / scale), 1e-5)
    carry = 0.0 if raw == 3 else carry


@pytest.mark.parametrize('restorable', [True, False])
def test_resume(session, restorable):
  """Goes on in the middle of an episode, or begins one if it cannot."""
  kwargs = {'restorable': restorable}
  args = dict(kwargs=kwargs, num_workers=2, normalize_observations=True)
  explorer = make(session, **args)
  explorer.update()
  path = os.path.join(session.path, 'states')
  checkpoint.write_tree(path, explorer.state_dict())
  state = checkpoint.read_tree(path)
  other = make(session, seed=7, **args)
  other.load_state_dict(state)
  assert (other.timesteps, other.n_episode) == (10, 2)
  chunk, expected = other.update(), explorer.update()
  if restorable:
    for key in ('/observations/agent', '/masks', '/terminals'):
      # The last of three observed values is the action, of another agent.
      np.testing.assert_array_equal(chunk[key][..., :2], expected[key][..., :2])
    np.testing.assert_array_equal(
      chunk['/infos/episode/r'], expected['/infos/episode/r']
    )
  else:
    assert column(chunk, '/masks')[0] == [0, 1, 1, 0, 1, 1]
  states = [x['envs'][1]['random'] for x in (state, other.state_dict())]
  assert states[0] == states[1]
  with pytest.raises(errors.UsageError, match='2 workers'):
    make(session, kwargs=kwargs).load_state_dict(state)
  args['kwargs'] = {**kwargs, 'bound': 2}
  with pytest.raises(errors.UsageError, match='give the environment that it'):
    make(session, **args).load_state_dict(state)


@pytest.mark.parametrize('count', [0, 1])
def test_resume_after_a_failure(session, count):
  """States that were lost with a process do not keep the rest from storage."""
  explorer = make(session, kwargs={'fail_at': 2}, processes=count)
  with pytest.raises(errors.EnvError):
    explorer.update()
  path = os.path.join(session.path, 'states')
  checkpoint.write_tree(path, explorer.state_dict())
  explorer.close()
  state = checkpoint.read_tree(path)
  assert (state['envs'] is None) == bool(count)
  other = make(session)
  other.load_state_dict(state)
  assert column(other.update(), '/masks')[0] == [0, 1, 1, 0, 1, 1]


def test_mistakes(session):
  """What does not fit together is told."""
  with pytest.raises(errors.UsageError, match='neither n_steps nor n_episodes'):
    make(session, n_steps=0)
  for settings, message in (
    ({'n_stps': 3}, 'train explorer is unknown.*n_steps'),
    ({'num_workers': 0}, "'num_workers' of the train explorer is 0"),
    ({'env': None}, "'env' of the train explorer is None"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      make(session, **settings)
  for env, message in (
    ({}, 'neither a name nor'),
    ({'name': None}, 'neither a name nor'),
    ({'name': 3}, "Key 'name' of an environment is 3"),
    ({'name': 'Pendulm-v1'}, 'Pendulum-v1'),
    ({'name': 'Pendulum-v1', 'wraper': []}, 'wrappers'),
    ({'constructor': COUNT + 's'}, 'CountEnv'),
  ):
    with pytest.raises(errors.UsageError, match=message):
      make(session, env=env)


def test_playing_without_pictures(tmp_path):
  """Of an environment that draws none."""
  session = sessions.SmallSession(tmp_path)
  env = {'constructor': 'tests.agents.pipeline.toy_envs.ChainEnv'}
  explorer = make(session, mode='eval', env=env, n_episodes=1)
  explorer.update()
  explorer.close()
  assert explorer.n_episode == 1 and not os.listdir(tmp_path / 'videos')
  log = (tmp_path / 'report.log').read_text()
  assert 'Playing without pictures: Environment ChainEnv' in log


def test_chunks_fit_memories(session):
  """Observations follow each other across chunks in the ring."""
  explorer = make(session, n_steps=2, num_workers=2)
  ring = memory.RingMemory(session, chunk_sample_len=2, buffer_chunk_len=4)
  for _ in range(6):
    ring.store(explorer.update())
  stored = ring.state_dict()
  times = stored['/observations/agent'][0, :, 0].tolist()
  assert times == [x % 3 for x in range(5, 13)]
  finals = stored['/final_observations/agent'][0, :, 0]
  assert np.isfinite(finals).tolist() == [x == 2 for x in times]
  assert not [x for x in stored if x.startswith('/infos')]


@pytest.mark.render
def test_video_of_mujoco(session):
  """Rendered by OpenGL, and so in a process without TensorFlow."""
  pytest.importorskip('gymnasium_robotics')
  agents = {'agent': toy_agents.CountingAgent(session, size=4)}
  explorer = make(
    session,
    agents,
    'eval',
    env={'name': 'FetchReach-v4'},
    n_episodes=1,
    processes=None,
  )
  try:
    chunk = explorer.update()
  finally:
    explorer.close()
  assert chunk['/observations/desired_goal'].shape == (1, 51, 3)
  assert column(chunk, '/truncations')[0] == [0] * 49 + [1, 0]
  assert len(os.listdir(os.path.join(session.folder('videos'), '0'))) == 1
