"""Which runs of an experiment a process works on, and with which seeds."""

import dataclasses
import os
import types

import pytest

from agents.run import checkpoint, errors, stopping
from agents.run import folder as run_folder
from planet.scripts import resume, train
from planet.tools import numpy_episodes
from planet.training import running, utility


def make_args(logdir, **changes):
  """Arguments of the program with a task that needs no simulator."""
  args = dict(
    logdir=str(logdir),
    config='debug',
    params={'tasks': ['dummy'], 'isolate_envs': 'none'},
  )
  return train.Arguments(**{**args, **changes})


def make_foreign_run(folder):
  """Run of another task with an episode that cannot be read."""
  episodes = folder / 'train_episodes'
  episodes.mkdir(parents=True)
  (episodes / 'cut.npz').write_bytes(b'damaged')
  (folder / 'config.yaml').write_text(
    'version: 1\nconfig: debug\nparams: {tasks: [cheetah_run]}\nseed: null\n'
  )
  run_folder.mark(str(folder), 'PING', 'other')
  return episodes


def process_nothing(logdir, args, **unused):
  """Stand-in for the work on a run, which checks what it may."""
  resume.check(resume.define_config(logdir, args), logdir)
  yield 1.0


@pytest.mark.parametrize(
  'name, changes',
  [
    ('00001', dict(num_runs=2, resume_runs=False)),
    ('00001', dict(num_runs=2, ping_every=0.1)),
    ('00002', dict(num_runs=1)),
  ],
)
def test_runs_of_others_are_left_alone(name, changes, tmp_path, monkeypatch):
  """Neither judged nor touched: begun before, alive, or not asked for."""
  monkeypatch.setattr(train, 'process', process_nothing)
  episodes = make_foreign_run(tmp_path / name)
  monkeypatch.setattr(running.Run, '_is_stale', lambda *args: False)
  train.main(make_args(tmp_path, **changes))
  assert os.listdir(episodes) == ['cut.npz']
  (done,) = {'00001', '00002'} - {name}
  assert (tmp_path / done / 'DONE').exists()


def test_run_of_another_process_is_left_alone(tmp_path):
  """Without signs of life, a lock says that somebody works on it."""
  episodes = make_foreign_run(tmp_path / '00001')
  args = make_args(tmp_path)
  with pytest.raises(errors.UsageError, match='tasks'):
    train.main(args)
  other = running.Run(
    str(tmp_path / '00001'), running.Experiment('', iter, ping_every=0)
  )
  other.claim()
  with pytest.raises(run_folder.Busy, match='Another process is using'):
    train.main(args)
  assert os.listdir(episodes) == ['cut.npz']


def test_finished_run(tmp_path, capsys):
  """The arguments have to fit it; then there is nothing to do, said once."""
  make_foreign_run(tmp_path / '00001')
  (tmp_path / '00001' / 'DONE').touch()
  with pytest.raises(errors.UsageError, match='tasks: .*cheetah_run.* -> '):
    train.main(make_args(tmp_path))
  train.main(make_args(tmp_path, params={'tasks': ['cheetah_run']}))
  printed = capsys.readouterr().out
  assert printed.count('Nothing to do: all runs in ') == 1
  assert 'raise total_env_steps or max_steps' in printed
  args = make_args(tmp_path, params={'tasks': ['cheetah_run']})
  train.main(dataclasses.replace(args, resume_runs=False))
  printed = capsys.readouterr().out
  assert 'have begun; omit --resume_runs False' in printed


def test_episodes_are_checked_in_claimed_runs(tmp_path):
  """Damaged files get another name only where this process works."""
  for name in ('00001', '00002'):
    folder = tmp_path / name / 'train_episodes'
    folder.mkdir(parents=True)
    (folder / 'cut.npz').write_bytes(b'damaged')
  list(process_nothing(str(tmp_path / '00002'), make_args(tmp_path)))
  names = [
    os.listdir(tmp_path / x / 'train_episodes') for x in ('00001', '00002')
  ]
  assert names == [['cut.npz'], ['cut.npz.damaged']]


def test_next_run_after_a_takeover(tmp_path, monkeypatch):
  """A worker that loses a run goes on, and comes back when it is left."""
  worked, claimed = [], []
  claim = running.Run.claim

  def claim_and_note(run):
    claim(run)
    claimed.append(run)

  def process(logdir, args, **unused):
    worked.append(os.path.basename(logdir))
    yield 1.0
    if len(worked) == 1:
      run_folder.mark(logdir, 'PING', 'other')
      assert claimed[0]._conflict.wait(30)
      yield 2.0

  monkeypatch.setattr(running.Run, 'claim', claim_and_note)
  monkeypatch.setattr(train, 'process', process)
  train.main(make_args(tmp_path, num_runs=2, ping_every=0.1))
  first, second, third = worked
  assert first == third != second
  assert all((tmp_path / x / 'DONE').exists() for x in worked)


@pytest.mark.parametrize('lost', [True, False])
def test_lost_run_is_not_saved(lost, tmp_path, monkeypatch):
  """Unlike one that the caller leaves."""
  saved = []

  def learn(*unused):
    with stopping.on_close(lambda: saved.append(1)):
      yield 1.0

  monkeypatch.setattr(utility, 'train', learn)
  monkeypatch.setattr(utility, 'collect_initial_episodes', lambda *unused: None)
  monkeypatch.setattr(numpy_episodes, 'numpy_episodes', lambda *_, **__: None)
  args = make_args(tmp_path)
  # Any object will do, as in the original.
  args = types.SimpleNamespace(config=args.config, params=args.params)
  values = train.process(str(tmp_path), args)
  next(values)
  if lost:
    with pytest.raises(running.WorkerConflict):
      values.throw(running.WorkerConflict())
  else:
    values.close()
  assert bool(saved) != lost


def test_stop_before_the_first_run(tmp_path, capsys):
  """It begins none, and does not say that there was none."""
  with stopping.as_if_asked(), pytest.raises(stopping.StopRequested):
    train.main(make_args(tmp_path))
  assert not os.listdir(tmp_path)
  assert 'Nothing to do' not in capsys.readouterr().out


def test_runs_that_are_over_go_on(tmp_path, monkeypatch):
  """Failed ones and those with more steps to go; nobody deletes files."""
  worked = []

  def process(logdir, args, **unused):
    worked.append(os.path.basename(logdir))
    for marker in ('FAIL', 'DONE'):
      run_folder.unmark(logdir, marker)
    yield 1.0
    if args.params.get('planner_bias'):
      raise ZeroDivisionError('on purpose')

  def work(**changes):
    del worked[:]
    params = {**args.params, **changes.pop('params', {})}
    train.main(dataclasses.replace(args, params=params, **changes))
    return sorted(worked)

  monkeypatch.setattr(train, 'process', process)
  args = make_args(tmp_path, num_runs=2)
  with pytest.raises(ZeroDivisionError):
    work(params={'planner_bias': [0.5]})
  (failed,) = worked
  assert (tmp_path / failed / 'FAIL').exists()
  assert work(resume_runs=False) == [
    x for x in ('00001', '00002') if x != failed
  ]
  assert work() == [failed]
  assert not (tmp_path / failed / 'FAIL').exists()
  assert work() == []
  for name in ('00001', '00002', '00003'):
    (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / name / 'DONE').touch()
  monkeypatch.setattr(
    checkpoint, 'newest_step', lambda x: 20 if x.endswith('1') else 40
  )
  assert work(params={'max_steps': 20}) == []
  assert work(params={'max_steps': 30}) == ['00001']
  assert work(params={'max_steps': 50}) == ['00001', '00002']


def test_arguments_are_judged_for_runs_that_go_on(tmp_path):
  """Refused ones leave the run as it is."""
  make_foreign_run(tmp_path / '00001')
  for marker in ('DONE', 'FAIL'):
    (tmp_path / '00001' / marker).touch()
  with pytest.raises(errors.UsageError, match='tasks: '):
    train.main(make_args(tmp_path))
  assert (tmp_path / '00001' / 'FAIL').exists()


def test_runs_of_an_experiment_differ(tmp_path):
  """The first run has the given seed, the others seeds of their own."""
  args = make_args(tmp_path, seed=1)
  names = ['00001', '00002', '00003']
  runs = [resume.define_config(str(tmp_path / x), args) for x in names]
  seeds = [x.seed for x in runs]
  assert seeds[0] == 1 and len(set(seeds)) == 3
  # The command is repeated with the seed of the experiment.
  assert [x.source.seed for x in runs] == [1, 1, 1]
  args = make_args(tmp_path)
  assert resume.define_config(str(tmp_path / '00002'), args).seed is None


def test_batch_for_several_processes(tmp_path):
  """It is refused before anything is probed or TensorFlow is needed."""
  with pytest.raises(errors.UsageError, match=r'share batch_shape\[0\] 5 even'):
    train.check(make_args(tmp_path), 2)
  config = resume.define_config(str(tmp_path / 'run'), make_args(tmp_path))
  with pytest.raises(errors.UsageError, match='2 processes cannot share'):
    resume.check(config, str(tmp_path / 'run'), 2)
  assert not (tmp_path / 'run').exists()
