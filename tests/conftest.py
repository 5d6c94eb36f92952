"""What all tests share. TensorFlow is only imported by tests that need it."""

import collections
import importlib.util
import sys

import pytest


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
