"""Windows that show images of environments while these are played."""

import importlib.util
import os
import sys
import warnings
from typing import Any

import numpy as np

from agents.run import errors


def has_display() -> bool:
  """Return whether windows can be opened."""
  names = ('DISPLAY', 'WAYLAND_DISPLAY')
  return sys.platform == 'darwin' or any(os.environ.get(x) for x in names)


def check() -> None:
  """Refuse early what needs a window.

  Raises:
    UsageError: If there is no display, or the package for it is missing.
  """
  if not has_display():
    raise errors.UsageError(
      'There is no display to open a window on: neither DISPLAY nor '
      'WAYLAND_DISPLAY is set. Leave --render away; the videos show the same.'
    )
  if not importlib.util.find_spec('pygame'):
    raise errors.UsageError(
      "Windows need the package pygame: pip install 'pygame>=2.6'. Without "
      'it, leave --render away; the videos show the same.'
    )


class Window:
  """Window of the size of its images, opened by the first one.

  Once the user has closed it, images are not shown any more.

  Args:
    title: Text above.
    fps: Images per second; `show` waits for it.
  """

  def __init__(self, title: str, fps: float):
    self._title = title
    self._fps = fps
    self._screen: Any = None
    self._clock: Any = None
    self._closed = False

  def show(self, image: np.ndarray) -> None:
    """Show an image uint8 [height, width, 3].

    Raises:
      UsageError: If no window can be opened.
    """
    if self._closed:
      return
    pygame = _import_pygame()
    size = image.shape[1], image.shape[0]
    if self._screen is None or self._screen.get_size() != size:
      self._open(pygame, size)
    if pygame.event.get(pygame.QUIT):
      self.close()
      return
    pygame.event.pump()
    pygame.surfarray.blit_array(self._screen, image.swapaxes(0, 1))
    pygame.display.flip()
    self._clock.tick(self._fps)

  def close(self) -> None:
    """Close the window, if it is open."""
    if self._screen is not None:
      _import_pygame().display.quit()
      self._screen = None
    self._closed = True

  def _open(self, pygame, size):
    try:
      pygame.display.init()
      self._screen = pygame.display.set_mode(size)
    except pygame.error as error:
      raise errors.UsageError(
        f'Cannot open a window: {error}. Leave --render away; the videos show '
        'the same.'
      ) from None
    pygame.display.set_caption(self._title)
    self._clock = pygame.time.Clock()


def _import_pygame():
  """Import pygame without its greeting and its warnings."""
  os.environ.setdefault('PYGAME_HIDE_SUPPORT_PROMPT', '1')
  # OpenGL, by which SDL would copy images to the screen, crashes in workers.
  os.environ.setdefault('SDL_FRAMEBUFFER_ACCELERATION', '0')
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import pygame
  return pygame
