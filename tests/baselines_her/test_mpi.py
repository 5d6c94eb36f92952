"""Several ranks under the real mpirun."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from baselines_her import logger
from tests import golden
from tests.baselines_her import toy

BESIDE = os.path.join(os.path.dirname(sys.executable), 'mpirun')
MPIRUN = BESIDE if os.path.exists(BESIDE) else shutil.which('mpirun')

pytestmark = pytest.mark.skipif(
  not MPIRUN or not importlib.util.find_spec('mpi4py'),
  reason='needs mpirun and mpi4py',
)


def run_ranks(folder, *parts, ranks=2):
  """Run `mpi_ranks` in several processes; returns code and output."""
  environ = {
    **os.environ,
    'OMPI_ALLOW_RUN_AS_ROOT': '1',
    'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
    'OMPI_MCA_mpi_yield_when_idle': '1',
    'PYTHONPATH': golden.ROOT,
  }
  command = [MPIRUN, '--oversubscribe', '-n', str(ranks), sys.executable]
  result = subprocess.run(
    [*command, '-m', 'tests.baselines_her.mpi_ranks', str(folder), *parts],
    env=environ,
    cwd=golden.ROOT,
    timeout=120,
    capture_output=True,
    text=True,
  )
  return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope='module')
def job(tmp_path_factory):
  """Folder, exit code and output of two ranks, the second of which fails."""
  folder = tmp_path_factory.mktemp('job')
  return folder, *run_ranks(folder, 'recorded', 'train', 'fail')


def results(folder, part, ranks=2):
  return [np.load(folder / f'{part}{x}.npz') for x in range(ranks)]


def test_recorded(job):
  """mpi_2ranks.npz: moments, averages, statistics and Adam of two ranks."""
  folder, _, output = job
  assert (folder / 'recorded1.npz').exists(), output
  data = toy.load('mpi_2ranks')
  for found in results(folder, 'recorded'):
    assert found['size'] == 2
    for part in ('mean', 'std', 'count'):
      np.testing.assert_allclose(
        found[f'mom_{part}'], data[f'mom_{part}'], 1e-9, 1e-12
      )
    np.testing.assert_allclose(found['average'], data['mpi_average_out'])
    np.testing.assert_allclose(found['lists'], 3.5)
    np.testing.assert_allclose(found['zeros'], -25)
    for part in ('sum', 'sumsq', 'count', 'mean', 'std'):
      golden.assert_close(found[f'norm_{part}'], data[f'norm_{part}'])
    for scale in (0, 1):
      golden.assert_close(
        found[f'theta{scale}'], data[f'adam_theta_scale{scale}']
      )


def test_training_keeps_ranks_equal(job):
  """Weights and statistics are the same to the bit, steps are counted."""
  folder, _, _ = job
  first, second = results(folder, 'train')
  assert len(first.files) > 20
  for key in first.files:
    np.testing.assert_array_equal(first[key], second[key], err_msg=key)
  rows = logger.read_json(str(folder / 'progress.json'))
  lines = logger.read_json(str(folder / 'metrics.jsonl'))
  assert len(rows) == len(lines) == 3
  assert [x['env_steps'] for x in lines] == [80, 160, 240]
  assert all(x['time/processes'] == 2 for x in lines)
  assert (folder / 'policies' / 'policy_best.pkl').exists()


@pytest.mark.slow
def test_library_without_folder(tmp_path, monkeypatch):
  """All ranks share a temporary one, with the states of all."""
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  code, output = run_ranks(tmp_path, 'iterate')
  assert code == 0, output
  first, second = results(tmp_path, 'iterate')
  assert first['logdir'] == second['logdir']
  assert {'rank0.npz', 'rank1.npz'} < set(first['files'].tolist())


@pytest.mark.parametrize('name', ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'])
def test_starts_its_own_ranks(tmp_path, name):
  """Root may do so, too; in containers there is nobody else.

  A signal to the job of the process that has started them, such as Ctrl-C,
  leaves them time to save; so does its death.
  """
  script = tmp_path / 'program.py'
  script.write_text(
    'import os, signal, time\n'
    'from agents.run import mpi\n'
    'from baselines_her import util\n'
    'os.environ.setdefault("PARENT", str(os.getpid()))\n'
    'if util.mpi_fork(2, ["--oversubscribe"]) == "child":\n'
    '  asked, rank = [], mpi.world().Get_rank()\n'
    '  signal.signal(signal.SIGUSR1, lambda *_: asked.append(rank))\n'
    '  mpi.world().Barrier()\n'
    '  if rank == 0:\n'
    f'    os.killpg(int(os.environ["PARENT"]), signal.{name})\n'
    '  limit = time.time() + 20\n'
    '  while not asked and time.time() < limit:\n'
    '    time.sleep(0.01)\n'
    '  mpi.world().Barrier()\n'
    '  print("rank", *asked, flush=True)\n'
    'else:\n'
    '  print("parent", flush=True)\n'
  )
  environ = {k: v for k, v in os.environ.items() if 'AS_ROOT' not in k}
  result = subprocess.run(
    [sys.executable, str(script)],
    env={**environ, 'PYTHONPATH': golden.ROOT},
    timeout=60,
    capture_output=True,
    text=True,
    start_new_session=True,
  )
  killed = name == 'SIGKILL'
  assert result.returncode == (-signal.SIGKILL if killed else 0), result.stderr
  lines = result.stdout.splitlines()
  assert sorted(lines[:2]) == ['rank 0', 'rank 1']
  assert lines[2:] == ([] if killed else ['parent'])


def test_failure_ends_the_job(job):
  """The others do not wait for ever, and the traceback is seen."""
  _, code, output = job
  assert code != 0
  assert 'the second rank has a problem' in output
