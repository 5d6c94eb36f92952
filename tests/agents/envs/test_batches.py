"""Observations that are given to an agent."""

import gymnasium
import numpy as np
import pytest

from agents.envs import batches, spaces

BOX = spaces.box(-np.ones(2), np.ones(2))
SPACE = spaces.dictionary({'arm': BOX, 'cup': spaces.dictionary({'x': BOX})})


@pytest.mark.parametrize('rows', [(), (3,)])
def test_parts_that_no_training_reads(rows):
  """They may be anything, such as depth images with infinite numbers."""
  value = np.zeros((*rows, 2))
  cup = {'x': value, 'depth': np.full(5, np.inf)}
  observation = {'map': None, 'arm': value, 'cup': cup, 'words': ['go']}
  found = batches.read(observation, SPACE)
  assert list(found) == ['arm', 'cup']
  assert list(found['cup']) == ['x']
  assert batches.check(found, SPACE) == (rows[0] if rows else None)
  with pytest.raises(ValueError, match='dictionary with arm, cup'):
    batches.read({'arm': value}, SPACE)
  with pytest.raises(ValueError, match='is NaN'):
    bad = batches.read({**observation, 'arm': value * np.nan}, SPACE)
    batches.check(bad, SPACE)


def test_parts_within_a_tuple():
  space = gymnasium.spaces.Tuple([SPACE['cup'], BOX])
  cup = {'x': np.zeros(2), 'depth': np.full(5, np.inf)}
  found = batches.read((cup, [0, 1]), space)
  assert list(found[0]) == ['x'] and batches.check(found, space) is None
