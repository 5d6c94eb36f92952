"""Messages on the terminal and in files."""

import logging
import subprocess
import sys

import pytest

from agents.run import messages, references, training
from tests import golden


@pytest.fixture
def logger():
  """One of this project, as it is before any program has run."""
  loggers = [logging.getLogger(x) for x in references.PROJECT]
  before = [(x.handlers, x.level, x.propagate) for x in loggers]
  for found in loggers:
    found.handlers = []
  yield logging.getLogger('planet.some.module')
  for found, (handlers, level, propagate) in zip(loggers, before):
    found.handlers, found.level, found.propagate = handlers, level, propagate


def test_handlers(tmp_path, capsys):
  """For files and for the terminal of the moment."""
  path = tmp_path / 'log.txt'
  logger = logging.Logger('test')
  logger.addHandler(messages.TextHandler(str(path)))
  logger.addHandler(messages.TextHandler(stream='stderr'))
  logger.warning('one %s', 'two')
  assert path.read_text() == capsys.readouterr().err == 'one two\n'


def test_details(logger, tmp_path, capsys):
  """They go to the file of a run, and to the terminal only on request."""
  path = tmp_path / 'log.txt'
  for verbose in (False, True, False):
    messages.set_up_logging(verbose)
    with messages.write_messages(str(path)):
      logger.debug('detail')
      logger.info('event')
    logger.info('after')
    shown = 'detail\n' * verbose + 'event\nafter\n'
    assert capsys.readouterr().err == shown
  assert path.read_text() == 'detail\nevent\n' * 3


def test_other_ranks_print_only_warnings(logger, monkeypatch, capsys):
  monkeypatch.setenv('OMPI_COMM_WORLD_SIZE', '2')
  monkeypatch.setenv('OMPI_COMM_WORLD_RANK', '1')
  messages.set_up_logging(verbose=True)
  logger.info('event')
  logger.warning('attention')
  assert capsys.readouterr().err == 'attention\n'


def test_trainings_beside_each_other(logger, tmp_path):
  """Each file has the messages of its training, whoever comes between."""
  messages.set_up_logging()

  def train(name):
    with messages.write_messages(str(tmp_path / name)):
      for epoch in range(2):
        logger.info('%s %s', name, epoch)
        yield {}

  trainings = [training.Training(lambda x=x: train(x)) for x in 'ab']
  for _ in zip(*trainings):
    pass
  for name in 'ab':
    assert (tmp_path / name).read_text() == f'{name} 0\n{name} 1\n'


def test_warnings_of_others_are_shown():
  code = (
    'import warnings\nfrom agents.run import messages\n'
    "messages.set_up_logging()\nwarnings.warn('attention')"
  )
  result = subprocess.run(
    [sys.executable, '-c', code],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
  )
  assert 'UserWarning: attention' in result.stderr
