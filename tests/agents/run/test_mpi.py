"""Which processes belong together, whoever has started them."""

import os
import pickle
import sys
import types

import pytest

from agents import train_ppo
from agents.pipeline import main
from agents.run import errors, mpi

# What `salloc` sets in its shell where that is a step of its own.
SHELL = {
  'SLURM_NTASKS': '4',
  'SLURM_PROCID': '0',
  'SLURM_STEP_ID': '4294967290',
  'SLURM_STEP_NUM_TASKS': '1',
  'PMIX_RANK': '0',
}
SRUN = {'SLURM_NTASKS': '2', 'SLURM_PROCID': '0', 'SLURM_STEP_ID': '0'}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
  """Environment without launchers, and a world that is looked up anew."""
  for name in list(os.environ):
    if name.startswith(('OMPI_', 'PMI_', 'PMIX_', 'SLURM_')):
      monkeypatch.delenv(name)
  mpi.world.cache_clear()
  yield
  mpi.world.cache_clear()


def set_up(monkeypatch, environ, size):
  """Let a launcher have set variables, and mpi4py see a world.

  Args:
    monkeypatch: Fixture.
    environ: Dict of the variables.
    size: Size of the world, None without mpi4py.

  Returns:
    The world of mpi4py.
  """
  for name, value in environ.items():
    monkeypatch.setenv(name, value)
  if size is None:
    monkeypatch.setitem(sys.modules, 'mpi4py', None)
    return None
  world = types.SimpleNamespace(Get_size=lambda: size, Get_rank=lambda: 0)
  module = types.SimpleNamespace(MPI=types.SimpleNamespace(COMM_WORLD=world))
  monkeypatch.setitem(sys.modules, 'mpi4py', module)
  return world


@pytest.mark.parametrize(
  'environ',
  [
    {},
    {'OMPI_COMM_WORLD_SIZE': '1', 'PMIX_RANK': '0'},
    {'PMI_SIZE': '1', 'PMI_RANK': '0'},
    {'SLURM_NTASKS': '4'},  # salloc.
    {'SLURM_NTASKS': '4', 'SLURM_PROCID': '0'},  # Script of sbatch.
    SHELL,
    {**SHELL, 'SLURM_STEP_NUM_TASKS': '4'},
    {**SRUN, 'SLURM_NTASKS': '4', 'SLURM_STEP_NUM_TASKS': '1'},  # srun -n 1.
    # mpirun -n 1, whose daemons srun has started.
    {**SRUN, 'SLURM_STEP_NUM_TASKS': '2', 'OMPI_COMM_WORLD_SIZE': '1'},
  ],
)
def test_one_process(environ, monkeypatch):
  """An allocation for several is no launch of several; mpi4py is not asked."""
  set_up(monkeypatch, environ, None)
  assert isinstance(mpi.world(), mpi.SingleComm)


@pytest.mark.parametrize(
  'environ',
  [
    {'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_RANK': '0'},
    {'PMI_SIZE': '2', 'PMI_RANK': '0'},
    {'PMIX_RANK': '0'},
    {'PMIX_RANK': '1'},
    {**SRUN, 'PMIX_RANK': '0', 'SLURM_STEP_NUM_TASKS': '2'},
    SRUN,
    # Daemons of mpirun on two nodes, started by srun, for more processes.
    {'OMPI_COMM_WORLD_SIZE': '8', **SRUN, 'SLURM_STEP_NUM_TASKS': '2'},
  ],
)
def test_the_world_counts(environ, monkeypatch):
  """Whatever the variables say, mpi4py knows who can be talked to."""
  name = 'OMPI_MCA_mpi_yield_when_idle'
  monkeypatch.setenv(name, '')
  monkeypatch.delenv(name)
  world = set_up(monkeypatch, environ, 8)
  assert mpi.world() is world
  assert os.environ[name] == '1'


@pytest.mark.parametrize(
  'environ, name',
  [
    ({'OMPI_COMM_WORLD_SIZE': '2'}, 'OMPI_COMM_WORLD_SIZE=2'),
    ({'PMI_SIZE': '2', 'PMI_RANK': '0'}, 'PMI_SIZE=2'),
    ({'PMIX_RANK': '3'}, 'PMIX_RANK=3'),
    ({**SRUN, 'SLURM_STEP_NUM_TASKS': '2'}, 'SLURM_STEP_NUM_TASKS=2'),
    (SRUN, 'SLURM_NTASKS=2'),
    ({'PMIX_RANK': '0', 'SLURM_NTASKS': '2'}, 'SLURM_NTASKS=2'),
    ({'SLURM_NTASKS': '2', 'SLURM_PROCID': '1'}, 'SLURM_PROCID=1'),
  ],
)
def test_separate_worlds_are_refused(environ, name, monkeypatch):
  """The sentence names the variable that tells of the others."""
  set_up(monkeypatch, environ, 1)
  with pytest.raises(errors.UsageError, match=f'{name},.* separate agent'):
    mpi.world()
  mpi.world.cache_clear()
  set_up(monkeypatch, environ, None)
  with pytest.raises(errors.UsageError, match=f'{name},.* cannot be imported'):
    mpi.world()


@pytest.mark.parametrize(
  'environ, is_first',
  [
    ({}, True),
    ({'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_RANK': '0'}, True),
    ({'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_RANK': '1'}, False),
    ({'PMI_SIZE': '2', 'PMI_RANK': '1'}, False),
    ({**SRUN, 'SLURM_PROCID': '1'}, False),
    # The user has unset the size, so that processes train alone.
    ({'OMPI_COMM_WORLD_RANK': '1'}, True),
  ],
)
def test_first_process_of_a_launcher(environ, is_first, monkeypatch):
  """Without a look at mpi4py."""
  set_up(monkeypatch, environ, None)
  assert mpi.is_first() is is_first


def test_lone_process_of_unknown_launcher(monkeypatch):
  world = set_up(monkeypatch, {'PMIX_RANK': '0'}, 1)
  assert mpi.world() is world


def test_programs_refuse_in_one_sentence(monkeypatch, capsys):
  """Whoever is to end the others at errors has to find them first."""
  set_up(monkeypatch, {'PMI_SIZE': '2'}, 1)
  monkeypatch.setattr(sys, 'excepthook', sys.excepthook)
  assert train_ppo.run(['--config=pybullet_pendulum']) == 2
  assert 'PMI_SIZE=2' in capsys.readouterr().err
  assert main.entrypoint(['--params=agents.pipeline.params.pendulum']) == 2
  assert 'PMI_SIZE=2' in capsys.readouterr().err


def test_places_of_processes(monkeypatch):
  """Cores that several may use count in parts; other machines do not."""
  places = [('a', [0, 1]), ('b', [0]), ('a', [1, 2]), ('a', [1])]
  monkeypatch.setattr(mpi.socket, 'gethostname', lambda: 'a')
  found = []
  for rank in (0, 2, 3):
    comm = types.SimpleNamespace(
      allgather=lambda unused: places, Get_rank=lambda x=rank: x
    )
    monkeypatch.setattr(mpi.limits, 'list_cores', lambda x=rank: places[x][1])
    monkeypatch.setattr(mpi.limits, 'cpu_quota', lambda: 9)
    found.append(mpi.find_share(comm))
  third = 1 / 3
  assert found == [
    mpi.HostShare(0, 3, 1 + third),
    mpi.HostShare(1, 3, third + 1),
    mpi.HostShare(2, 3, third),
  ]
  monkeypatch.undo()
  alone = mpi.find_share(mpi.SingleComm())
  assert (alone.rank, alone.size) == (0, 1) and alone.cores >= 1


class Pair(mpi.SingleComm):
  """What a rank of two sees that gets the path of a file."""

  def __init__(self, rank, path=None):
    self._rank, self._path = rank, path

  def Get_rank(self):
    return self._rank

  def Get_size(self):
    return 2

  def bcast(self, value, root=0):
    return value if self._path is None else self._path

  def allgather(self, value):
    first = [(True, 'host')]
    return first + [value] if self._rank else [value, (False, 'other')]


def test_folder_that_not_all_ranks_see(tmp_path):
  """Each would keep its part of a checkpoint to itself; all are told."""
  file_ = tmp_path / 'x'
  file_.touch()
  mpi.check_shared(mpi.SingleComm(), str(tmp_path / 'gone'))
  mpi.check_shared(Pair(1, str(file_)), str(tmp_path))
  for comm in Pair(0), Pair(1, str(tmp_path / 'gone')):
    with pytest.raises(errors.UsageError, match='Rank 1 of 2 .* share'):
      mpi.check_shared(comm, str(tmp_path))
  assert os.listdir(tmp_path) == ['x']


@pytest.mark.parametrize(
  'error',
  [errors.UsageError('Bad.'), errors.EnvError('Bad.', 'Trace'), None],
)
def test_an_error_of_another_rank(error):
  """It reaches the first rank, which then can clean up."""
  comm = mpi.SingleComm()
  comm.allgather = lambda own: [own, None, pickle.loads(pickle.dumps(error))]
  if not error:
    assert mpi.on_all_ranks(comm, lambda: 5) == 5
    return
  with pytest.raises(type(error), match='^Rank 2: Bad.$') as caught:
    mpi.on_all_ranks(comm, lambda: 5)
  assert caught.value.details == error.details

  def fail():
    raise errors.EnvError('Own.')

  with pytest.raises(errors.EnvError, match='^Own.$'):
    mpi.on_all_ranks(comm, fail)
