"""The server of visdom without its downloads: `... visdom_server PORT`.

Listens for this machine only, keeps nothing on disk, and ends when its
standard input is closed, so that it does not outlive a training that was
killed.
"""

import os
import sys
import tempfile
import threading


def serve(port: int) -> None:
  """Serve until the standard input ends.

  Args:
    port: Port to listen on.
  """
  from tornado import ioloop, web
  from visdom.server import app, run_server

  class Files(web.StaticFileHandler):
    """Know also the address of a style that is not a file."""

    @classmethod
    def make_static_url(cls, settings, path, include_version=True):
      # The page of visdom 0.2.4 asks for ../user/style.css, for whose version
      # tornado 6.6 refuses to leave the folder.
      include_version = include_version and not path.startswith('..')
      return super().make_static_url(settings, path, include_version)

  app.tornado_settings['static_handler_class'] = Files
  # Visdom asks for what helps developers; a server that starts anew whenever a
  # source file changes loses its curves.
  app.tornado_settings['autoreload'] = False
  loop = ioloop.IOLoop.current()

  def wait():
    # Unbuffered: a thread within a buffer's lock breaks the interpreter's end.
    while os.read(0, 1024):
      pass
    loop.add_callback(loop.stop)

  threading.Thread(target=wait, daemon=True).start()
  with tempfile.TemporaryDirectory() as folder:
    run_server.start_server(
      port=port,
      hostname='localhost',
      base_url='',
      env_path=folder,
      bind_local=True,
    )


if __name__ == '__main__':
  serve(int(sys.argv[1]))
