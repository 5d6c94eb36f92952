"""When a run is saved: on the way, at every end, and not twice."""

import contextlib

import pytest

from agents.run import errors, folder, life, mpi, stopping


class Ranks(mpi.SingleComm):
  """Communicator of one of two ranks."""

  def Get_size(self):
    return 2


@contextlib.contextmanager
def claimed(events, **facts):
  """Context of a run with some attributes."""
  opened = folder.Run(None)
  vars(opened).update(facts)
  events.append('locked')
  yield opened
  events.append('free')


def test_start():
  """Changes are told first; the run is locked until the training ends."""
  events: list[str] = []

  def train(run):
    yield run.config
    assert events == ['locked']

  def start(**facts):
    events.clear()
    told = life.start(lambda: claimed(events, **facts), train, mpi.SingleComm())
    result = list(told)
    assert events == ['locked', 'free']
    return result

  assert start(config=1, changes=['a', 'b']) == ['a', 'b', 1]
  assert start(config=1, changes=['a'], over='done') == ['a', 'done']


def test_start_of_other_ranks():
  """They get the settings of the first one, or have nothing to do either."""

  class Other(Ranks):
    def Get_rank(self):
      return 1

    def bcast(self, value, root=0):
      assert value is None
      return config

  def start():
    return list(life.start(no_claim, lambda run: iter([run.config]), Other()))

  def no_claim():
    raise AssertionError

  config: int | None = 3
  assert start() == [3]
  config = None
  assert start() == []


class Toy:
  """Training of some ticks, each of which leads to a record, its number.

  Args:
    count: Number of ticks.
    error: What the tick after the last one raises.
    due: Numbers after which a checkpoint is due.
    failing: What saving raises.
  """

  def __init__(self, count=3, error=None, due=(), failing=None):
    self.count, self.error, self.due = count, error, due
    self.failing = failing
    self.done, self.saved, self.closed = 0, [], False

  def ticks(self):
    try:
      while self.done < self.count:
        self.done += 1
        yield self.done
      if self.error:
        raise self.error
    finally:
      self.closed = True

  def save(self, forced):
    if self.failing:
      raise self.failing
    if not forced and self.done not in self.due:
      return False
    self.saved.append(self.done)
    return True

  def run(self, comm=None, **more):
    return life.run(self.ticks(), self.save, comm or mpi.SingleComm(), **more)


@pytest.mark.parametrize(
  'due, saved', [((), [3]), ((1,), [1, 3]), ((1, 3), [1, 3])]
)
def test_end(due, saved):
  """It is saved once, also if a checkpoint was due."""
  toy = Toy(due=due)
  assert list(toy.run()) == [1, 2, 3]
  assert toy.saved == saved and toy.closed


def test_nothing_to_do():
  toy = Toy(count=0)
  assert list(toy.run()) == [] and toy.saved == []


def outcome(generator):
  """Records, and the value that the generator returns."""
  records = []
  while True:
    try:
      records.append(next(generator))
    except StopIteration as end:
      return records, end.value


def test_stop():
  """Asked after a tick, or by a tick itself."""
  toy = Toy(due=[2])
  asked = toy.run(should_stop=lambda: toy.done == 2)
  assert outcome(asked) == ([1, 2], True)
  assert toy.saved == [2] and toy.closed
  toy = Toy(error=stopping.StopRequested())
  assert outcome(toy.run()) == ([1, 2, 3], True)
  assert toy.saved == [3]
  assert outcome(Toy().run()) == ([1, 2, 3], False)


def test_any_rank_may_be_asked(monkeypatch):
  comm = mpi.SingleComm()
  assert not life.is_asked(comm)
  monkeypatch.setattr(comm, 'allgather', lambda own: [own, True], raising=False)
  assert life.is_asked(comm)


def test_abandoned():
  """Who stops iterating loses nothing."""
  toy = Toy(due=[1])
  records = toy.run()
  assert next(records) == 1 and next(records) == 2
  records.close()
  assert toy.saved == [1, 2] and toy.closed


def test_lost_to_another_worker():
  """What is thrown in by the caller is no end of this run."""
  toy = Toy()
  records = toy.run()
  next(records)
  with pytest.raises(ZeroDivisionError):
    records.throw(ZeroDivisionError())
  assert toy.saved == [] and toy.closed


@pytest.mark.parametrize(
  'error', [ZeroDivisionError(), errors.EnvError('x'), KeyboardInterrupt()]
)
def test_error(error):
  toy = Toy(error=error)
  with pytest.raises(type(error)):
    list(toy.run())
  assert toy.saved == [3]


@pytest.mark.parametrize(
  'changes, comm',
  [
    ({'count': 0}, None),
    ({'due': [3]}, None),
    ({'error': errors.NotFinite('x')}, None),
    ({}, Ranks()),
  ],
)
def test_error_that_is_not_saved(changes, comm):
  """Nothing new, diverged, or one rank of several, which would wait."""
  toy = Toy(**{'error': ValueError('first'), **changes})
  with pytest.raises((ValueError, errors.NotFinite)):
    list(toy.run(comm))
  assert toy.saved == toy.saved[:1] == list(toy.due)


@pytest.mark.parametrize(
  'failing',
  [
    OSError(28, 'No space left'),
    errors.NotFinite('x'),
    RuntimeError('Graph error:\n x; No space left on device\nlong stack'),
  ],
)
def test_error_while_saving(failing, caplog):
  """The first error counts; that of a due checkpoint is not tried again."""
  toy = Toy(error=ValueError('first'))
  records = toy.run()
  assert [next(records) for _ in range(3)] == [1, 2, 3]
  toy.failing = failing
  with pytest.raises(ValueError, match='first'):
    next(records)
  assert 'Cannot save after an error' in caplog.text
  assert 'stack' not in caplog.text
  with pytest.raises(type(failing)):
    list(Toy(failing=failing).run())
