"""The program that draws the picture of the README."""

import os
import sys

import numpy as np
import pytest

from tests import golden


@pytest.mark.slow
def test_imagined_images(monkeypatch):
  """A shipped agent gets a decoder, and predicts images."""
  folder = os.path.join(golden.ROOT, 'docs', 'pictures')
  monkeypatch.setattr(sys, 'path', [folder, *sys.path])
  import imagine

  monkeypatch.setattr(imagine, 'UPDATES', 3)
  agent = os.path.join(golden.ROOT, 'results', 'agents', 'carla_loop')
  first, second = imagine.collect(agent, 2)
  model = imagine.Model(agent)
  model.fit([first])
  images, rewards = model.imagine(second, 5)
  assert rewards.shape == second['reward'].shape
  assert images.shape == second['image'].shape and images.dtype == np.uint8
