"""Two ranks of MPI in one session: folder, errors and statistics."""

import pytest

from agents.pipeline.loader import Loader
from tests.agents import test_mpi_training, training_runs
from tests.agents.pipeline.test_session import load

pytestmark = [*test_mpi_training.pytestmark, pytest.mark.slow]


def run(*args):
  """Result of two ranks, with exit code and output."""
  process = training_runs.start(
    *('-m', 'scripts.main', *args),
    prefix=(test_mpi_training.MPIRUN, '--oversubscribe', '-n', '2'),
    **test_mpi_training.ENVIRON,
  )
  return training_runs.finish(process, 180)


@pytest.mark.parametrize('name', ['/reward/train/episodic', '/update/loss'])
def test_statistics_of_both_ranks(session, name):
  """Three cycles of each."""
  log = Loader(str(session)).getVarlogLoader()[name]
  assert list(log['num']) == [6, 6, 6]
  assert list(log['epoch']) == [1, 2, 3]
  assert (log['std'] > 0).all()
  single = log['frame'][0] // 2
  assert list(log['frame']) == [2 * single, 4 * single, 6 * single]


@pytest.fixture(scope='module')
def session(tmp_path_factory):
  """A session of two epochs that was continued with a third."""
  path = tmp_path_factory.mktemp('ranks')
  result = run(
    *('--params', 'tests.agents.pipeline.toy', '--session-path', str(path)),
    *('--session-name', 'run'),
  )
  assert result.code == 0, result.output
  assert result.output.count('INFO] Session') == 1
  place = path / 'run' / 'checkpoints' / 'checkpoint-2'
  assert (place / 'rank0.npz').exists() and (place / 'rank1.npz').exists()
  result = run(
    *('--load-checkpoint', str(path / 'run'), '--resume', '--trust', 'tests'),
    *('--repeal', '{"runner.n_epochs": 3}'),
  )
  assert result.code == 0, result.output
  return path / 'run'


def test_another_number_of_ranks(session, capsys):
  """The memories of the others would be lost."""
  repeal = '{"runner.n_epochs": 4}'
  assert load(session, '--resume', '--repeal', repeal) == 2
  assert 'saved with 2 ranks, not 1' in capsys.readouterr().err
  assert load(session, '--play', '--play-episodes', '1', '--dry-run') == 0


@pytest.mark.parametrize(
  'args, code, words',
  [
    (['--params', 'nonsense'], 2, "There is no module 'nonsense'"),
    (['--params', 'tests.agents.pipeline.toy', '--pley'], 2, '--pley'),
    pytest.param(
      ['--params', 'tests.agents.pipeline.toy', '--cpanel', '{fail_rank: 1}'],
      1,
      'The explorer of rank 1 has failed',
      marks=pytest.mark.slow,
    ),
  ],
)
def test_errors_end_all_ranks(tmp_path, args, code, words):
  """With one sentence, also if only one rank has it."""
  result = run(*args, '--session-path', str(tmp_path))
  assert result.code == code, result.output
  assert result.output.count(words) == 1, result.output
  assert 'Traceback' not in result.output


def test_part_that_fails_on_one_rank(tmp_path):
  """The first rank says so and removes the folder of the session."""
  result = run(
    *('--params', 'tests.agents.pipeline.toy', '--session-path'),
    *(str(tmp_path / 'all'), '--cpanel', '{fail_rank: 1, fail_at: start}'),
  )
  assert result.code == 1, result.output
  words = 'Error: Rank 1: The explorer of rank 1 is not there.'
  assert result.output.count(words) == 1, result.output
  assert not any(tmp_path.iterdir())
