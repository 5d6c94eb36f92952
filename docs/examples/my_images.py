"""Catch: an environment whose observations are images.

A ball falls through a field of 10 x 5 cells; a paddle in the last row should be
below it in the end (Osband et al., 2020, arXiv:1908.03568).
"""

import gymnasium
import numpy as np

ROWS, COLUMNS, PIXELS = 10, 5, 8


class Catch(gymnasium.Env):
  metadata = {'render_modes': ['rgb_array'], 'render_fps': 10}
  # Convolutional networks need at least 36 x 36 pixels.
  observation_space = gymnasium.spaces.Box(
    0, 255, (ROWS * PIXELS, COLUMNS * PIXELS, 1), np.uint8
  )
  # Left, stay, right.
  action_space = gymnasium.spaces.Discrete(3)

  def __init__(self, render_mode=None):
    self.render_mode = render_mode

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._row, self._ball = 0, self.np_random.integers(COLUMNS)
    self._paddle = COLUMNS // 2
    return self._draw(), {}

  def step(self, action):
    self._row += 1
    self._paddle = np.clip(self._paddle + action - 1, 0, COLUMNS - 1)
    done = self._row == ROWS - 1
    reward = (1.0 if self._paddle == self._ball else -1.0) if done else 0.0
    return self._draw(), reward, done, False, {}

  def render(self):
    return np.repeat(self._draw(), 3, -1)

  def _draw(self):
    cells = np.zeros((ROWS, COLUMNS, 1), np.uint8)
    cells[self._row, self._ball] = 255
    cells[ROWS - 1, self._paddle] = 128
    return cells.repeat(PIXELS, 0).repeat(PIXELS, 1)


gymnasium.register('Catch-v0', Catch)
