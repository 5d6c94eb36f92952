"""PPO in several processes of MPI."""

import importlib.util
import os
import sys

import pytest

from tests.agents import training_runs

MPIRUN = os.path.join(os.path.dirname(sys.executable), 'mpirun')
ENVIRON = dict(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
pytestmark = [
  pytest.mark.skipif(
    not os.path.exists(MPIRUN), reason=f'there is no mpirun at {MPIRUN}'
  ),
  pytest.mark.skipif(
    not importlib.util.find_spec('mpi4py'), reason='mpi4py is not installed'
  ),
]


def test_training(tmp_path):
  """Weights stay the same bit for bit; one folder, one score per phase."""
  command = training_runs.command(tmp_path)[2:]
  process = training_runs.start(
    '-m',
    'tests.agents.mpi_training',
    *command,
    prefix=(MPIRUN, '--oversubscribe', '-n', '2'),
    **ENVIRON,
  )
  result = training_runs.finish(process, 180)
  assert result.code == 0, result.output
  assert 'Weights of 2 processes: same.' in result.output, result.output
  assert '2 processes train together.' in result.output
  rows = training_runs.scores(tmp_path)
  assert [x[1] for x in rows] == [40, 80, 120, 160]
  assert result.output.count('Update 1 train, step 40') == 1
