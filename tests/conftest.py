"""What all tests share. TensorFlow is only imported by tests that need it."""

import collections
import importlib.util
import signal
import sys

import pytest

from tests import golden


@pytest.fixture(autouse=True, scope='session')
def usual_signals():
  """Let programs of tests receive what jobs in the background ignore."""
  usual = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: signal.SIG_DFL,
  }
  for number, handler in usual.items():
    if signal.getsignal(number) == signal.SIG_IGN:
      signal.signal(number, handler)


@pytest.fixture(autouse=True)
def fresh_graph():
  """Give each test an empty graph with a fixed seed, if it uses TensorFlow."""
  module = sys.modules.get('agents.tools.tf1')
  if module:
    module.tf.reset_default_graph()
    module.tf.set_random_seed(0)
  yield
  if module:
    module.tf.reset_default_graph()


@pytest.fixture(autouse=True)
def quick_start(request, monkeypatch):
  """Do not optimize graphs, a third of the time of small trainings.

  Programs that tests start optimize theirs, as do comparisons with recorded
  numbers.
  """
  module = sys.modules.get('agents.tools.tf1')
  values = vars(request.module).values()
  if not module or any(isinstance(x, golden.Golden) for x in values):
    return
  tf = module.tf
  create = tf.Session.__init__

  def init(self, target='', graph=None, config=None):
    options = tf.ConfigProto()
    options.MergeFrom(config or options)
    rewrites = options.graph_options.rewrite_options
    # Unless a test is about some of them.
    if not rewrites.ByteSize():
      rewrites.disable_meta_optimizer = True
    create(self, target, graph, options)

  monkeypatch.setattr(tf.Session, '__init__', init)


def pytest_collection_modifyitems(items):
  """Begin with files of few tests: those train, and would end alone."""
  tests = collections.Counter(x.path for x in items)
  items.sort(key=lambda x: tests[x.path])


def pytest_runtest_setup(item):
  """Skip tests of simulators and devices that cannot be had here."""
  for mark in item.iter_markers('needs'):
    for name in mark.args:
      if importlib.util.find_spec(name) is None:
        pytest.skip(f'{name} is not installed')
  if item.get_closest_marker('gpu'):
    from agents.tools import devices

    if not devices.list_usable():
      pytest.skip(devices.describe())
