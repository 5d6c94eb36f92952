"""Messages and tables against recorded text."""

import concurrent.futures
import io
import sys
import types

import numpy as np
import pytest

from agents.run import errors, mpi
from baselines_her import logger
from tests import golden


def test_recorded_files(tmp_path):
  """cmdline_logger.json: the exact text of log, CSV and JSON."""
  data = golden.load_json('her/cmdline_logger')['logger']
  folder = str(tmp_path / 'logs')
  with logger.scoped_configure(folder, ['log', 'csv', 'json']):
    assert logger.get_dir() == folder
    for kind, *args in data['sequence']:
      if kind == 'kv':
        logger.record_tabular(*args)
      elif kind == 'kv_mean':
        for value in args[1]:
          logger.logkv_mean(args[0], value)
      elif kind == 'dump':
        logger.dump_tabular()
      else:
        getattr(logger, kind)(*args[0])
  for name, wanted in data['files'].items():
    text = (tmp_path / 'logs' / name).read_text()
    assert text.replace(folder, '<LOGDIR>') == wanted


def test_continued_files(tmp_path):
  """A second process appends to the table, with further columns."""
  for row in ({'a': 1, 'b': 2}, {'b': 3, 'c': 4}):
    with logger.scoped_configure(str(tmp_path), ['csv', 'json']):
      logger.logkvs(row)
      assert logger.dumpkvs() == row
  assert logger.read_csv(str(tmp_path / 'progress.csv')) == [
    {'a': 1, 'b': 2, 'c': None},
    {'a': None, 'b': 3, 'c': 4},
  ]
  assert logger.read_json(str(tmp_path / 'progress.json'))[1]['c'] == 4


def test_tensorboard(tmp_path):
  with logger.scoped_configure(str(tmp_path), ['tensorboard']):
    for value in (1.5, 2.5):
      logger.logkv('x', np.float32(value))
      logger.dumpkvs()
  assert logger.read_tb(str(tmp_path / 'tb')) == [{'x': 1.5}, {'x': 2.5}]


def test_repeated_epochs_in_tensorboard(tmp_path):
  """Their steps are those of their first time."""
  with logger.scoped_configure(str(tmp_path), ['tensorboard']):
    for epoch in (0, 1, 2, 1, 2, 3):
      logger.logkv('epoch', epoch)
      logger.dumpkvs()
  assert len(logger.read_tb(str(tmp_path / 'tb'))) == 4


@pytest.mark.parametrize(
  'rank, formats, names',
  [
    (0, None, ['log.txt', 'progress.csv']),
    (0, 'json,csv', ['progress.csv', 'progress.json']),
    (0, '', []),
    (2, None, ['log-rank002.txt']),
    (2, 'csv', ['progress-rank002.csv']),
  ],
)
def test_outputs_of_the_environment(
  rank, formats, names, monkeypatch, tmp_path
):
  """Ranks after the first have a variable, a default and names of their own."""
  variables = ['OPENAI_LOG_FORMAT', 'OPENAI_LOG_FORMAT_MPI']
  for name in variables:
    monkeypatch.delenv(name, raising=False)
  if formats is not None:
    monkeypatch.setenv(variables[rank > 0], formats)
  monkeypatch.setenv('OPENAI_LOGDIR', str(tmp_path))
  comm = types.SimpleNamespace(Get_rank=lambda: rank)
  monkeypatch.setattr(mpi, 'world', lambda: comm)
  with logger.scoped_configure():
    assert logger.get_dir() == str(tmp_path)
    logger.logkv('a', 1)
    logger.dumpkvs()
  assert sorted(x.name for x in tmp_path.iterdir()) == names


def test_levels_and_terminal(capsys, tmp_path):
  with logger.scoped_configure(str(tmp_path), ['stdout']):
    logger.set_level(logger.WARN)
    logger.info('quiet')
    logger.warn('loud', 3)
    with logger.profile_kv('work'):
      pass
    assert set(logger.getkvs()) == {'wait_work'}
  output = capsys.readouterr().out
  assert 'loud 3' in output and 'quiet' not in output


def test_current_logger(tmp_path):
  """Every thread has its own, as trainings beside each other need."""
  before = logger.get_current()
  with logger.scoped_configure(str(tmp_path), []):
    logger.logkv('a', 1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
      assert pool.submit(logger.get_dir).result() is None
      assert pool.submit(logger.getkvs).result() == {}
    assert logger.get_dir() == str(tmp_path) and logger.getkvs() == {'a': 1}
  assert logger.get_current() is before
  logger.reset()
  assert logger.get_current() is not before


def test_logger_as_an_object(capsys):
  """As in the original, it has the functions of the module as methods."""
  own = logger.Logger(None, [logger.HumanOutputFormat(sys.stdout)])
  own.logkv(key='a', val=1)
  for value in (1, 2):
    own.logkv_mean('b', val=value)
  own.log('three', 'words')
  assert own.dumpkvs() == {'a': 1, 'b': 1.5} and not own.values
  own.set_level(logger.DISABLED)
  own.log('quiet')
  output = capsys.readouterr().out
  assert 'three words\n-----' in output and 'quiet' not in output
  assert '| a | 1        |' in output
  assert own.get_dir() is None


class Rows(logger.KVWriter):
  """Output of a user, for tables only."""

  def __init__(self):
    self.rows = []

  def writekvs(self, kvs):
    self.rows.append(kvs)


class Lines(logger.SeqWriter):
  """Output of a user, for messages only."""

  def __init__(self):
    self.lines = []

  def writeseq(self, seq):
    self.lines.append(list(seq))


def test_outputs_of_users(tmp_path):
  rows, lines = Rows(), Lines()
  with logger.scoped_configure(str(tmp_path), []):
    logger.Logger.CURRENT.output_formats += [rows, lines]
    logger.log('a', 1)
    logger.logkv('b', 2)
    assert logger.get_current().name2val == {'b': 2}
    logger.dumpkvs()
    own = logger.Logger.CURRENT = logger.Logger(None, [lines])
    logger.warn('c')
    assert logger.get_current() is own
  assert rows.rows == [{'b': 2}] and lines.lines == [['a', '1'], ['c']]
  logger.reset()
  assert logger.Logger.CURRENT is logger.Logger.DEFAULT


def test_open_file():
  """Stays open, as in the original."""
  file_ = io.StringIO()
  own = logger.Logger(None, [logger.HumanOutputFormat(file_)])
  own.log('two', 'words')
  own.logkv('a', 1)
  own.dumpkvs()
  own.close()
  assert file_.getvalue().startswith('two words\n----')


def test_derived_output(tmp_path):
  class Short(logger.CSVOutputFormat):
    def writekvs(self, kvs):
      super().writekvs({'a': kvs['a']})

  path = str(tmp_path / 'short.csv')
  Short(filename=path).writekvs({'a': 1, 'b': 2})
  assert logger.read_csv(path) == [{'a': 1}]


class TwoRanks(mpi.SingleComm):
  """Communicator whose second process has logged something else."""

  def allgather(self, value):
    return [value, {'a': (4, 1), 'c': (5, 1), 'name': ('x', 1)}]


def test_means_over_processes(tmp_path):
  with logger.scoped_configure(str(tmp_path), [], comm=TwoRanks()):
    for value in (1, 1, 1):
      logger.logkv_mean('a', value)
    logger.logkv('b', 2)
    assert logger.dumpkvs() == {'a': 1.75, 'b': 2, 'c': 5, 'name': 'x'}


def test_decorated_function(tmp_path):
  with logger.scoped_configure(str(tmp_path), []):
    twice = logger.profile(n='sum')(lambda x: x + x)
    assert twice(2) == 4
    assert set(logger.getkvs()) == {'wait_sum'}


def test_bad_settings(tmp_path):
  with pytest.raises(errors.UsageError, match='tensorboard'):
    logger.configure(str(tmp_path), ['tensorbord'])
  logger.reset()


def test_folder_stays_when_the_program_goes_elsewhere(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert logger.choose_dir('run') == str(tmp_path / 'run')
