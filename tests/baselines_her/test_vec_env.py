"""Vectors of environments, here and in processes, and their videos."""

import contextlib
import csv
import functools
import json
import multiprocessing
import os

import numpy as np
import pytest

from agents.envs import episode_log, video
from agents.run import errors
from baselines_her import monitor, vec_env, video_recorder
from tests.baselines_her import toy


class Worker(toy.ToyPoint):
  """Tells what its process has loaded."""

  def reset(self):
    import sys

    self.spec.id = str('tensorflow' in sys.modules)
    self.spec.rank = os.environ.get('OMPI_COMM_WORLD_RANK')
    return super().reset()


@pytest.mark.parametrize('name', ['learn_1env', 'learn_3env_relative'])
def test_recorded(name):
  """learn_*.npz: the first episode with recorded actions, and resets."""
  data = toy.load(name)
  seeds, steps = data.meta['env_seeds'], data.meta['max_episode_steps']
  env = toy.vec_env(steps, seeds)
  for _ in range(3):
    obs = env.reset()
  for t in range(steps - 1):
    for key, short in (('observation', 'o'), ('achieved_goal', 'ag')):
      assert obs[key].dtype == np.float32
      np.testing.assert_allclose(
        obs[key], data[f'ep0_{short}'][:, t], 1e-6, 1e-7
      )
    obs, reward, done, info = env.step(data['ep0_u'][:, t])
    reached = [x['is_success'] for x in info]
    np.testing.assert_array_equal(reached, data['ep0_info_is_success'][:, t, 0])
    np.testing.assert_array_equal(reward, np.array(reached) - 1)
    assert not done.any()
  obs, _, done, _ = env.step(np.zeros((len(seeds), 2)))
  assert done.all()
  np.testing.assert_array_equal(obs['observation'][:, 2:], 0)
  obs = env.reset()
  np.testing.assert_allclose(
    obs['desired_goal'], data['ep1_g'][:, 0], 1e-6, 1e-7
  )


def note(**ranks):
  os.environ['TEST_RANKS'] = str(ranks)


def test_arguments_of_baselines(tmp_path, monkeypatch):
  """Those of `baselines.common.cmd_util`, in their order and by name."""
  monkeypatch.setenv('TEST_RANKS', '')
  env = vec_env.make_env(
    'FetchReach-v1', env_type='robotics', flatten_dict_observations=False
  )
  assert set(env.reset()) == set(env.observation_space.spaces)
  path = str(tmp_path)
  args = 'FetchReach-v1', 'robotics', 1, 2, 5, 2.0, None, False, None
  env = vec_env.make_env(*args, {'reward_type': 'dense'}, path, note)
  assert os.environ['TEST_RANKS'] == "{'mpi_rank': 1, 'subrank': 2}"
  assert os.listdir(path) == ['1.2.monitor.csv']
  first = env.reset()
  # Dense rewards are no whole numbers.
  assert env.step(np.ones(4))[1] % 1
  other = vec_env.make_env('FetchReach-v1', 'robotics', seed=7)
  for key, value in other.reset().items():
    # The seed is 5, plus 2 for the number.
    np.testing.assert_array_equal(first[key], value)
  env = vec_env.make_vec_env(
    *('FetchReach-v1', 'robotics', 2, 3, None, {'reward_type': 'dense'}, 4),
    reward_scale=0.0,
    force_dummy=True,
    folder=str(tmp_path / 'b'),
  )
  assert isinstance(env, vec_env.DummyVecEnv)
  assert sorted(os.listdir(tmp_path / 'b')) == [
    f'0.{x}.monitor.csv' for x in (4, 5)
  ]


@pytest.mark.parametrize(
  'given, sentence',
  [
    ({'flatten_dict_observations': True}, 'HER needs the dictionaries'),
    ({'env_type': 'atari'}, 'only goal environments'),
  ],
)
def test_what_baselines_has_for_others(given, sentence):
  given = {'env_type': 'robotics', **given}
  with pytest.raises(errors.UsageError, match=sentence):
    vec_env.make_env('FetchReach-v1', **given)
  with pytest.raises(errors.UsageError, match=sentence):
    vec_env.make_vec_env('FetchReach-v1', num_env=2, seed=0, **given)


def test_processes():
  """Same episodes as here, in native precision, without TensorFlow."""
  makers = [functools.partial(toy.ToyPoint, 4, seed) for seed in range(3)]
  makers[2] = functools.partial(Worker, 4, 2)
  random = np.random.RandomState(0)
  here = vec_env.DummyVecEnv(makers, native=True)
  with contextlib.closing(here):
    there = vec_env.SubprocVecEnv(makers, num_workers=2)
    with contextlib.closing(there):
      assert there.num_envs == 3 and len(there.specs) == 3
      assert there.specs[0].max_episode_steps == 4
      for env in (here, there):
        env.reset()
      state = there.get_states()
      for step in range(6):
        actions = random.uniform(-1, 1, (3, 2))
        found, wanted = there.step(actions), here.step(actions)
        for key in wanted[0]:
          assert found[0][key].dtype == np.float64
          np.testing.assert_array_equal(found[0][key], wanted[0][key])
        np.testing.assert_array_equal(found[1], wanted[1])
        np.testing.assert_array_equal(found[2], wanted[2])
        assert found[2].all() == (step == 3)
        for own, other in zip(found[3], wanted[3]):
          last, same = own.pop(vec_env.LAST, {}), other.pop(vec_env.LAST, {})
          assert set(last) == (set(wanted[0]) if step == 3 else set())
          for key, value in last.items():
            np.testing.assert_array_equal(value, same[key])
          assert own == other
      goals = there.reset()['desired_goal']
      there.set_states(state)
      assert (there.reset()['desired_goal'] != goals).any()
      here.set_states(state)
      here.reset()
      np.testing.assert_array_equal(
        there.reset()['desired_goal'], here.reset()['desired_goal']
      )
      assert there.specs[2].id in ('ToyPoint-v0', 'False')


def test_workers_are_free_of_tensorflow_and_mpi(monkeypatch):
  monkeypatch.setenv('OMPI_COMM_WORLD_RANK', '3')
  env = vec_env.SubprocVecEnv([functools.partial(Worker, 4)])
  env.reset()
  (spec,) = env.get('specs')[0]
  assert spec.id == 'False' and spec.rank is None
  assert os.environ['OMPI_COMM_WORLD_RANK'] == '3'
  env.close()


class Broken(toy.ToyPoint):
  """Fails in its first step."""

  def step(self, action):
    raise errors.EnvError('on purpose')


def test_states_of_environments_that_have_failed():
  """They are unknown, which is no error; what is unknown stays as it is."""
  env = vec_env.SubprocVecEnv([functools.partial(Broken, 4)])
  env.reset()
  assert env.get_states() is not None
  with pytest.raises(errors.EnvError, match='on purpose'):
    env.step(np.zeros((1, 2)))
  assert env.get_states() is None
  env.close()
  toy.vec_env(3, [0]).set_states(None)


def test_single_environment_takes_plain_actions():
  env = toy.vec_env(3, [0])
  env.reset()
  env.step(np.zeros(2))
  with pytest.raises(ValueError):
    toy.vec_env(3, [0, 1]).step(np.zeros(2))


def test_clip_and_scale():
  env = toy.ToyPoint(3)
  wrapped = vec_env.ClipAndScale(env, 2.0)
  wrapped.reset()
  seen = []
  env.step = lambda action: seen.append(action) or ({}, -1.0, False, {})
  assert wrapped.step(np.array([np.nan, 7.0]))[1] == -2
  assert wrapped.step(np.array([-9.0, 0.5]))[1] == -2
  np.testing.assert_array_equal(seen, [[0, 1], [-1, 0.5]])


def test_monitor(tmp_path):
  """A row per finished episode; a second process continues the file."""
  for _ in range(2):
    path = str(tmp_path / '0.0')
    env = monitor.Monitor(toy.ToyPoint(3, 0), path, allow_early_resets=True)
    env.reset()
    env.step(np.zeros(2))
    env.reset()
    for _ in range(3):
      info = env.step(np.zeros(2))[3]
    assert info['episode']['l'] == 3
    assert env.get_total_steps() == 4 and env.get_episode_lengths() == [3]
    assert env.get_episode_rewards() == [info['episode']['r']]
    assert env.get_episode_times() == [info['episode']['t']]
  lines = (tmp_path / '0.0.monitor.csv').read_text().splitlines()
  assert lines[0].startswith('# {"t_start": ') and 'ToyPoint-v0' in lines[0]
  assert lines[1] == 'r,l,t' and len(lines) == 4
  assert lines[2].startswith(f'{info["episode"]["r"]},3,')


class Doubled(vec_env.VecEnvWrapper):
  """Wrapper of a user, with the two methods that the original asks for."""

  def reset(self):
    return self.venv.reset()

  def step_wait(self):
    obs, reward, done, info = self.venv.step_wait()
    return obs, 2 * reward, done, info


def test_wrapper():
  env = toy.vec_env(3, [0, 1])
  wrapped = Doubled(env)
  assert wrapped.num_envs == 2 and wrapped.unwrapped is env
  assert wrapped.action_space is env.action_space
  wrapped.reset()
  _, rewards, _, _ = wrapped.step(np.ones((2, 2)))
  np.testing.assert_array_equal(rewards, [-2, -2])
  assert Doubled(env, action_space='own').action_space == 'own'
  wrapped.close()


def test_arguments_of_processes():
  """In the order of the original; two environments share a process."""
  makers = [functools.partial(toy.ToyPoint, 3, x) for x in range(2)]
  env = vec_env.SubprocVecEnv(makers, None, 'fork', 2)
  assert len(env.reset()['observation']) == 2
  assert len(multiprocessing.active_children()) == 1
  env.close()


def test_early_reset():
  """Is an error unless it is allowed, as in the original."""
  env = monitor.Monitor(toy.ToyPoint(2, 0), None)
  play_episodes(env, 2)
  with pytest.raises(RuntimeError, match='call reset'):
    env.step(np.zeros(2))
  env.reset()
  with pytest.raises(RuntimeError, match='allow_early_resets=True'):
    env.reset()


class Levels(toy.ToyPoint):
  """Environment with an argument of `reset`, and without a spec."""

  def __init__(self):
    super().__init__(1, 0)
    self.spec = None

  def reset(self, level):
    return super().reset()


def test_further_columns(tmp_path):
  """From the arguments of `reset` and from the last info."""
  keys = ('level',), ('is_success',)
  env = monitor.Monitor(Levels(), str(tmp_path), True, *keys)
  with pytest.raises(ValueError, match='lacks level'):
    env.reset()
  env.reset(level='a,b')
  row = env.step(np.zeros(2))[3]['episode']
  assert list(row) == ['r', 'l', 't', 'level', 'is_success']
  path = str(tmp_path / 'monitor.csv')
  assert monitor.get_monitor_files(str(tmp_path)) == [path]
  with open(path) as file_:
    assert '"env_id": null' in file_.readline()
    assert next(csv.DictReader(file_))['level'] == 'a,b'
  with pytest.raises(errors.UsageError, match='columns r,l,t,level'):
    monitor.Monitor(Levels(), path)
  env = monitor.Monitor(toy.ToyPoint(1, 0), None, info_keywords=('x',))
  env.reset()
  with pytest.raises(errors.UsageError, match="has no x, only .'is_success'"):
    env.step(np.zeros(2))


def test_results(tmp_path):
  with pytest.raises(monitor.LoadMonitorResultsError, match='no files'):
    pytest.importorskip('pandas') and monitor.load_results(str(tmp_path))
  for name in '01':
    env = monitor.Monitor(toy.ToyPoint(2, 0), str(tmp_path / name))
    play_episodes(env, 2)
  frame = monitor.load_results(str(tmp_path))
  assert list(frame['l']) == [2] * 4 and frame['t'].is_monotonic_increasing


def play_episodes(env, count):
  """Play whole episodes of a toy; returns their rows."""
  rows = []
  for _ in range(count):
    env.reset()
    done = False
    while not done:
      _, _, done, info = env.step(np.zeros(2))
    rows.append(info['episode'])
  return rows


def read_monitor(path):
  """Header and times of a file, as baselines.bench.load_results reads it."""
  with open(path) as file_:
    header = json.loads(file_.readline().removeprefix('# '))
    return header, [float(x['t']) for x in csv.DictReader(file_)]


def test_monitor_times_continue(tmp_path, monkeypatch):
  """Seconds count from the start in the header, also in a later process."""
  now = [1000.0]
  for clock in ('time', 'monotonic'):
    monkeypatch.setattr(episode_log.time, clock, lambda: now[0])
  path = str(tmp_path / '0.0')
  first = monitor.Monitor(toy.ToyPoint(3, 0), path)
  now[0] += 5
  play_episodes(first, 1)
  now[0] += 100
  second = monitor.Monitor(toy.ToyPoint(3, 0), path)
  now[0] += 2
  (row,) = play_episodes(second, 1)
  header, times = read_monitor(path + '.monitor.csv')
  assert header['t_start'] == 1000
  assert times == [5, 107] and row['t'] == 107


def test_monitor_forgets_what_is_played_again(tmp_path):
  """Episodes after a checkpoint are not doubled when it is continued."""
  path = str(tmp_path / '0.0')
  first = monitor.Monitor(toy.ToyPoint(3, 0), path)
  kept = play_episodes(first, 2)
  state = first.get_state()
  play_episodes(first, 3)
  second = monitor.Monitor(toy.ToyPoint(3, 0), path)
  second.set_state(state)
  kept += play_episodes(second, 1)
  assert read_monitor(path + '.monitor.csv')[1] == [x['t'] for x in kept]
  # A row that was cut off goes even if there are no others to remove.
  with open(path + '.monitor.csv', 'a') as file_:
    file_.write('-1.0,3,0.')  # The process died here.
  third = monitor.Monitor(toy.ToyPoint(3, 0), path)
  third.set_state(second.get_state())
  kept += play_episodes(third, 1)
  assert read_monitor(path + '.monitor.csv')[1] == [x['t'] for x in kept]
  # Another folder has other episodes: nothing is taken away there.
  other = monitor.Monitor(toy.ToyPoint(3, 0), str(tmp_path / 'other'))
  other.set_state(state)
  play_episodes(other, 1)
  other.set_state(other.get_state())
  assert len(read_monitor(tmp_path / 'other.monitor.csv')[1]) == 1


def test_monitor_begins_anew(tmp_path):
  """A training without checkpoint does not add to an earlier one's rows."""
  for rank in (0, 1):
    env = monitor.Monitor(toy.ToyPoint(3, 0), str(tmp_path / f'{rank}.0'))
    play_episodes(env, 2)
  monitor.begin_anew(str(tmp_path), rank=1)
  assert os.listdir(tmp_path) == ['0.0.monitor.csv']


@pytest.mark.parametrize('text', [b'nonsense', b'\xff\x00\n'])
def test_damaged_monitor(text, tmp_path):
  (tmp_path / '0.0.monitor.csv').write_bytes(text)
  with pytest.raises(errors.UsageError, match='has no header'):
    monitor.Monitor(toy.ToyPoint(3, 0), str(tmp_path / '0.0'))


def test_damaged_rows_of_a_monitor(tmp_path):
  """They do not prevent that a training continues, or goes back."""
  path = tmp_path / '0.0.monitor.csv'
  play_episodes(monitor.Monitor(toy.ToyPoint(3, 0), str(tmp_path / '0.0')), 3)
  lines = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(b''.join([*lines[:3], b'\xff\x00\n', lines[4], b'\0\0']))
  env = monitor.Monitor(toy.ToyPoint(3, 0), str(tmp_path / '0.0'))
  assert env.episodes == 3
  env.truncate(1)
  assert path.read_bytes() == b''.join(lines[:3])


def test_video_schedule(tmp_path, monkeypatch):
  """Resets begin no video; each has as many frames as asked for."""
  written = []
  monkeypatch.setattr(
    video,
    'write_video',
    lambda path, images, fps: written.append((path, len(images))),
  )
  env = toy.vec_env(4, [0, 1])
  image = np.zeros((6, 8, 3), np.uint8)
  monkeypatch.setattr(env, 'get_images', lambda: [image, image])
  recorder = video_recorder.VecVideoRecorder(
    env, str(tmp_path), lambda step: step % 5 == 0 and step > 0, 3
  )
  for _ in range(3):
    recorder.reset()
    for _ in range(4):
      recorder.step(np.zeros((2, 2)))
  recorder.close()
  assert [x for _, x in written] == [4, 3]
  assert written[0][0].endswith('.video000005.mp4')
  assert env.render('rgb_array').shape == (12, 8, 3)
