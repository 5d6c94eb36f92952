"""Random numbers of the process and of environments."""

import types

import numpy as np
import pytest

from agents.run import checkpoint, random_state


def test_random_numbers_continue(tmp_path):
  np.random.seed(3)
  np.random.normal(size=3)
  state = random_state.get_random_state()
  checkpoint.write_tree(str(tmp_path / 'states'), state)
  expected = np.random.normal(size=4)
  random_state.set_random_state(checkpoint.read_tree(str(tmp_path / 'states')))
  np.testing.assert_array_equal(np.random.normal(size=4), expected)


@pytest.mark.parametrize('make', [np.random.default_rng, np.random.RandomState])
def test_generators_of_environments_continue(tmp_path, make):
  """Those of gymnasium and of gym until 0.21, in which a number waits."""
  one, other = (types.SimpleNamespace(np_random=make(x)) for x in (3, 4))
  one.np_random.normal(size=3)
  state = {'random': random_state.get_generator_state(one)}
  checkpoint.write_tree(str(tmp_path / 'states'), state)
  expected = one.np_random.normal(size=4)
  state = checkpoint.read_tree(str(tmp_path / 'states'))
  random_state.set_generator_state(other, state['random'])
  np.testing.assert_array_equal(other.np_random.normal(size=4), expected)


def test_environments_without_a_generator():
  assert random_state.get_generator_state(object()) is None
  random_state.set_generator_state(object(), None)


def test_seeds_of_ranks():
  """None repeats another one or that of a run that continues."""
  steps = range(0, 100_000, 1000)
  seeds = [
    random_state.seed_of_rank(3, step, rank)
    for step in steps
    for rank in range(8)
  ]
  assert len(set(seeds)) == len(seeds) and seeds[0] == 3
  assert random_state.seed_of_rank(None, 5, 1) is None
