"""Folders of runs, as all systems use them."""

import os
import shutil

import pytest

from agents.run import errors, folder


def make_runs(base, *names, marker='config.yaml'):
  for name in names:
    os.mkdir(base / name)
    folder.mark(str(base / name), marker)


def is_locked(run):
  """Whether another process could not lock a run."""
  held = folder.lock(run)
  if held:
    held.close()
  return not held


def test_the_first_free_name_is_taken(tmp_path):
  """Two commands at once get two folders, each with its lock."""
  base = str(tmp_path / 'new')
  run, other = (folder.create(base, ['a', 'b']) for _ in range(2))
  assert [run.folder, other.folder] == [os.path.join(base, x) for x in 'ab']
  assert is_locked(run.folder) and is_locked(other.folder)
  run.close()
  assert not is_locked(run.folder)
  with pytest.raises(FileExistsError, match='taken'):
    folder.create(base, ['a', 'b'])


def test_one_holder_at_a_time(tmp_path):
  """The name of the file is up to the system."""
  run = str(tmp_path)
  with folder.lock(run, 'running.lock'):
    assert folder.lock(run, 'running.lock') is None
    assert os.listdir(run) == ['running.lock']
    assert not is_locked(run)


def test_run(tmp_path):
  """Locked until it is closed; what is stored is read once."""
  path = str(tmp_path / 'run')
  with folder.Run.open(path) as run:
    with pytest.raises(errors.UsageError, match='Another process'):
      folder.Run.open(path)
    assert (run.settings, run.checkpoint, run.step) == (None, None, 0)
    (tmp_path / 'run' / 'config.yaml').write_text('a: 1')
    assert folder.Run(path).settings == {'a': 1} and run.settings is None
  assert not is_locked(path)
  for text in ('- 1', '{'):
    (tmp_path / 'run' / 'config.yaml').write_text(text)
    with pytest.raises(errors.UsageError, match='Cannot read .*config.yaml'):
      _ = folder.Run(path).settings
  assert folder.Run(None).step == 0


def test_lock_of_a_removed_folder(tmp_path):
  """It keeps nobody away from the folder that replaces it."""
  run = str(tmp_path / 'run')
  held = folder.lock(run)
  shutil.rmtree(run)
  with folder.lock(run):
    held.close()
    assert is_locked(run)


def test_find(tmp_path):
  make_runs(tmp_path, '2-x', '1-x', '3-y')
  make_runs(tmp_path, '4-x', marker='other')
  names = [os.path.basename(x) for x in folder.find(tmp_path, 'config.yaml')]
  assert names == ['1-x', '2-x', '3-y']
  assert len(folder.find(str(tmp_path), 'config.yaml', '-x')) == 2
  assert folder.find(str(tmp_path / 'none'), 'config.yaml') == []


def test_single_run(tmp_path):
  """The folder itself, or the only one in it."""
  with pytest.raises(errors.UsageError, match='no run in'):
    folder.find_single(str(tmp_path))
  make_runs(tmp_path, '1')
  run = str(tmp_path / '1')
  assert folder.find_single(run) == folder.find_single(str(tmp_path)) == run
  make_runs(tmp_path, '2')
  with pytest.raises(errors.UsageError, match='2 runs in .*--logdir=.*/2'):
    folder.find_single(str(tmp_path))


def test_choose(tmp_path):
  """The first one that nothing speaks against, not even the second look."""
  make_runs(tmp_path, *'12345')
  runs = [str(tmp_path / x) for x in '54321']
  looks = []

  def why_not(run):
    looks.append(os.path.basename(run.folder))
    if looks[-1] == '5' or looks.count('3') == 2:
      return 'is finished'
    return None

  with folder.lock(runs[1]):
    run, words = folder.choose(runs[:3], why_not)
    assert run is None
  named = '5 is finished; 4 is in use by another process; 3 is finished'
  assert words == named
  # That of a run which turned out to be finished is free again.
  assert not is_locked(runs[2])
  looks.clear()
  run, words = folder.choose(runs[3:], why_not)
  assert (run.folder, words) == (runs[3], '')
  assert is_locked(runs[3])
  run.close()
  assert not is_locked(runs[3])


def test_second_look(tmp_path):
  """What was read counts, unless another training has changed the run."""
  path = tmp_path / 'run'
  path.mkdir()
  settings = path / 'config.yaml'
  settings.write_text('a: 1')
  first, second = (folder.Run(str(path)) for _ in range(2))
  assert first.settings == second.settings == {'a': 1}
  read = first.settings
  with first:
    assert first.take() and first.settings is read
  settings.write_text('a: 12')
  with second:
    assert second.take() and second.settings == {'a': 12}


def test_explanations_are_short():
  run, words = folder.choose('abcde', lambda run: 'is old')
  assert run is None
  named = 'a is old; b is old; c is old; 2 more cannot be continued either'
  assert words == named
  assert folder.choose([], lambda run: 'is old') == (None, '')


def test_differences():
  """What is missing counts as None; trees are named only."""
  stored = {'steps': 100, 'seed': None, 'layers': [1], 'env': 'x', 'name': 'a'}
  given = {'steps': 200.0, 'layers': [2], 'env': 'x', 'lr': 0.1}
  different = folder.compare(stored, given)
  assert list(different) == ['layers', 'lr', 'name', 'steps']
  assert different['steps'] == [100, 200]
  assert folder.describe(different) == (
    'layers, lr unset instead of 0.1, name a instead of unset, '
    'steps 100 instead of 200.0'
  )
  assert folder.compare(stored, given, ['env', 'seed']) == {}


def test_marks(tmp_path):
  run = str(tmp_path)
  assert not folder.has(run, 'DONE')
  folder.mark(run, 'DONE', 'text\n')
  assert folder.has(run, 'DONE') and os.listdir(run) == ['DONE']
  assert (tmp_path / 'DONE').read_text() == 'text\n'
  for _ in range(2):
    folder.unmark(run, 'DONE')
    assert not os.listdir(run)


def test_places_that_cannot_be_written(tmp_path):
  file_ = tmp_path / 'file'
  file_.touch()
  for function in (lambda x: folder.create(x, ['a']), folder.lock):
    with pytest.raises(errors.UsageError, match='Cannot write'):
      function(str(file_ / 'run'))


@pytest.mark.parametrize('below', ['', 'a/b'])
def test_link_to_a_disk_that_is_not_mounted(below, tmp_path):
  link = tmp_path / 'logs'
  link.symlink_to(tmp_path / 'disk')
  with pytest.raises(errors.UsageError, match='logs is a link to .*disk, whi'):
    folder.lock(str(link / below))
