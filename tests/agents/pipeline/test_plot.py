"""Figures of logged sessions."""

import json
import os

import numpy as np
from PIL import Image

from agents.pipeline import logs, plot
from agents.run import files
from agents.run import plot as curves


def make_session(root, name, epochs=6, clock=10.0, offset=0.0):
  """Log some epochs; returns the folder."""
  path = os.path.join(str(root), name)
  os.makedirs(path)
  monitor = logs.Monitor(os.path.join(path, 'varlog.json'))
  profiler = logs.Profiler(os.path.join(path, 'prolog.json'))
  resources = logs.Monitor(os.path.join(path, 'monlog.json'))
  for epoch in range(1, epochs + 1):
    monitor.set_meta('epoch', epoch)
    monitor.set_meta('clock', clock * epoch)
    for value in (-1, 1):
      monitor('/reward/test/episodic', epoch + offset + value)
    monitor('/update/loss', 1 / epoch)
    monitor.pack()
    with profiler(''), profiler('train'), profiler('envstep'):
      pass
    profiler.pack(monitor.meta)
    resources.set_meta('clock', clock * epoch)
    resources('/cpu/all/total', 50)
    resources.pack()
  return path


def run(capsys, *args):
  """Exit code, names of the files drawn, and what was said about errors."""
  code = plot.run([str(x) for x in args])
  captured = capsys.readouterr()
  paths = [
    line.removeprefix('Wrote ').removesuffix('.')
    for line in captured.out.splitlines()
  ]
  return code, paths, captured.err


def assert_drawn(path):
  """The picture is complete and not empty."""
  with Image.open(path) as image:
    pixels = np.array(image.convert('RGB'))
  assert min(pixels.shape[:2]) > 200
  assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20


def test_one_session(tmp_path, capsys):
  """One picture per variable, the profile, and the resources."""
  session = make_session(tmp_path, 'a')
  code, paths, _ = run(capsys, session)
  assert code == 0
  assert sorted(paths) == [
    os.path.join(session, 'plots', f'{x}.png')
    for x in ('profile', 'resources', 'reward_test_episodic', 'update_loss')
  ]
  assert sorted(os.listdir(os.path.join(session, 'plots'))) == sorted(
    os.path.basename(x) for x in paths
  )
  for path in paths:
    assert_drawn(path)


def test_groups(tmp_path, capsys):
  """Runs are averaged within a group; each group has its own profile."""
  runs = [make_session(tmp_path, f'a{i}', 6 - i, 7 + i) for i in range(3)]
  other = [make_session(tmp_path, 'b')]
  code, paths, _ = run(
    capsys, *runs, '--group', *other, '--output', tmp_path / 'out'
  )
  assert code == 0
  names = sorted(os.path.basename(x) for x in paths)
  assert names == [
    'profile_1.png',
    'profile_2.png',
    'resources_1.png',
    'resources_2.png',
    'reward_test_episodic.png',
    'update_loss.png',
  ]
  assert plot.make_labels([runs, other]) == ['a', 'b']
  assert plot.make_labels([other, other]) == ['1: b', '2: b']


def test_sessions_named_twice(tmp_path, capsys, monkeypatch):
  """They are one run of their group, whose times count once."""
  session = make_session(tmp_path, 'a')
  (tmp_path / 'latest').symlink_to(session)
  counts = []
  monkeypatch.setattr(
    plot, 'draw_profile', lambda label, tables: counts.append(len(tables))
  )
  monkeypatch.setattr(curves, 'save', lambda figure, path: path)
  draw = curves.draw

  def count(title, groups, style):
    counts.append([len(x) for x in groups.values()])
    return draw(title, groups, style)

  monkeypatch.setattr(curves, 'draw', count)
  names = [session, f'{session}/', tmp_path / 'latest']
  assert run(capsys, *names, '--group', session)[0] == 0
  assert counts == [[1, 1], [1, 1], 1, 1]


def test_clock(tmp_path, capsys):
  runs = [make_session(tmp_path, f'a{i}', 6, 7 + i) for i in range(2)]
  args = ('--keyx', 'clock', '--output', tmp_path)
  code, paths, _ = run(capsys, *runs, *args)
  assert code == 0
  assert 'update_loss.png' in [os.path.basename(x) for x in paths]
  for path in paths:
    assert_drawn(path)


def test_names(tmp_path, capsys):
  """Only these variables are drawn, and nothing else."""
  session = make_session(tmp_path, 'a')
  _, paths, _ = run(capsys, session, '--names', '*loss*')
  assert [os.path.basename(x) for x in paths] == ['update_loss.png']


def test_bad_input(tmp_path, capsys):
  """One sentence and exit code 2."""
  session = make_session(tmp_path, 'a')
  damaged = make_session(tmp_path, 'b')
  with open(os.path.join(damaged, 'varlog.json'), 'a') as file_:
    file_.write('{"data": 3}\n')
  without = make_session(tmp_path, 'c')
  with open(os.path.join(without, 'prolog.json'), 'w') as file_:
    file_.write('{"meta": {}, "data": {"/": {"occurs": 1}}}\n')
  empty = str(tmp_path)
  open(os.path.join(empty, 'file'), 'w').close()
  for args, words in {
    (): 'No session given',
    (empty,): 'Cannot read varlog.json',
    (session, '--group', empty): 'Cannot read varlog.json',
    (damaged,): 'varlog.json is damaged',
    (without,): 'prolog.json of c is damaged',
    (session, '--keyx', 'frame'): "Nothing was logged over 'frame'",
    (session, '--window', '0'): '--window: it is 0',
    (session, '--names', '/update/los'): 'Did you mean /update/loss',
    (session, '--output', f'{empty}/file'): 'Choose another folder',
    (session, '--keyx', 'hours'): 'invalid choice',
  }.items():
    code, paths, error = run(capsys, *args)
    assert (code, paths) == (2, []), args
    assert words in error and error.count('\n') == 1, error


def test_curves(tmp_path):
  """Means of packs; repeated abscissas are averaged, NaN are left out."""
  session = make_session(tmp_path, 'a', 3)
  x, y = plot.load_curves(session, 'epoch')['/reward/test/episodic']
  assert x.tolist() == [1, 2, 3] and y.tolist() == [1, 2, 3]
  monitor = logs.Monitor(os.path.join(session, 'varlog.json'))
  for epoch, value in ((4, 1), (4, 3), (5, np.nan)):
    monitor.set_meta('epoch', epoch)
    monitor('/windowed', value, window=1)
  x, y = plot.load_curves(session, 'epoch')['/windowed']
  assert x.tolist() == [4] and y.tolist() == [2]


def describe(session, agent, task):
  """Add the parameters of a session."""
  params = {'agents': {'agent': {'name': f'package.{agent}'}}}
  files.write_yaml(os.path.join(session, 'params.yaml'), params)
  with open(os.path.join(session, 'cpanel.json'), 'w') as file_:
    json.dump({'model_name': task}, file_)


def test_lines(tmp_path):
  """One per algorithm and environment, also within a group."""
  sessions = [make_session(tmp_path, f'a{i}', 1) for i in range(4)]
  for number, session in enumerate(sessions[:3]):
    describe(session, 'PPOAgent' if number else 'DDPGAgent', 'Pendulum-v1')
  assert plot.describe(sessions[3]) == ''

  def name(*groups):
    runs = plot.load_runs(groups, 'epoch')
    return {label: len(x) for label, x in curves.group(runs).items()}

  mixed = {'DDPG Pendulum-v1': 1, 'PPO Pendulum-v1': 2}
  assert name(sessions[:3]) == mixed
  assert name(sessions[1:2], sessions[2:3], sessions[3:]) == {
    'PPO Pendulum-v1, sessions a1': 1,
    'PPO Pendulum-v1, sessions a2': 1,
    'a3': 1,
  }


def test_scopes():
  """Time of a scope itself and within it, in the order of the tree."""
  rows = plot.list_scopes(
    [
      {
        '/': {'occurs': 1, 'seconds': [3, 7], 'outside': 5},
        '/train': {'occurs': 2, 'seconds': 3},
        '/train/a/b': {'occurs': 9, 'seconds': 2},
      },
      {
        '/': {'occurs': 1, 'seconds': 0},
        '/update/x': {'occurs': 2, 'seconds': 6},
        '/test': {'occurs': 1, 'seconds': 5},
      },
    ]
  )
  found = [(x['path'], x['own'], x['inner']) for x in rows]
  assert found == [
    ('/', 1, 14),
    ('/test', 5, 0),
    ('/train', 1, 2),
    ('/train/a/b', 2, 0),
    ('/update/x', 6, 0),
  ]
  assert sum(x['own'] for x in rows) == 15
