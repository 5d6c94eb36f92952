"""Comparison with the originals; those that are not installed need a clone."""

import importlib
import os
import subprocess
import time
import types

import numpy as np
import pytest

from agents.run import entry, errors
from scripts import compare
from tests import golden, processes
from tests.originals import cases, her_recorder, planet, recording


@pytest.mark.parametrize(
  'original, ours, difference',
  [
    ([1.0, 2.0], [1.0, 2.0], 0),
    ([1.0, -2.0], [1.0, -1.0], 0.5),
    ([0.0, 1.0], [1e-7, 1.0], 0.1),
    ([1.0], [1.0, 1.0], np.inf),
    ([1.0], [np.nan], np.nan),
  ],
)
def test_relative(original, ours, difference):
  found = cases.relative(np.array(original), np.array(ours))
  np.testing.assert_allclose(found, difference)


def test_largest():
  """NaN counts, wherever it stands."""
  assert cases.largest([1.0, 3.0, 2.0]) == 3
  assert np.isnan(cases.largest([0.0, np.nan, 1.0]))


@pytest.mark.parametrize(
  'difference, code', [(1e-6, 0), (1e-5, 0), (2e-5, 1), (np.nan, 1)]
)
def test_exit_code(monkeypatch, tmp_path, capsys, difference, code):
  """A difference beyond its limit, or none at all, is told and ends with 1."""
  found = [cases.Case('losses', 3, difference, 1e-5)]
  system = types.SimpleNamespace(
    __name__='tests.originals.cases', compare=lambda out: found
  )
  monkeypatch.setattr(compare, 'find_system', lambda *unused: system)
  monkeypatch.setattr(compare, '_run', lambda *args: None)
  assert compare.main([str(tmp_path)]) == code
  assert ('OUTSIDE' in capsys.readouterr().out) == bool(code)


def test_no_original(tmp_path):
  with pytest.raises(errors.UsageError, match='contains no original'):
    compare.main([str(tmp_path)])


def test_used_folder(tmp_path):
  """Numbers of another comparison would be taken for those of this one."""
  place = tmp_path / 'pybullet_envs' / 'agents'
  place.mkdir(parents=True)
  (place / 'train_ppo.py').touch()
  with pytest.raises(errors.UsageError, match='not empty'):
    compare.main([str(tmp_path), f'--out={place}'])


@pytest.mark.slow
def test_broken_original(tmp_path, monkeypatch):
  """The end of its log is shown; `--out` may be relative."""
  monkeypatch.chdir(tmp_path)
  place = tmp_path / 'pybullet_envs' / 'agents'
  place.mkdir(parents=True)
  (place.parent / '__init__.py').write_text('raise ValueError("broken")')
  (place / 'train_ppo.py').write_text('')
  with pytest.raises(compare.CouldNotRun) as caught:
    compare.main([str(tmp_path), '--out=numbers'])
  assert 'broken' in caught.value.details
  assert os.listdir('numbers') == ['original.log']


def test_sides_end_with_the_program(tmp_path):
  """Also when it is killed; they went on alone."""
  started = tmp_path / 'started'
  (tmp_path / 'side.py').write_text(
    'import os, time\n'
    'def run(*unused):\n'
    f'  with open({str(started)!r}, "w") as file_:\n'
    '    file_.write(f"{os.getpid()}\\n")\n'
    '  time.sleep(60)\n'
  )
  code = f'compare._run("side", "run", "ours", "", {str(tmp_path)!r})'
  program = processes.start_python('-c', f'from scripts import compare; {code}')
  with program.stdout, processes.time_limit(60):
    while not started.exists() or not started.read_text():
      assert program.poll() is None
      time.sleep(0.05)
    program.kill()
    program.wait()
  assert processes.wait_for_end([int(started.read_text())], 10) == []


def make_clone(path, name):
  """Repository with a file that identifies an original; returns its commit."""
  system = importlib.import_module(f'tests.originals.{name}')
  file_ = path / system.ORIGINAL
  file_.parent.mkdir(parents=True)
  file_.write_text('')
  git = ['git', '-C', str(path), '-c', 'user.name=a', '-c', 'user.email=b']
  for words in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'first']):
    subprocess.run([*git, *words], check=True)
  head = subprocess.check_output([*git, 'rev-parse', 'HEAD'], text=True)
  return system, head.strip()


@pytest.mark.parametrize('name', ['planet', 'her', 'digideep', 'batch_ppo'])
def test_other_commits(name, tmp_path, monkeypatch, capsys):
  """What could not run has a code of its own, and is told what would."""
  system, commit = make_clone(tmp_path, name)

  def fail(*unused):
    raise compare.CouldNotRun('The original failed.', 'its log')

  monkeypatch.setattr(compare, '_run', fail)
  assert entry.run(lambda: compare.main([str(tmp_path)])) == 3
  printed = capsys.readouterr().err
  assert f'git -C {tmp_path} checkout {system.COMMIT}' in printed
  assert f'is at {commit[:7]}' in printed and 'its log' in printed
  monkeypatch.setattr(system, 'COMMIT', commit[:7])
  assert compare.describe_commit(str(tmp_path), system) == ''


def test_this_project_is_no_original():
  with pytest.raises(errors.UsageError, match='contains no original'):
    compare.main([golden.ROOT])


def test_record(tmp_path, monkeypatch):
  """New results replace those of a file; a page tells how they differ."""
  monkeypatch.setattr(recording.data, 'DATA', str(tmp_path))
  (tmp_path / 'her').mkdir()
  path, given = tmp_path / 'her' / 'a.npz', np.float32([1.0, 2.0])
  np.savez(path, given=given, doubled=2 * given, rest=given)
  np.savez(tmp_path / 'her' / 'b.npz', given=given, lost=given)
  results = [
    ('a.npz', {'doubled': np.array([2.0, 4.4])}),
    ('b.npz', {'given': given, 'lost': np.array([1.0, np.nan])}),
  ]
  monkeypatch.setattr(
    her_recorder, 'prepare', lambda clone, out: ('her', results)
  )
  recording.record('her', str(tmp_path), str(tmp_path))
  found = np.load(path)
  np.testing.assert_array_equal(found['doubled'], np.float32([2.0, 4.4]))
  np.testing.assert_array_equal(found['rest'], given)
  page = (tmp_path / 'her' / 'PROVENANCE.md').read_text()
  assert '| a.npz | 1 | 1e-01 |\n| b.npz | 2 | nan |' in page


def make_plans(plans=6, iterations=4, candidates=200):
  """Plans of two codes that differ by rounding."""
  rng = np.random.RandomState(0)
  returns = rng.normal(4, 1, (plans, iterations, candidates))
  return [
    {'plans': x * np.ones((plans, 12, 1)), 'returns': x * returns}
    for x in (1.0, 1 + 1e-7)
  ]


def swap_at_the_edge(returns, gap):
  """Let the last of the elite and the next one change places; return both."""
  last, following = np.argsort(-returns)[19:21]
  middle = (returns[last] + returns[following]) / 2
  before, after = returns.copy(), returns.copy()
  before[[last, following]] = middle + gap / 2, middle - gap / 2
  after[[last, following]] = middle - gap / 2, middle + gap / 2
  return before, after


def test_ties_in_the_elite_of_a_plan():
  """What follows them is left out, and counted; all else is compared."""
  a, b = make_plans()
  assert all(x.same for x in planet.compare_plans(a, b))
  pair = swap_at_the_edge(a['returns'][2, 1], 1e-6)
  a['returns'][2, 1], b['returns'][2, 1] = pair
  b['returns'][2, 2:] += 1
  b['plans'][2] += 0.01
  returns, plans = planet.compare_plans(a, b)
  assert returns.same and returns.numbers == (5 * 4 + 2) * 200
  assert plans.same and plans.numbers == 5 * 12
  assert plans.name.endswith('without 1 with ties')
  # Without the tie, the same difference counts.
  b['plans'][3] += 0.01
  assert not list(planet.compare_plans(a, b))[1].same


def test_another_elite_that_is_no_tie():
  a, b = make_plans()
  pair = swap_at_the_edge(a['returns'][2, 1], 0.01)
  a['returns'][2, 1], b['returns'][2, 1] = pair
  assert not next(planet.compare_plans(a, b)).same
  # A choice that its returns do not explain shows in the next ones.
  a, b = make_plans()
  b['returns'][2, 2:] += 0.01
  assert not next(planet.compare_plans(a, b)).same


def test_too_many_ties():
  """They would leave nothing to compare."""
  a, b = make_plans()
  for plan in range(3):
    pair = swap_at_the_edge(a['returns'][plan, 1], 1e-6)
    a['returns'][plan, 1], b['returns'][plan, 1] = pair
  assert not list(planet.compare_plans(a, b))[1].same


@pytest.mark.slow
@pytest.mark.parametrize(
  'name', ['ppo', 'batch_ppo', 'planet', 'her', 'digideep']
)
def test_originals(name):
  """All differences are rounding; clones are named by the environment."""
  if name == 'ppo':
    module = pytest.importorskip('pybullet_envs')
    path = os.path.dirname(os.path.dirname(module.__file__))
  else:
    path = os.environ.get(f'ORIGINAL_{name.upper()}')
  if not path:
    pytest.skip(f'ORIGINAL_{name.upper()} names no clone')
  assert compare.main([path]) == 0
