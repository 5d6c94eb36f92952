"""Files of demonstrations, their recording, and figures of results."""

import io
import json
import os
import pickle
import signal
import zipfile

import numpy as np
import pytest

from agents.run import errors, log, stopping
from baselines_her import data_generation, demonstrations, plot
from tests.baselines_her import toy

DIMS = {'o': 25, 'g': 3, 'u': 4, 'info_is_success': 1}


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
  """Two episodes of the scripted controller in the real simulator."""
  path = str(tmp_path_factory.mktemp('demo') / 'demo.npz')
  assert data_generation.run([f'--out={path}', '--num_episodes=2']) == 0
  return path


def test_controller_succeeds(recorded):
  data = demonstrations.read(recorded)
  assert data['acs'].shape == (2, 50, 4)
  assert data['obs'].shape == (2, 51) and data['info'].shape == (2, 50)
  assert [x[-1]['is_success'] for x in data['info']] == [1, 1]


def test_first_stage_looks_back():
  """It ends a step after the gripper has arrived, as in the original."""

  def observe(height):
    """The gripper so high above the place where the first stage ends."""
    observation = np.zeros(25)
    observation[6:9] = [0, 0, -0.03 - height]
    return {'observation': observation, 'desired_goal': np.ones(3)}

  controller = data_generation.Controller()
  actions = [controller.act(observe(x)) for x in (0.1, 0.05, 0.001, 0.001)]
  assert [x[3] for x in actions] == [0.05, 0.05, 0.05, -0.005]
  heights = [x[2] for x in actions]
  np.testing.assert_allclose(heights, [-0.6, -0.3, -0.006, -0.186])
  # Where it begins in place, there is nothing to look back at.
  assert data_generation.Controller().act(observe(0.001))[3] == -0.005


def test_episodes(recorded):
  """Batches of one, as long as what the replay takes."""
  data = demonstrations.read(recorded)
  episodes = list(demonstrations.load(recorded, 2, 50, DIMS))
  assert len(episodes) == 2
  for number, episode in enumerate(episodes):
    shapes = {key: value.shape for key, value in episode.items()}
    assert shapes == {
      'o': (1, 50, 25),
      'ag': (1, 50, 3),
      'g': (1, 49, 3),
      'u': (1, 49, 4),
      'info_is_success': (1, 49, 1),
    }
    for t in (0, 48):
      obs = data['obs'][number, t]
      np.testing.assert_array_equal(episode['o'][0, t], obs['observation'])
      np.testing.assert_array_equal(episode['ag'][0, t], obs['achieved_goal'])
      np.testing.assert_array_equal(episode['g'][0, t], obs['desired_goal'])
      np.testing.assert_array_equal(episode['u'][0, t], data['acs'][number, t])


def test_precision(recorded, tmp_path):
  """Normalizers add up floats of 32 bits in 32 bits, as in the original."""
  data = demonstrations.read(recorded)
  for observation in data['obs'].flat:
    observation['desired_goal'] = np.float32(observation['desired_goal'])
  path = str(tmp_path / 'demo.npz')
  np.savez(path, **{**data, 'acs': np.ones(data['acs'].shape, np.int8)})
  episode = next(demonstrations.load(path, 1, 50, DIMS))
  found = {key: str(episode[key].dtype) for key in ('o', 'g', 'u')}
  assert found == {'o': 'float64', 'g': 'float32', 'u': 'float64'}


def shorten(data, *lengths):
  """Return the lists of episodes with other lengths."""
  steps = {'acs': 0, 'obs': 1, 'info': 0}
  return {
    key: [list(data[key][i][: n + more]) for i, n in enumerate(lengths)]
    for key, more in steps.items()
  }


def test_lengths_differ(recorded, tmp_path):
  """The first T steps count, as in the original; others are not needed."""
  data, path = demonstrations.read(recorded), str(tmp_path / 'demo.npz')
  demonstrations.save(path, **shorten(data, 49, 50))
  usual = list(demonstrations.load(recorded, 2, 50, DIMS))
  found = list(demonstrations.load(path, 2, 50, DIMS))
  for one, other in zip(usual, found, strict=True):
    assert one.keys() == other.keys()
    for key, value in one.items():
      np.testing.assert_array_equal(value, other[key])
      assert value.dtype == other[key].dtype
  # Those that are too short do not matter unless they are used.
  demonstrations.save(path, **shorten(data, 49, 40))
  assert len(list(demonstrations.load(path, 1, 50, DIMS))) == 1
  with pytest.raises(errors.UsageError, match='Demonstration 1 .* 40 entries'):
    next(demonstrations.load(path, 2, 50, DIMS))


@pytest.mark.parametrize(
  'counts',
  [(50, 50, 50), (51, 50, 49), (51, 51, 51), (52, 50, 50), (50, 49, 49)],
)
def test_what_is_not_read(counts, recorded, tmp_path):
  """Only the first T observations, and T - 1 actions and infos, count."""
  data, path = demonstrations.read(recorded), str(tmp_path / 'demo.npz')
  keys = dict(zip(('obs', 'acs', 'info'), counts))
  usual = list(demonstrations.load(recorded, 2, 50, DIMS))
  longer = {k: np.concatenate([v, v[:, -2:]], 1) for k, v in data.items()}
  cut = {k: longer[k][:, :count] for k, count in keys.items()}
  # Demonstrations that are not used may be anything.
  ragged = {k: np.array([*map(list, v), None], object) for k, v in cut.items()}
  ragged['obs'] = ragged['obs'][:2]
  for content in (cut, ragged):
    np.savez(path, **content)
    found = list(demonstrations.load(path, 2, 50, DIMS))
    for one, other in zip(usual, found, strict=True):
      for key, value in one.items():
        np.testing.assert_array_equal(value, other[key])
        assert value.dtype == other[key].dtype


@pytest.mark.parametrize('key, least', [('obs', 50), ('acs', 49), ('info', 49)])
def test_too_short(key, least, recorded, tmp_path):
  data, path = demonstrations.read(recorded), str(tmp_path / 'demo.npz')
  np.savez(path, **{**data, key: data[key][:, : least - 1]})
  wanted = f'Demonstration 0 .* {least - 1} entries of {key}, .* {least};'
  with pytest.raises(errors.UsageError, match=wanted):
    next(demonstrations.load(path, 2, 50, DIMS))
  np.savez(path, **{**data, key: data[key][:1]})
  with pytest.raises(errors.UsageError, match='--num_demo=1'):
    next(demonstrations.load(path, 2, 50, DIMS))


def test_python_2(tmp_path):
  """Its pickles have texts of bytes, as in this number."""
  number = (
    b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'f8'\nI0\nI1\ntR"
    b"(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbS'\\x00\\x00\\x00\\x00\\x00\\x00\\xf0?'\ntR"
  )
  goals = dict.fromkeys(('achieved_goal', 'desired_goal'), [2.0])
  arrays = {
    'acs': np.ones([1, 2, 1]),
    'obs': np.array([[{'observation': [1234.5], **goals}] * 3], object),
    'info': np.array([[{}] * 2], object),
  }
  path = tmp_path / 'demo.npz'
  with zipfile.ZipFile(path, 'w') as archive:
    for key, array in arrays.items():
      content = io.BytesIO()
      np.lib.format.write_array(content, array)
      header, _, _ = content.getvalue().partition(b'\n')
      values = content.getvalue()[len(header) + 1 :]
      if array.dtype == object:
        values = pickle.dumps(array, 0).replace(b'F1234.5\n', number)
      archive.writestr(f'{key}.npy', header + b'\n' + values)
  (episode,) = demonstrations.load(str(path), 1, 3, {'o': 1, 'g': 1, 'u': 1})
  assert episode['o'].tolist() == [[[1], [1], [1]]]


def test_files_that_do_not_fit(recorded, tmp_path):
  for args, message in (
    ((3, 50, DIMS), '--num_demo=2'),
    ((2, 100, DIMS), 'at least 99'),
    ((1, 50, {**DIMS, 'o': 10}), 'o of size 25'),
  ):
    with pytest.raises(errors.UsageError, match=message):
      list(demonstrations.load(recorded, *args))
  data = demonstrations.read(recorded)
  for number, damage in enumerate(
    (
      lambda: data['acs'].__setitem__((1, 3), np.nan),
      lambda: data['info'][1, 3].pop('is_success'),
      lambda: data['obs'].__setitem__((1, 3), None),
    )
  ):
    damage()
    path = str(tmp_path / f'{number}.npz')
    np.savez(path, **data)
    with pytest.raises(errors.UsageError, match='Demonstration 1 in'):
      list(demonstrations.load(path, 2, 50, DIMS))
    assert len(list(demonstrations.load(path, 1, 50, DIMS))) == 1
  (tmp_path / 'bad.npz').write_bytes(b'nonsense')
  np.savez(tmp_path / 'other.npz', a=1)
  np.savez(
    tmp_path / 'shape.npz',
    acs=np.zeros((2, 3, 1)),
    obs=np.zeros((2, 3), object),
    info=np.zeros((2, 3), object),
  )
  for name in ('bad', 'other', 'shape', 'none'):
    with pytest.raises(errors.UsageError, match='Cannot read demonstrations'):
      demonstrations.read(str(tmp_path / f'{name}.npz'))


def put(key, value):
  """Change what one observation of the second demonstration holds."""
  return lambda data: data['obs'][1, 3].__setitem__(key, value)


def as_type(dtype):
  """Write actions as something else than floats."""
  return lambda data: data.update(acs=data['acs'].astype(int).astype(dtype))


CONTENTS = {
  'text': (as_type('U5'), 'Demonstration 0 .*u is of type <U5, which is no'),
  'dates': (as_type('datetime64[s]'), 'Demonstration 0 .*datetime64'),
  'durations': (as_type('timedelta64[s]'), 'Demonstration 0 .*timedelta64'),
  'complex': (as_type(complex), 'Demonstration 0 .*complex128'),
  'NaN': (put('achieved_goal', np.full(3, np.nan)), 'Demonstration 1 .*ag has'),
  'word': (put('observation', 'seen'), 'Demonstration 1 '),
  'fewer': (put('observation', np.zeros(24)), 'Demonstration 1 '),
  'no goal': (lambda x: x['obs'][1, 3].pop('desired_goal'), 'Demonstration 1 '),
  'no dict': (lambda x: x['obs'].fill(5), 'obs has 5 instead of dicts'),
  'no list of episodes': (
    lambda x: x.update(obs=x['obs'][0]),
    'obs has dicts instead of episodes',
  ),
  'no steps': (
    lambda x: x.update(
      acs=x['acs'][:, :0], obs=x['obs'][:, :1], info=x['info'][:, :0]
    ),
    'it has no steps',
  ),
  'no episodes': (
    lambda x: x.update({key: value[:0] for key, value in x.items()}),
    'it has no steps',
  ),
  'matrices': (
    lambda x: x.update(acs=np.zeros((2, 50, 2, 4))),
    'u of size 2x4, but the task has size 4',
  ),
  'numbers': (
    lambda x: x.update(acs=np.zeros((2, 50))),
    'u of size none, but the task has size 4',
  ),
  'too short': (
    lambda x: x.update(acs=x['acs'][:, :-2]),
    'Demonstration 0 .* 48 entries of acs',
  ),
  'none': (
    lambda x: x.update(info=np.array([list(x['info'][0]), None], object)),
    'Demonstration 1 .* 0 entries of info',
  ),
  'no list': (
    lambda x: x.update(
      info=np.array([list(x['info'][0]), dict.fromkeys(range(50))], object)
    ),
    'Demonstration 1 .* does not fit',
  ),
}


@pytest.mark.parametrize('name', CONTENTS)
def test_any_contents(name, recorded, tmp_path):
  """A sentence with the file and the reason; the file stays as it is."""
  change, reason = CONTENTS[name]
  data = demonstrations.read(recorded)
  change(data)
  path = tmp_path / 'demo.npz'
  np.savez(path, **data)
  content = path.read_bytes()
  with pytest.raises(errors.UsageError, match=reason) as info:
    list(demonstrations.load(str(path), 2, 50, DIMS))
  assert str(path) in str(info.value)
  assert path.read_bytes() == content


def test_recording_refuses(capsys, tmp_path):
  for words in ('--out=demo.txt', '--out=/proc/x/d.npz', '--num_episodes=0'):
    assert data_generation.run([words]) == 2
    assert capsys.readouterr().err.startswith('Error: ')


def test_interrupted_recording(capsys, tmp_path, monkeypatch):
  """It writes nothing that the same command could continue."""

  def interrupt(env):
    os.kill(os.getpid(), signal.SIGINT)
    stopping.sleep(10)

  monkeypatch.setattr(data_generation, 'record_episode', interrupt)
  assert data_generation.run([f'--out={tmp_path}/demo.npz']) == 0
  error = capsys.readouterr().err
  assert error.endswith('Stopped. Repeat the command to start over.\n')
  assert os.listdir(tmp_path) == []


def write_run(folder, success, env='FetchReach-v1', strategy='future'):
  folder.mkdir(parents=True)
  params = {'env_name': env, 'replay_strategy': strategy}
  (folder / 'params.json').write_text(json.dumps(params))
  lines = [f'{epoch},{value}' for epoch, value in enumerate(success)]
  (folder / 'progress.csv').write_text(
    '\n'.join(['epoch,test/success_rate', *lines]) + '\n'
  )


def test_figures(tmp_path, capsys):
  """Runs are grouped; repeated epochs count once, the later one."""
  write_run(tmp_path / 'runs' / 'a', [0.1, 0.2, 0.3])
  write_run(tmp_path / 'runs' / 'b', [0.3, 0.4])
  write_run(tmp_path / 'runs' / 'c', [0.5], 'FetchPushDense-v1', 'none')
  with open(tmp_path / 'runs' / 'b' / 'progress.csv', 'a') as file_:
    file_.write('1,0.8\n')
  runs = plot.load_runs([str(tmp_path / 'runs')])
  found = sorted(
    (env, run.label, list(success))
    for run in runs
    for env, (_, success) in run.curves.items()
  )
  assert found == [
    ('FetchPush-v1', 'ddpg-dense', [0.5]),
    ('FetchReach-v1', 'her-sparse', [0.1, 0.2, 0.3]),
    ('FetchReach-v1', 'her-sparse', [0.3, 0.8]),
  ]
  (tmp_path / 'reference.csv').write_text(
    'seed,epoch,timesteps,test_success_rate\n0,0,500,0.5\n0,1,1000,1\n'
  )
  words = [str(tmp_path / 'runs'), f'--out={tmp_path}', '--smooth=1']
  assert plot.run([*words, f'--reference={tmp_path}/reference.csv']) == 0
  assert capsys.readouterr().out.count('Wrote ') == 2
  for name in ('FetchPush-v1', 'FetchReach-v1'):
    content = (tmp_path / f'fig_{name}.png').read_bytes()
    assert content.startswith(b'\x89PNG') and len(content) > 5000
  assert plot.run([str(tmp_path / 'none')]) == 2
  assert plot.run([*words, '--reference=none.csv']) == 2


def test_unnumbered_epochs(tmp_path):
  """As in the files of some forks of baselines, in which a row is an epoch."""
  write_run(tmp_path / 'a', [0.1, 0.2])
  (tmp_path / 'a' / 'progress.csv').write_text(
    'test/success_rate,train/episode\n0.1,50\n,60\n0.3,100\n'
  )
  (run,) = plot.load_runs([str(tmp_path)])
  epochs, success = run.curves['FetchReach-v1']
  assert list(epochs) == [1, 3] and list(success) == [0.1, 0.3]


def test_environment_steps(tmp_path, caplog):
  """They are in another file, which early runs and baselines' lack."""
  write_run(tmp_path / 'a', [0.1, 0.2, 0.3])
  writer = log.MetricsWriter(str(tmp_path / 'a'))
  for epoch in (0, 1):
    writer.write('epoch', epoch, 40 * (epoch + 1), {}, 500 * (epoch + 1))
  write_run(tmp_path / 'b', [0.1])
  (run,) = plot.load_runs([str(tmp_path)], 'steps')
  steps, success = run.curves['FetchReach-v1']
  assert list(steps) == [500, 1000] and list(success) == [0.1, 0.2]
  assert f'Left out {tmp_path / "b"}, as' in caplog.text


def test_smoothing():
  """It keeps constants, also of short runs."""
  np.testing.assert_allclose(plot.smooth(np.ones(2)), [1, 1])
  np.testing.assert_allclose(plot.smooth(np.ones(200)), 1)
  steps = plot.smooth(np.repeat([0.0, 1], 100))
  assert 0 < steps[99] < steps[100] < 1 and steps[0] == 0


def test_toy_is_goal_shaped():
  """The reward of the toy tells what `is_success` tells."""
  env = toy.ToyPoint(5, 0)
  env.reset()
  for _ in range(5):
    obs, reward, _, info = env.step(np.ones(2))
    assert reward == info['is_success'] - 1
  assert set(obs) == {'observation', 'achieved_goal', 'desired_goal'}
