"""Commands as users type them, with the real simulator."""

import os
import re
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest

from agents.run import errors
from baselines_her import play, util
from baselines_her import run as run_lib
from tests import golden, processes

SHORT = [
  '--num_timesteps=200',
  '--n_cycles=1',
  '--n_batches=2',
  '--batch_size=16',
  '--hidden=8',
  '--layers=1',
  '--buffer_size=1000',
  '--n_test_rollouts=1',
  '--seed=1',
]


def start(*args, module='run', **environ):
  """Start a command; its two streams are pipes."""
  return subprocess.Popen(
    [sys.executable, '-m', f'baselines_her.{module}', *args],
    cwd=golden.ROOT,
    env={**os.environ, **environ},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def run(*args, module='run', code=0, **environ):
  """Run a command to its end; returns both streams."""
  process = start(*args, module=module, **environ)
  try:
    output, error = process.communicate(timeout=120)
  finally:
    process.kill()
  assert process.returncode == code, output + error
  return output, error


@pytest.mark.parametrize(
  'words, message',
  [
    (['--alg=ppo2'], 'alg'),
    (['--env=FetchRech-v1'], "'FetchRech-v1' is unknown"),
    (['--env=Pendulum-v1'], 'HER cannot train on Pendulum'),
    (['--demo_file=/none.npz'], 'Cannot read demonstrations'),
    (['--log_path=/proc/x'], 'Cannot write to the folder /proc'),
    (['--hiden=3'], 'Flag --hiden is unknown. Did you mean hidden'),
  ],
)
def test_bad_input(words, message):
  """One sentence and exit code 2, before TensorFlow is loaded."""
  output, error = run(*words, code=2)
  assert message in error and not output
  assert len(error.strip().splitlines()) == 1


def test_bad_policies(tmp_path, capsys):
  assert play.run(['/none.pkl']) == 2
  assert 'There is no policy' in capsys.readouterr().err
  # Before TensorFlow is loaded.
  with pytest.raises(errors.UsageError, match=f'no policy in {tmp_path}. A'):
    play.parse_args([str(tmp_path)])
  (tmp_path / 'bad.pkl').write_bytes(b'nonsense')
  assert play.run([str(tmp_path / 'bad.pkl')]) == 2
  assert 'Cannot load a policy' in capsys.readouterr().err


def test_separate_worlds_are_noticed():
  """A launcher of another MPI would train several agents."""
  _, error = run(code=2, PMI_SIZE='2', PMI_RANK='0')
  assert 'separate agent' in error or 'mpi4py cannot be imported' in error


def test_ranks_that_fail(monkeypatch, capsys):
  """Their exit code is handed on, without a traceback of this process."""

  def fork(unused_ranks, unused_words):
    raise subprocess.CalledProcessError(3, 'mpirun')

  with monkeypatch.context() as patch:
    patch.setattr(util, 'mpi_fork', fork)
    assert run_lib.run(['program', '--num_cpu=2']) == 3
    # What can be seen without ranks is said before there are any.
    assert run_lib.run(['program', '--num_cpu=2', '--hiden=3']) == 2
  assert capsys.readouterr().err.startswith('Error: Flag --hiden')
  monkeypatch.setenv('PATH', '')
  monkeypatch.setattr(sys, 'executable', '/none/python')
  assert run_lib.run(['program', '--num_cpu=2']) == 2
  assert 'needs mpirun' in capsys.readouterr().err


def test_missing_extra(tmp_path):
  """Without gymnasium-robotics the sentence names the extra."""
  (tmp_path / 'gymnasium_robotics.py').write_text('raise ImportError')
  path = f'{tmp_path}{os.pathsep}{golden.ROOT}'
  _, error = run(code=2, PYTHONPATH=path)
  assert "needs the extra 'robotics'" in error


def test_help_is_complete():
  output, _ = run('--help')
  for word in ('--num_timesteps', '--resume', 'demo_batch_size', 'mpirun'):
    assert word in output
  assert 'use only files' in output
  code = (
    'import sys, baselines_her.run as r\n'
    'try:\n'
    '  r.run(["program", "--help"])\n'
    'except SystemExit as end:\n'
    '  assert end.code == 0 and "tensorflow" not in sys.modules\n'
  )
  processes.run_python('-c', code)


@pytest.mark.slow
def test_killed_and_continued(tmp_path):
  """After kill -9 the same command ends with the same bits."""
  whole, parts = tmp_path / 'whole', tmp_path / 'parts'
  run(*SHORT, f'--log_path={whole}', f'--save_path={whole}/final')
  args = [*SHORT, f'--log_path={parts}', f'--save_path={parts}/final']
  process = start(*args)
  limit = time.time() + 100
  best = parts / 'policies' / 'policy_best.pkl'
  while not best.exists():
    # It may have ended since.
    assert process.poll() is None or best.exists()
    assert time.time() < limit
    time.sleep(0.01)
  process.send_signal(signal.SIGKILL)
  process.communicate()
  output, _ = run(*args)
  again = re.search(r'Continuing from .*, epoch (\d)', output)
  # Killed before the first checkpoint it begins anew, after the last it ends.
  if again and int(again.group(1)) < 4:
    assert f'| epoch              | {again.group(1)}        |' in output
  wanted, found = (joblib.load(x / 'final') for x in (whole, parts))
  assert len(wanted) > 20
  for key, value in wanted.items():
    np.testing.assert_array_equal(found[key], value, err_msg=key)
  # Epochs and episodes that were played twice are listed once.
  tables = [(x / 'progress.csv').read_text() for x in (whole, parts)]
  assert tables[0] == tables[1] and len(tables[0].splitlines()) == 5
  returns = [
    [line.rsplit(',', 1)[0] for line in path.read_text().splitlines()[2:]]
    for path in (x / '0.0.monitor.csv' for x in (whole, parts))
  ]
  assert returns[0] == returns[1] and len(returns[0]) == 8


def test_runs_that_exist_or_not(tmp_path, capsys):
  """Nothing is written where a run is expected or not wanted."""
  path = f'--log_path={tmp_path}'
  assert run_lib.run(['program', '--resume', path + '/none']) == 2
  assert 'no run to continue' in capsys.readouterr().err
  assert not os.listdir(tmp_path)
  folder = tmp_path / 'checkpoints' / '000000001'
  folder.mkdir(parents=True)
  (folder / 'COMPLETE').write_text('{}')
  assert run_lib.run(['program', '--noresume', path]) == 2
  assert 'There is a run in' in capsys.readouterr().err


def test_interrupted(tmp_path):
  """SIGTERM saves, says how to continue, and is no failure."""
  args = [*SHORT, '--num_timesteps=1e6', f'--log_path={tmp_path}']
  process = start(*args)
  limit = time.time() + 100
  while not (tmp_path / 'policies').exists():
    assert time.time() < limit and process.poll() is None
    time.sleep(0.05)
  process.send_signal(signal.SIGTERM)
  output, error = process.communicate(timeout=60)
  assert process.returncode == 0, error
  assert f'Saved in {tmp_path}.' in output
  assert 'Stopped. Repeat the command' in error
  assert os.listdir(tmp_path / 'checkpoints')


@pytest.mark.slow
@pytest.mark.render
def test_policy_and_videos(tmp_path, capsys):
  """Train with videos, play to a file, evaluate the policy."""
  output, error = run(
    *SHORT,
    '--num_timesteps=50',
    f'--log_path={tmp_path}',
    '--save_video_interval=60',
    '--save_video_length=5',
    '--play',
    '--play_episodes=1',
    DISPLAY='',
    WAYLAND_DISPLAY='',
  )
  line = f'on FetchReach-v4, successor of FetchReach-v1, in {tmp_path}.'
  assert line in output and 'no longer exists' not in error
  details = (tmp_path / 'log.txt').read_text()
  for line in 'single MPI worker', 'polyak: 0.95':
    assert line in details and line not in output
  assert 'Running trained model' in output and 'episode_rew=' in output
  assert f'Wrote {tmp_path}/play.mp4' in output
  videos = os.listdir(tmp_path / 'videos')
  assert len(videos) >= 2 and all(x.endswith('.mp4') for x in videos)
  path = str(tmp_path / 'policies' / 'policy_best.pkl')
  assert play.run([path, '--render=0', '--n_test_rollouts=2']) == 0
  assert '| test/episode      | 2 ' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_reach_is_learned(tmp_path, seed):
  """Success rate 1.0 in the last three of ten epochs."""
  from baselines_her import logger

  run('--num_timesteps=5000', f'--seed={seed}', f'--log_path={tmp_path}')
  rows = logger.read_csv(str(tmp_path / 'progress.csv'))
  rates = [row['test/success_rate'] for row in rows]
  assert len(rates) == 10 and rates[-3:] == [1, 1, 1]
