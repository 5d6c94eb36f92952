"""Folders of sessions, and which process may use them."""

import contextlib
import errno
import json
import os
import re
import shutil
import types

import numpy as np
import pytest

from agents.pipeline import checkpoints, main, runner, session, visdom_mirror
from agents.pipeline.loader import Loader
from agents.pipeline.session import Session
from agents.run import checkpoint, errors, files, folder, wandb_mirror
from tests import counting


def start(tmp_path, *args, name='run', **cpanel):
  """Exit code of a run of the toy in a new session."""
  return main.entrypoint(
    ['--params', 'tests.agents.pipeline.toy', '--no-monitor-cpu']
    + ['--session-path', str(tmp_path / 'all'), '--cpanel', json.dumps(cpanel)]
    + (['--session-name', name] if name else [])
    + list(args)
  )


def load(path, *args):
  """Exit code of a run that continues or shows a session."""
  return main.entrypoint(
    ['--load-checkpoint', str(path), '--trust', 'tests', *args]
  )


def test_fresh_session(tmp_path):
  assert start(tmp_path, '--msg', 'a b') == 0
  path = tmp_path / 'all' / 'run'
  expected = {
    *('__init__.py', 'saam.py', 'cpanel.json', 'params.yaml', 'report.log'),
    *('varlog.json', 'prolog.json', 'running.lock', 'done.lock'),
    *('checkpoints', 'monitor', 'tensorboard', 'modules'),
  }
  assert expected <= set(os.listdir(path))
  assert sorted(os.listdir(path / 'checkpoints')) == [
    f'checkpoint-{x}' for x in range(3)
  ]
  memories = path.glob('checkpoints/*/memory0.npz')
  assert [x.parent.name for x in memories] == ['checkpoint-2']
  assert set(os.listdir(path / 'checkpoints' / 'checkpoint-2')) >= {
    *('model.ckpt.index', 'rank0.json', 'rank0.npz'),
    *('runner.yaml', 'COMPLETE'),
  }
  params = files.read_yaml(str(path / 'params.yaml'))
  assert params['session_name'] == 'run' and params['session_msg'] == 'a b'
  assert "--msg 'a b'" in params['session_cmd']
  assert os.path.exists(path / 'modules' / 'agents' / 'pipeline' / 'runner.py')
  assert not list((path / 'modules').glob('**/*.pyc'))
  assert 'Best test return' in (path / 'report.log').read_text()


def test_loader(tmp_path, monkeypatch):
  """A session is a package that knows what it holds."""
  assert start(tmp_path, seed=5) == 0
  monkeypatch.syspath_prepend(str(tmp_path / 'all'))
  from run import loader  # The folder of the session is a package.

  assert isinstance(loader, Loader)
  assert loader.cpanel['seed'] == 5
  assert loader.params['runner']['randargs'] == {'seed': 5}
  assert list(loader.checkpoints) == [0, 1, 2]
  log = loader.getVarlogLoader()['/reward/train/episodic']
  np.testing.assert_array_equal(log['epoch'], [1, 2])
  np.testing.assert_array_equal(log['frame'], [3, 6])
  np.testing.assert_array_equal(log['num'], [3, 3])
  assert '/train' in loader.getPrologLoader()


@pytest.mark.parametrize('args', [(), ('--play',)])
def test_dry_run_leaves_nothing(tmp_path, monkeypatch, args):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv('HOME', str(tmp_path))
  assert start(tmp_path, '--dry-run', *args, name=None) == 0
  assert not list(tmp_path.iterdir())


def test_session_only(tmp_path):
  assert start(tmp_path, '--create-session-only') == 0
  path = tmp_path / 'all' / 'run'
  assert os.listdir(path / 'checkpoints') == ['checkpoint-0']
  flags = '--session-path=x', '--session-name=x', '--msg=x', '--log-level=1'
  assert load(path, '--resume', *flags) == 0
  assert len(os.listdir(path / 'checkpoints')) == 3
  told = re.findall(
    'Flag (.*) has no effect with (.*)\\.', (path / 'report.log').read_text()
  )
  assert told == [
    ('--session-path', '--load-checkpoint'),
    ('--session-name', '--resume'),
    ('--msg', '--resume'),
  ]


def test_generated_name(tmp_path):
  assert start(tmp_path, '--create-session-only', name=None) == 0
  (name,) = (x for x in os.listdir(tmp_path / 'all') if x[0] != '_')
  assert re.fullmatch(r'session_20\d{12}_[0-9a-f]{4}', name)


def test_name_that_is_taken(tmp_path, capsys):
  assert start(tmp_path) == 0
  before = (tmp_path / 'all' / 'run' / 'params.yaml').read_text()
  assert start(tmp_path, seed=1) == 2
  error = capsys.readouterr().err.strip().splitlines()[-1]
  assert 'exists; resume it with --load-checkpoint' in error
  assert (tmp_path / 'all' / 'run' / 'params.yaml').read_text() == before


def test_session_that_cannot_start(tmp_path, capsys):
  """Nothing is left that would be in the way of the next try."""
  repeal = '{"agents.mean.name": "tests.agents.pipeline.toy.MeanAgnt"}'
  assert start(tmp_path, '--repeal', repeal) == 2
  assert 'Did you mean MeanAgent' in capsys.readouterr().err
  assert not os.listdir(tmp_path)
  assert start(tmp_path, max_iter=1) == 0
  path = tmp_path / 'all' / 'run'
  assert load(path, '--resume', '--repeal', repeal) == 2
  assert load(path, '--resume') == 0


@pytest.mark.parametrize(
  'place, error',
  [
    ('agents.pipeline.logs.Monitor.__init__', OSError('disk full')),
    ('agents.pipeline.runner.Runner.start', KeyboardInterrupt()),
    ('agents.pipeline.session.copy_modules', errors.UsageError('no module')),
    ('agents.pipeline.session.Session.tf_session', OSError('no TMPDIR')),
  ],
)
def test_start_that_fails(tmp_path, monkeypatch, place, error):
  """Whatever the reason, the name of the session can be used again."""

  def fail(*unused_args, **unused_kwargs):
    raise error

  with monkeypatch.context() as patch:
    patch.setattr(place, fail)
    with contextlib.suppress(OSError):
      assert start(tmp_path) in (2, 130)
  assert not os.listdir(tmp_path)
  assert start(tmp_path) == 0


def test_outputs_are_closed_if_the_next_one_fails(tmp_path, monkeypatch):
  """A run of wandb ends if visdom cannot start."""
  closed = []
  mirror = types.SimpleNamespace(close=lambda: closed.append('wandb'))

  def fail(*unused_args):
    raise errors.UsageError('no server')

  monkeypatch.setattr(wandb_mirror, 'check', lambda unused_project: None)
  monkeypatch.setattr(wandb_mirror, 'WandbMirror', lambda *unused: mirror)
  monkeypatch.setattr(visdom_mirror, 'check_installed', lambda: None)
  monkeypatch.setattr(visdom_mirror, 'VisdomMirror', fail)
  assert start(tmp_path, '--wandb=project', '--visdom') == 2
  assert closed == ['wandb']


def test_start_that_was_killed(tmp_path, monkeypatch):
  """Nothing could be done then; the next start with that name goes on there."""
  monkeypatch.setattr('agents.pipeline.session.Session.discard', print)
  monkeypatch.setattr('agents.pipeline.runner.Runner.start', None)
  with pytest.raises(TypeError):
    start(tmp_path)
  monkeypatch.undo()
  path = tmp_path / 'all' / 'run'
  assert not os.listdir(path / 'checkpoints')
  with folder.Run.open(path, 'running.lock'):
    assert start(tmp_path) == 2
  assert start(tmp_path) == 0
  assert start(tmp_path) == 2


@pytest.mark.parametrize('pattern', ['checkpoint-*', 'checkpoint-*/COMPLETE'])
def test_session_without_checkpoints(tmp_path, pattern):
  """It has begun, so its name stays taken and its files stay as they are."""
  assert start(tmp_path, number_epochs=1) == 0
  path = tmp_path / 'all' / 'run'
  for found in path.glob(f'checkpoints/{pattern}'):
    shutil.rmtree(found) if found.is_dir() else found.unlink()
  before = sorted(path.rglob('*'))
  assert start(tmp_path) == 2
  assert sorted(path.rglob('*')) == before


def test_folder_of_something_else(tmp_path, capsys):
  """It is not taken for a session, and what lies around stays."""
  path = tmp_path / 'all' / 'run'
  path.mkdir(parents=True)
  for place in (path, path.parent):
    (place / '__init__.py').write_text('x = 1')
  assert start(tmp_path) == 2
  assert 'exists' in capsys.readouterr().err
  assert start(tmp_path, name='other') == 0
  for place in (path, path.parent):
    assert (place / '__init__.py').read_text() == 'x = 1'


def test_an_extra_that_cannot_be_closed(tmp_path, monkeypatch):
  """The others are closed all the same, and the error is told."""
  ended = []
  monkeypatch.setattr(
    'agents.pipeline.resources.ResourceThread.stop',
    lambda thread: ended.append(thread),
  )

  def fail(unused_self):
    raise OSError('disk full')

  monkeypatch.setattr('agents.run.log.Events.close', fail)
  with pytest.raises(OSError, match='disk full'):
    start(tmp_path)
  monkeypatch.undo()
  path = tmp_path / 'all' / 'run'
  assert len(ended) == 1
  assert 'disk full' in (path / 'report.log').read_text()
  assert load(path, '--resume') == 3


def test_one_process_at_a_time(tmp_path, capsys):
  assert start(tmp_path, max_iter=1) == 0
  path = tmp_path / 'all' / 'run'
  with folder.Run.open(path, 'running.lock'):
    assert load(path, '--resume') == 2
  assert 'Another process is using' in capsys.readouterr().err
  assert load(path, '--resume') == 0


def test_continuing_an_older_checkpoint(tmp_path):
  """Newer ones are kept, but no longer the newest of the session."""
  assert start(tmp_path, number_epochs=5, max_iter=3) == 0
  path = tmp_path / 'all' / 'run'
  older = path / 'checkpoints' / 'checkpoint-1'
  repeal = ('--resume', '--repeal', '{"runner.max_iter": 1}')
  assert load(older, '--play', '--play-episodes', '1') == 0
  assert list(checkpoints.list_checkpoints(str(path))) == [0, 1, 2, 3]
  assert load(older, *repeal) == 0
  assert list(checkpoints.list_checkpoints(str(path))) == [0, 1, 2]
  (aside,) = path.glob('superseded_*')
  assert sorted(os.listdir(aside)) == ['checkpoint-2', 'checkpoint-3']
  assert f'now in {aside}' in (path / 'report.log').read_text()
  assert load(aside / 'checkpoint-3', '--play', '--play-episodes', '1') == 0
  assert load(path, *repeal) == 0
  assert list(checkpoints.list_checkpoints(str(path))) == [0, 1, 2, 3]


def test_everything_is_read_once(tmp_path, monkeypatch):
  """By a session that is resumed: flags, parameters and checkpoint."""
  assert start(tmp_path, number_epochs=2, max_iter=1) == 0
  calls = counting.count(
    monkeypatch,
    (session, 'parse_args'),
    (session, 'load'),
    (checkpoint, 'choose_newest'),
    (checkpoint, 'read_tree'),
    (runner.RunnerSettings, 'read'),
    (folder, 'lock'),
  )
  assert load(tmp_path / 'all' / 'run', '--resume') == 0
  # The states of the rank, and its memories.
  assert calls.pop('read_tree') == 2
  assert set(calls.values()) == {1} and len(calls) == 5


def test_finished_session(tmp_path, capsys):
  assert start(tmp_path) == 0
  path = tmp_path / 'all' / 'run'
  assert load(path, '--resume') == 3
  assert 'is finished' in capsys.readouterr().err
  assert load(path, '--resume', '--repeal', '{"runner.n_epochs": 3}') == 0
  assert list(Loader(str(path)).checkpoints) == [0, 1, 2, 3]
  repeal = json.loads((path / 'repeal.json').read_text())
  assert repeal == {'runner.n_epochs': 3}
  assert load(path, '--resume') == 3


def test_play(tmp_path, capsys):
  assert start(tmp_path) == 0
  path = tmp_path / 'all' / 'run'
  assert load(path, '--play', '--play-episodes', '2') == 0
  (child,) = [
    x for x in os.listdir(path / 'evaluations') if x.startswith('session_')
  ]
  log = (path / 'evaluations' / child / 'varlog.json').read_text()
  assert log.count('/reward/eval/episodic') == 2
  assert not os.listdir(path / 'evaluations' / child / 'checkpoints')
  assert load(path, '--custom') == 2
  assert 'has no method custom' in capsys.readouterr().err


def test_playing_beside_a_training(tmp_path, monkeypatch, capsys):
  """The training may have removed a checkpoint by the time it is needed."""
  assert start(tmp_path, number_epochs=3) == 0
  path = tmp_path / 'all' / 'run'
  initialize = runner.Runner._initialize

  def remove_newest(started):
    *_, newest = checkpoints.list_checkpoints(str(path)).values()
    shutil.rmtree(newest)
    initialize(started)

  monkeypatch.setattr(runner.Runner, '_initialize', remove_newest)
  play = '--play', '--play-episodes=1', '--dry-run'
  assert load(path, *play) == 0
  assert list(checkpoints.list_checkpoints(str(path))) == [0, 1, 2]
  assert load(path / 'checkpoints' / 'checkpoint-2', *play) == 2
  error = capsys.readouterr().err.strip().splitlines()[-1]
  assert 'complete checkpoints: checkpoint-0, checkpoint-1.' in error


def test_session_that_is_read_only(tmp_path, monkeypatch, capsys):
  """The sentence names the flag that plays it all the same."""
  assert start(tmp_path, max_iter=1) == 0
  path = tmp_path / 'all' / 'run'

  def fail(**unused):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))

  monkeypatch.setattr('tempfile.TemporaryFile', fail)
  for action in ('--play', '--resume'):
    assert load(path, action, '--play-episodes=1') == 2
    error = capsys.readouterr().err
    assert f'Error: Cannot write to the folder {path}: Read-only' in error
    assert 'add --dry-run' in error
    assert load(path, action, '--play-episodes=1', '--dry-run') == 0
  assert not (path / 'evaluations').exists()


@pytest.mark.parametrize(
  'params, message',
  [
    ('tests.agents.pipeline.toys', 'There is no module'),
    ('agents.run.files', "has no 'cpanel'"),
    ('./toy', "'./toy' is not the name of a module"),
  ],
)
def test_wrong_parameters(tmp_path, params, message):
  with pytest.raises(errors.UsageError, match=message):
    Session(['--params', params, '--session-path', str(tmp_path / 'all')])
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('join', [list, lambda x: ' '.join(map(str, x))])
def test_arguments_from_python(tmp_path, join):
  """With paths and numbers, and as one line."""
  argv = ['--load-checkpoint', tmp_path, '--play', '--log-level', 2]
  with pytest.raises(errors.UsageError, match=f'{tmp_path} is not a session'):
    Session(join(argv))


def test_runner_of_another_class(tmp_path, capsys):
  repeal = '{"runner.name": "agents.pipeline.ddpg.Noise"}'
  assert start(tmp_path, '--repeal', repeal) == 2
  assert 'derived from agents.pipeline.runner.Runner' in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


def test_wrong_checkpoints(tmp_path):
  assert start(tmp_path) == 0
  path = tmp_path / 'all' / 'run'
  os.remove(path / 'checkpoints' / 'checkpoint-2' / 'COMPLETE')
  wrong = {
    tmp_path / 'none': 'is not a session: checkpoints',
    tmp_path / 'all': 'is not a session: checkpoints',
    path / 'checkpoints' / 'checkpoint-2': 'is incomplete',
  }
  for place, message in wrong.items():
    with pytest.raises(errors.UsageError, match=message):
      Session(['--load-checkpoint', str(place), '--resume'])
  assert load(path, '--play', '--play-episodes', '1', '--dry-run') == 0


def test_killed_while_replacing_a_checkpoint(tmp_path):
  """The old one was moved aside, the new one not moved there yet."""
  assert start(tmp_path) == 0
  path = tmp_path / 'all' / 'run'
  place = path / 'checkpoints'
  os.rename(place / 'checkpoint-2', place / '.checkpoint-2.old')
  (place / '.checkpoint-2.new').mkdir()
  before = sorted(os.listdir(place))
  assert list(checkpoints.list_checkpoints(str(path))) == [0, 1, 2]
  # Without the lock it may be a running process that has moved them.
  with folder.Run.open(path, 'running.lock'):
    for source in (path, place / 'checkpoint-2'):
      assert load(source, '--play', '--play-episodes', '1') == 0
    assert load(path, '--resume', '--repeal', '{"runner.n_epochs": 3}') == 2
  assert sorted(os.listdir(place)) == before
  assert load(path, '--resume', '--repeal', '{"runner.n_epochs": 3}') == 0
  assert sorted(os.listdir(place)) == [f'checkpoint-{x}' for x in range(4)]


@pytest.mark.parametrize('name', ['rank0.npz', 'model.ckpt.data', 'runner'])
def test_truncated_checkpoint(tmp_path, capsys, name):
  """The one before is continued, and a sentence says so."""
  assert start(tmp_path, max_iter=1) == 0
  path = tmp_path / 'all' / 'run'
  older, newest = (path / 'checkpoints' / f'checkpoint-{x}' for x in (0, 1))
  (file_,) = newest.glob(f'{name}*')
  file_.write_bytes(file_.read_bytes()[:-1])
  assert load(newest, '--resume') == 2
  assert f'{file_.name} has' in capsys.readouterr().err
  assert load(path, '--resume') == 0
  report = (path / 'report.log').read_text()
  assert f'Checkpoint {newest} is damaged ({file_.name} has' in report
  assert f'using {older}.' in report
  # Nothing is lost but what was not whole.
  (aside,) = path.glob('superseded_*')
  assert os.listdir(aside) == ['checkpoint-1']
  found = list(checkpoints.list_checkpoints(str(path)))
  assert found == [0, 1]


def test_flipped_bits(tmp_path, capsys):
  """Sizes are right, so they are found when the file is read: one sentence."""
  assert start(tmp_path, max_iter=1) == 0
  path = tmp_path / 'all' / 'run'
  newest = path / 'checkpoints' / 'checkpoint-1'
  for name in (
    *('rank0.npz', 'rank0.json', 'memory0.npz', 'runner.yaml'),
    'model.ckpt.data-00000-of-00001',
  ):
    content = (newest / name).read_bytes()
    middle = len(content) // 2
    flipped = bytes(255 - x for x in content[middle - 20 : middle + 20])
    damaged = content[: middle - 20] + flipped + content[middle + 20 :]
    (newest / name).write_bytes(damaged)
    capsys.readouterr()
    assert load(path, '--resume') == 2, name
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith('Error: ') and 'checkpoint-1' in line
    (newest / name).write_bytes(content)
  assert load(path, '--resume') == 0


@pytest.mark.parametrize(
  'name, content',
  [
    ('varlog.json', '3\n'),
    ('varlog.json', '{"meta": {}, "data": {"/a": 5}}\n'),
    ('checkpoints/checkpoint-1/runner.yaml', '{params: 3}'),
    ('checkpoints/checkpoint-1/runner.yaml', '{params: {runner: 3}}'),
    ('cpanel.json', '{'),
  ],
)
def test_malformed_files(tmp_path, capsys, name, content):
  assert start(tmp_path, max_iter=1) == 0
  path = tmp_path / 'all' / 'run'
  (path / name).write_text(content)
  (path / 'checkpoints' / 'checkpoint-1' / 'COMPLETE').write_text('{}')
  capsys.readouterr()
  assert load(path, '--resume') == 2
  (line,) = capsys.readouterr().err.strip().splitlines()
  assert line.startswith('Error: ') and str(path) in line
