"""docs/promises.md names tests that exist, and whole programs keep them."""

import ast
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests import golden

SYSTEMS = ['PlaNet', 'PPO', 'HER', 'Pipeline']
TEST = re.compile(r'`([\w/]+\.py)::(\w+)`')

# A program on a file system without flock, on a machine whose clock is set back
# by an hour after a few seconds.
PROGRAM = """
import errno, fcntl, runpy, socket, sys, time
from agents.run import locks
_, host, sys.argv = None, sys.argv[1], sys.argv[2:]
def refuse(*args): raise OSError(errno.ENOSYS, 'refused')
fcntl.flock = refuse
socket.gethostname = lambda: host
locks.LEASE_SECONDS = 2.0
now, change = time.time, time.monotonic() + 5
time.time = lambda: now() - 3600 * (time.monotonic() > change)
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
"""
PLANET = {
  'tasks': ['dummy'],
  'image_size': 32,
  'batch_shape': [2, 3],
  'max_steps': 10**6,
  'model_size': 8,
  'num_layers': 1,
  'train_steps': 10,
  'test_steps': 2,
  'num_seed_episodes': 1,
  'train_collects': [],
  'test_collects': [],
  'isolate_envs': 'none',
  'checkpoint_minutes': 0.01,
}
PPO = {
  'num_agents': 2,
  'update_every': 2,
  'eval_episodes': 2,
  'max_length': 20,
  'update_epochs': 2,
  'policy_layers': [8],
  'value_layers': [8],
  'steps': 10**8,
}
DDPG = {'number_epochs': 10**5, 'epoch_size': 200, 'save_interval': 1}


def command(system, folder):
  """Words that start a long training, or continue it."""
  if system == 'PlaNet':
    params = ['--config', 'debug', '--params', json.dumps(PLANET)]
    return ['planet.scripts.train', f'--logdir={folder}', *params]
  if system == 'PPO':
    params = ['--config=default', f'--params={json.dumps(PPO)}']
    words = ['agents.train_ppo', '--env=Pendulum-v1', f'--logdir={folder}']
    return [*words, *params, '--noenv_processes']
  if system == 'HER':
    short = ['--n_cycles=2', '--n_batches=2', '--n_test_rollouts=1']
    words = ['baselines_her.run', '--env=FetchReach-v1', '--num_timesteps=1e7']
    return [*words, f'--log_path={folder}', *short]
  if glob.glob(f'{folder}/s/checkpoints/*/COMPLETE'):
    words = ['--load-checkpoint', f'{folder}/s', '--resume']
  else:
    words = ['--params', 'agents.pipeline.params.ddpg_pendulum']
    words += ['--cpanel', json.dumps(DDPG), f'--session-path={folder}']
    words += ['--session-name=s']
  return ['agents.pipeline.main', *words]


def find_run(system, folder):
  """The folder in which the program writes, None if there is none."""
  if system == 'HER':
    return folder
  pattern = {'PlaNet': '00001', 'PPO': '*-*', 'Pipeline': 's'}[system]
  return next(iter(glob.glob(f'{folder}/{pattern}')), None)


def find_saved(system, folder):
  """A number that grows with each checkpoint."""
  run = find_run(system, folder)
  if system in ('PlaNet', 'PPO'):
    names = glob.glob(f'{run}/model.ckpt-*.index')
    return max([int(re.findall(r'\d+', x)[-1]) for x in names], default=0)
  names = glob.glob(f'{run}/checkpoints/*/COMPLETE')
  numbers = [re.findall(r'\d+', os.path.dirname(x))[-1] for x in names]
  return max([int(x) + 1 for x in numbers], default=0)


def start(system, folder, host, closed=''):
  """Start the program; what it prints goes to a file beside the folder."""
  words = [sys.executable, '-u', '-c', PROGRAM, host]
  line = f'exec "$0" "$@" >"$LOG" 2>&1 {closed}'
  return subprocess.Popen(
    ['sh', '-c', line, *words, *command(system, folder)],
    cwd=golden.ROOT,
    env={**os.environ, 'PYTHONPATH': golden.ROOT, 'LOG': f'{folder}.{host}'},
    start_new_session=True,
  )


def wait_until_saved(program, system, folder, more_than):
  end = time.monotonic() + 120
  while find_saved(system, folder) <= more_than:
    assert program.poll() is None and time.monotonic() < end
    time.sleep(0.1)
  return find_saved(system, folder)


@pytest.mark.slow
@pytest.mark.parametrize('system', SYSTEMS)
def test_whole_programs(system, tmp_path):
  """Killed, taken over by another machine, left by its terminal, and moved."""
  folder, programs = str(tmp_path / 'run'), []

  def begin(*args):
    programs.append(start(system, folder, *args))
    return programs[-1]

  def read(host):
    return (tmp_path / f'run.{host}').read_text()

  try:
    program = begin('first')
    first = wait_until_saved(program, system, folder, 0)
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    first = max(first, find_saved(system, folder))
    began = time.monotonic()
    program = begin('second', '<&-')
    # Checkpoints go on after the clock was set back.
    second = wait_until_saved(program, system, folder, first)
    while time.monotonic() < began + 8:
      second = wait_until_saved(program, system, folder, second)
    second = wait_until_saved(program, system, folder, second)
    program.send_signal(signal.SIGHUP)
    assert program.wait(60) == 0, read('second')
    text = read('second')
    assert 'Taking over' in text and 'on first since' in text
    assert 'Traceback' not in text and 'ontinue' in text.splitlines()[-1]
    second = find_saved(system, folder)
    program = begin('third', '<&-')
    wait_until_saved(program, system, folder, second)
    run = find_run(system, folder)
    os.rename(run, tmp_path / 'elsewhere')
    assert program.wait(60) == 1, read('third')
    assert read('third').count('was moved or deleted while a run wrote') == 1
    assert not os.path.exists(run)
    # All streams closed.
    os.rename(tmp_path / 'elsewhere', run)
    saved = find_saved(system, folder)
    program = begin('fourth', '<&- >&- 2>&-')
    wait_until_saved(program, system, folder, saved)
    program.send_signal(signal.SIGINT)
    assert program.wait(60) == 0
  finally:
    for program in programs:
      if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def read_rows():
  """Cells of the table of promises, the head first."""
  with open(os.path.join(golden.ROOT, 'docs', 'promises.md')) as file_:
    lines = [x for x in file_ if x.startswith('|')]
  rows = [[y.strip() for y in x.strip().strip('|').split('|')] for x in lines]
  return rows[:1] + rows[2:]


def test_every_promise_has_tests():
  """For each system, or the reason why there is none."""
  head, *rows = read_rows()
  assert head[1:] == SYSTEMS and len(rows) >= 10
  for promise, *cells in rows:
    assert len(cells) == len(SYSTEMS), promise
    for cell in cells:
      assert TEST.search(cell) or cell.startswith('none: '), (promise, cell)


def test_named_tests_exist():
  with open(os.path.join(golden.ROOT, 'docs', 'promises.md')) as file_:
    named = set(TEST.findall(file_.read()))
  assert len(named) > 20
  for path, name in sorted(named):
    with open(os.path.join(golden.ROOT, 'tests', path)) as file_:
      tree = ast.parse(file_.read())
    names = [x.name for x in tree.body if isinstance(x, ast.FunctionDef)]
    assert name in names, f'docs/promises.md names {path}::{name}'
