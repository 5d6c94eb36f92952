"""Random numbers of the process."""

import numpy as np

from agents.run import checkpoint, random_state


def test_random_numbers_continue(tmp_path):
  np.random.seed(3)
  np.random.normal(size=3)
  state = random_state.get_random_state()
  checkpoint.write_tree(str(tmp_path / 'states'), state)
  expected = np.random.normal(size=4)
  random_state.set_random_state(checkpoint.read_tree(str(tmp_path / 'states')))
  np.testing.assert_array_equal(np.random.normal(size=4), expected)
