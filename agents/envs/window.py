"""Window that shows images while an environment is played."""

import os
import sys

import numpy as np

from agents.envs import quiet, video
from agents.run import errors


class Window:
  """Window for the frames of any environment.

  It shows images that are rendered off screen, so it does not need OpenGL. Once
  the user closes it, further frames are ignored.

  Args:
    title: Title of the window.
    fps: Frames per second; `show` waits accordingly.

  Raises:
    UsageError: If the display cannot be used.
  """

  def __init__(self, title: str, fps: float):
    self._fps = fps
    self._is_open = True
    self._size: tuple[int, int] | None = None
    # Otherwise SDL may use OpenGL for nothing but copying.
    os.environ.setdefault('SDL_FRAMEBUFFER_ACCELERATION', '0')
    with quiet.quietly():
      import pygame
    try:
      pygame.display.init()
    except pygame.error as error:
      raise errors.UsageError(
        f'Cannot open a window: {error}. Set DISPLAY or WAYLAND_DISPLAY to '
        'a running display, or unset both.'
      ) from None
    self._pygame = pygame
    self._clock = pygame.time.Clock()
    pygame.display.set_caption(title)

  def show(self, frame: np.ndarray) -> None:
    """Show a frame, uint8 [height, width, 3], for the duration of a frame."""
    display = self._pygame.display
    if not self._is_open:
      return
    if any(x.type == self._pygame.QUIT for x in self._pygame.event.get()):
      self.close()
      return
    frame = video.resize(frame, largest=None)
    size = frame.shape[1], frame.shape[0]
    if size != self._size:
      display.set_mode(size)
      self._size = size
    image = self._pygame.image.frombuffer(frame.tobytes(), size, 'RGB')
    display.get_surface().blit(image, (0, 0))
    display.flip()
    self._clock.tick(self._fps)

  def close(self) -> None:
    """Close the window."""
    if self._is_open:
      self._is_open = False
      self._pygame.display.quit()


def has_display() -> bool:
  """Return whether windows can be opened."""
  names = ('DISPLAY', 'WAYLAND_DISPLAY')
  return sys.platform == 'darwin' or any(os.environ.get(x) for x in names)


def check() -> None:
  """Check early that windows can be opened.

  Raises:
    UsageError: If there is no display, or pygame is missing.
  """
  if not has_display():
    raise errors.UsageError(
      'There is no display for a window: neither DISPLAY nor WAYLAND_DISPLAY '
      'is set. Omit --render; videos are still written.'
    )
  errors.check_installed(
    'pygame',
    'A window',
    errors.how_to_install('viz'),
    'omit --render; videos are still written',
  )
