"""Files that are complete or absent, and YAML 1.2."""

import os

import pytest

from agents.run import errors, files


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


def test_numbers_in_yaml():
  """YAML 1.2 has numbers where PyYAML sees text, and text for `yes`."""
  values = files.parse_yaml('{a: 5e7, b: 1e-3, c: yes, d: 3, e: true}')
  assert values == dict(a=5e7, b=1e-3, c='yes', d=3, e=True)
  assert isinstance(values['a'], float) and isinstance(values['b'], float)


def test_invalid_yaml_is_a_value_error():
  with pytest.raises(ValueError, match='line 1'):
    files.parse_yaml('{a: [1}')


def test_yaml_files(tmp_path):
  filename = str(tmp_path / 'file.yaml')
  data = {'b': [1, 2.5, None], 'a': {'text': 'with: colon'}}
  files.write_yaml(filename, data)
  assert files.read_yaml(filename) == data
  with pytest.raises(OSError):
    files.read_yaml(str(tmp_path / 'missing.yaml'))


@pytest.mark.parametrize('name', ['a[1]', 'a\\b'])
def test_paths_that_tensorflow_cannot_read(name, tmp_path):
  with pytest.raises(errors.UsageError, match='cannot read files in'):
    files.check_writable(str(tmp_path / name))
  assert not list(tmp_path.iterdir())
