"""Flag --wandb: the scalars of every program reach Weights & Biases."""

import json
import os
import subprocess
import sys

import pytest

from agents.run import log
from tests import golden, wandb_files

PPO = {
  'max_length': 10,
  'num_agents': 1,
  'update_every': 1,
  'eval_episodes': 1,
  'update_epochs': 1,
  'steps': 20,
}
REACH = ('--n_cycles=1', '--n_batches=1', '--n_test_rollouts=1')
PENDULUM = 'agents.pipeline.params.ddpg_pendulum'
TINY = '{number_epochs: 1, epoch_size: 1, test_interval: 1}'

# Arguments with the place of the folder, the run within it, and names that
# are sent.
PROGRAMS = {
  'planet.scripts.train': (
    ['--config=debug', '--params={tasks: [dummy], max_steps: 20}'],
    '--logdir={}',
    '00001',
    ['return/test', 'optimizer/grad_norm'],
  ),
  'agents.train_ppo': (
    ['--config=default', '--env=Pendulum-v1', f'--params={json.dumps(PPO)}'],
    '--logdir={}',
    '*-default',
    ['return/train', 'return/test', 'loss/value'],
  ),
  'baselines_her.run': (
    ['--env=FetchReach-v1', '--num_timesteps=50', *REACH],
    '--log_path={}',
    '',
    ['success/test', 'return/train', 'time/episodes'],
  ),
  'agents.pipeline.main': (
    ['--params', PENDULUM, '--cpanel', TINY, '--session-name=a'],
    '--session-path={}',
    'a',
    ['return/test'],
  ),
}


def run(module, *args, mode='offline'):
  """Run a program with wandb, or what stands for it."""
  return subprocess.run(
    [sys.executable, '-m', module, *map(str, args)],
    cwd=golden.ROOT,
    env=wandb_files.add_to(os.environ, mode),
    capture_output=True,
    text=True,
    timeout=300,
  )


@pytest.mark.parametrize(
  'program',
  [
    x if x.startswith('baselines') else pytest.param(x, marks=pytest.mark.slow)
    for x in sorted(PROGRAMS)
  ],
)
def test_programs_send_their_scalars(program, tmp_path):
  if program == 'baselines_her.run':
    pytest.importorskip('gymnasium_robotics')
  args, flag, place, names = PROGRAMS[program]
  result = run(program, *args, flag.format(tmp_path), '--wandb=project')
  output = result.stdout + result.stderr
  assert result.returncode == 0, output
  (folder,) = tmp_path.glob(place) if place else [tmp_path]
  assert f'Weights & Biases: offline, in {folder}/wandb.' in output
  ((_, sent),) = wandb_files.read(folder)
  for name in names:
    assert name.encode() in sent, name


@pytest.mark.parametrize('program', sorted(PROGRAMS))
def test_projects_without_name_are_refused(program, tmp_path):
  """At once, before TensorFlow is loaded; no folder is made."""
  args, flag, _, _ = PROGRAMS[program]
  where = flag.format(tmp_path / 'new')
  for given, sentence in (('', "--wandb is ''"), ('a/b', 'without any of')):
    result = run(program, *args, where, f'--wandb={given}')
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith('Error: Flag --wandb')
    assert sentence in result.stderr and result.stderr.count('\n') == 1
  assert not (tmp_path / 'new').exists()


def call(code, tmp_path, mode='offline'):
  """Run code that knows the mirror, in an empty folder."""
  lines = [
    'import sys',
    'from agents.run import entry, errors, log, wandb_mirror',
    f'raise SystemExit(entry.run(lambda: {code}))',
  ]
  environ = wandb_files.add_to(os.environ, mode)
  path = environ.get('PYTHONPATH', '')
  return subprocess.run(
    [sys.executable, '-c', '\n'.join(lines)],
    cwd=tmp_path,
    env={**environ, 'PYTHONPATH': f'{golden.ROOT}:{path}'},
    capture_output=True,
    text=True,
    timeout=120,
  )


def test_missing_package(tmp_path, monkeypatch):
  """A folder of that name, which wandb leaves, is not the package."""
  from agents.run import errors, wandb_mirror

  monkeypatch.chdir(tmp_path)
  (tmp_path / 'wandb').mkdir()
  monkeypatch.setattr(sys, 'path', [str(tmp_path)])
  monkeypatch.delitem(sys.modules, 'wandb', raising=False)
  wandb_mirror.check(None)
  with pytest.raises(errors.UsageError, match='pip install'):
    wandb_mirror.check('project')
  with pytest.raises(errors.UsageError, match='add --logdir'):
    wandb_mirror.check('project', None)


def test_no_account(tmp_path):
  code = "wandb_mirror.WandbMirror('project', 'run')"
  result = call(code, tmp_path, mode=None)
  assert result.returncode == 2, result.stderr
  assert result.stderr.startswith('Error: Weights & Biases cannot start')
  assert 'WANDB_MODE=offline' in result.stderr


@pytest.mark.parametrize('place', ['init', 'log', 'finish'])
def test_failures(place, tmp_path, monkeypatch, caplog):
  """At the start they are refused; later, the training goes on without."""
  from agents.run import errors, wandb_mirror
  from tests.stand_ins import wandb

  def fail(*unused_args, **unused_kwargs):
    raise BrokenPipeError('The service has ended.')

  monkeypatch.setitem(sys.modules, 'wandb', wandb)
  monkeypatch.setenv('WANDB_MODE', 'offline')
  monkeypatch.setattr(wandb if place == 'init' else wandb.Run, place, fail)
  if place == 'init':
    with pytest.raises(errors.UsageError, match='service has ended. Set WAN'):
      wandb_mirror.make_mirrors('project', str(tmp_path))
    return
  mirrors = wandb_mirror.make_mirrors('project', str(tmp_path))
  writer = log.MetricsWriter(str(tmp_path), mirrors)
  for step in range(3):
    writer.write('test', step, step, {'test_return': 3.0}, step)
  writer.close()
  assert len(log.read_metrics(str(tmp_path))) == 3
  assert caplog.text.count('failed: The service has ended. Its curves') == 1


def test_server_does_not_answer(tmp_path, monkeypatch, caplog):
  """A training that is over does not wait for it; earlier versions do."""
  from agents.run import wandb_mirror
  from tests.stand_ins import wandb

  monkeypatch.setitem(sys.modules, 'wandb', wandb)
  monkeypatch.setenv('WANDB_MODE', 'offline')
  monkeypatch.setattr(wandb.Run, 'answers', False)
  wandb_mirror.WandbMirror('project', str(tmp_path)).close()
  assert 'failed: Timed out finishing run. Its curves' in caplog.text
  monkeypatch.setattr(wandb.Run, 'answers', True)
  monkeypatch.setattr(wandb.Settings, 'model_fields', ['silent', 'console'])
  wandb_mirror.WandbMirror('project', str(tmp_path)).close()


@pytest.mark.slow
def test_runs_go_on(tmp_path):
  """The second start has the name of the first."""
  code = (
    "[x.close() or x for x in [log.MetricsWriter('run', "
    "wandb_mirror.make_mirrors('project', 'run', {'layers': [1]}))] "
    "if not x.write('test', 1, 7, {'test_return': 3.0, 'a/b': 4.0}, 5)]"
  )
  for _ in range(2):
    result = call(code, tmp_path)
    assert result.returncode == 0, result.stderr
  names, sent = zip(*wandb_files.read(tmp_path / 'run'))
  assert len(names) == 2 and len(set(names)) == 1
  assert all(b'return/test' in x and b'a/b' in x for x in sent)
  assert len(log.read_metrics(str(tmp_path / 'run'))) == 1


def test_what_mirrors_get(tmp_path):
  """Plain names where there are some, over environment steps; no NaN."""

  class Mirror(list):
    def write(self, step, scalars):
      self.append((step, scalars))

    def close(self):
      self.append('closed')

  mirror = Mirror()
  writer = log.MetricsWriter(str(tmp_path), [mirror])
  scalars = {'test_return': 3.0, 'a/b': 4.0, 'c': float('nan')}
  writer.write('test', 1, 7, scalars, 5)
  writer.write('test', 1, 7, {'a/b': 4}, 7)
  writer.write('test', 1, 7, {'c': float('nan')}, 7)
  writer.close()
  writer.close()
  assert mirror == [
    (5, {'return/test': 3.0, 'a/b': 4.0}),
    (7, {'a/b': 4.0}),
    'closed',
  ]


def test_training_that_cannot_begin(tmp_path, monkeypatch, capsys):
  """HER ends the run at Weights & Biases, too."""
  from agents.run import errors, wandb_mirror
  from baselines_her import her
  from baselines_her import run as run_lib
  from tests.stand_ins import wandb

  def fail(*unused_args):
    raise errors.UsageError('It cannot begin.')

  closed = []
  monkeypatch.setitem(sys.modules, 'wandb', wandb)
  monkeypatch.setenv('WANDB_MODE', 'offline')
  monkeypatch.setattr(wandb_mirror, 'check', lambda project: None)
  monkeypatch.setattr(wandb.Run, 'finish', lambda run: closed.append(run))
  monkeypatch.setattr(her, 'prepare', fail)
  env = 'docs.examples.my_goal_env:MovePoint-v0'
  args = f'--env={env}', f'--log_path={tmp_path}', '--wandb=project'
  assert run_lib.run(['her-train', *args]) == 2
  assert 'It cannot begin.' in capsys.readouterr().err and len(closed) == 1
