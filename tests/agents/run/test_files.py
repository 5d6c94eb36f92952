"""Files that are complete or absent, and YAML 1.2."""

import os
import subprocess
import sys

import pytest

import agents
import baselines_her
import planet
from agents.pipeline import trained
from agents.run import errors, files
from tests import golden


def test_failing_writer_keeps_the_old_file(tmp_path):
  """The old content stays, and no temporary file."""
  filename = tmp_path / 'file.txt'
  filename.write_text('old')
  with pytest.raises(ZeroDivisionError):
    with files.atomic_write(str(filename)) as file_:
      file_.write('half of the new')
      file_.flush()
      _ = 1 / 0
  assert os.listdir(tmp_path) == ['file.txt']
  assert filename.read_text() == 'old'


def test_failing_writer_leaves_nothing_new(tmp_path):
  with pytest.raises(KeyError):
    with files.atomic_path(str(tmp_path / 'file.npz')) as temporary:
      assert temporary.endswith('.npz')
      open(temporary, 'w').close()
      raise KeyError
  assert os.listdir(tmp_path) == []


def test_file_appears_when_complete(tmp_path):
  filename = tmp_path / 'new' / 'file.bin'
  with files.atomic_write(str(filename), 'wb') as file_:
    file_.write(b'content')
    assert not filename.exists()
  assert filename.read_bytes() == b'content'
  assert os.listdir(filename.parent) == ['file.bin']


def test_yaml_files(tmp_path):
  filename = str(tmp_path / 'file.yaml')
  data = {'b': [1, 2.5, None], 'a': {'text': 'with: colon'}}
  files.write_yaml(filename, data)
  assert files.read_yaml(filename) == data
  with pytest.raises(OSError):
    files.read_yaml(str(tmp_path / 'missing.yaml'))


@pytest.mark.parametrize('name', ['file.yaml', 'file.json'])
def test_files_of_an_editor(tmp_path, name):
  """Some begin with a byte order mark, which json refused."""
  path = tmp_path / name
  path.write_bytes(b'\xef\xbb\xbf{"gr\xc3\xbcn": 1}\r\n')
  assert files.read_plain(str(path)) == {'grün': 1}


@pytest.mark.parametrize('name', ['a[1]', 'a\\b', 'gr\udcfcn'])
def test_paths_that_tensorflow_cannot_read(name, tmp_path):
  with pytest.raises(errors.UsageError, match='cannot read files in'):
    files.check_writable(str(tmp_path / name))
  assert not list(tmp_path.iterdir())


ADDRESSES = 'gs://bucket/run', 's3://bucket', 'file:///tmp/run', 'hdfs:/run'


@pytest.mark.parametrize('path', [*ADDRESSES, '~nobody-of-that-name/run'])
def test_paths_that_are_none(path):
  """An address or an unknown home does not become a folder."""
  with pytest.raises(errors.UsageError, match='address|no home directory'):
    files.expand(path)


@pytest.mark.parametrize('path', [None, 5, ['logs/run'], {}])
def test_no_paths(path):
  """Those that programs pass on, such as a variable that is not set."""
  for load in (agents.load, planet.load, baselines_her.load, trained.load):
    with pytest.raises(errors.UsageError, match='is not a path'):
      load(path)


def test_expanded_paths(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  assert files.expand('~/run') == '/home/me/run'
  assert files.expand(b'run') == 'run'
  for path in ('run', '/a:b/c', 'a/~', 'C:', './gs:/run'):
    assert files.expand(path) == path


@pytest.mark.parametrize(
  'path', ['gs://bucket/run', '~nobody-of-that-name/run', 'x' * 300]
)
@pytest.mark.parametrize(
  'command',
  [
    'planet.scripts.train --config debug --logdir',
    'agents.train_ppo --config=pybullet_pendulum --logdir',
    'baselines_her.run --env=FetchReach-v1 --log_path',
    'agents.pipeline.main --params agents.pipeline.params.ddpg_pendulum'
    ' --session-path',
  ],
)
def test_programs_refuse_such_paths(command, path, tmp_path):
  """Nothing is written, before long work."""
  module, *words = command.split()
  result = subprocess.run(
    [sys.executable, '-m', module, *words[:-1], f'{words[-1]}={path}'],
    env={**os.environ, 'PYTHONPATH': golden.ROOT},
    cwd=tmp_path,
    capture_output=True,
    text=True,
  )
  assert result.returncode == 2, result.stderr
  reasons = ('an address', 'no home directory', 'File name too long')
  assert any(x in result.stderr for x in reasons)
  assert 'Traceback' not in result.stderr
  assert not os.listdir(tmp_path)


def test_files_that_cannot_be_written(tmp_path):
  """Told before long work, also of the longer name that it has meanwhile."""
  folder = tmp_path / 'new'
  files.check_creatable_file(str(folder / 'x.npz'))
  with pytest.raises(errors.UsageError, match='is a folder; give a file'):
    files.check_creatable_file(str(tmp_path))
  for path in (folder / ('x' * 250), folder / ('x' * 300) / 'x.npz'):
    with pytest.raises(errors.UsageError, match='Choose a shorter one'):
      files.check_creatable_file(str(path))
  assert not os.listdir(tmp_path)
  assert files.list_folder(str(folder / ('x' * 300))) == []
