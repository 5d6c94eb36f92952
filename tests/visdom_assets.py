"""What the pages of visdom need, fetched once from the npm registry.

For machines that reach a registry but not the hosts that visdom downloads
from:

  python -m tests.visdom_assets

The distribution of visdom lacks the libraries that its pages load. Its own
program downloads them from several hosts on its first start; this fetches the
same versions with npm, once, so that nothing is downloaded at run time and one
registry is enough.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

from agents.pipeline import visdom_mirror
from agents.run import entry, errors, files

_FONT = 'glyphicons-halflings-regular'
# Package and version, member of its archive, file below the folder `static`
# of visdom. Versions are those that visdom 0.2.4 names.
ASSETS = (
  ('jquery@3.1.1', 'dist/jquery.min.js', 'js/jquery.min.js'),
  ('bootstrap@3.3.7', 'dist/js/bootstrap.min.js', 'js/bootstrap.min.js'),
  ('bootstrap@3.3.7', 'dist/css/bootstrap.min.css', 'css/bootstrap.min.css'),
  *(
    ('bootstrap@3.3.7', f'dist/fonts/{_FONT}.{kind}', f'fonts/{_FONT}.{kind}')
    for kind in ('eot', 'woff2', 'woff', 'ttf')
  ),
  ('react@16.2.0', 'umd/react.production.min.js', 'js/react-react.min.js'),
  (
    'react-dom@16.2.0',
    'umd/react-dom.production.min.js',
    'js/react-dom.min.js',
  ),
  (
    'layout-bin-packer@1.4.0',
    'dist/layout-bin-packer.js',
    'js/layout_bin_packer.js',
  ),
  (
    'react-resizable@1.4.6',
    'css/styles.css',
    'css/react-resizable-styles.css',
  ),
  (
    'react-grid-layout@0.16.3',
    'css/styles.css',
    'css/react-grid-layout-styles.css',
  ),
  ('plotly.js-dist-min@2.11.1', 'plotly.min.js', 'js/plotly-plotly.min.js'),
  ('d3@3.5.17', 'd3.min.js', 'js/d3.v3.min.js'),
  (
    'd3-selection-multi@1.0.1',
    'build/d3-selection-multi.js',
    'js/d3-selection-multi.v1.js',
  ),
  ('save-svg-as-png@1.4.17', 'lib/saveSvgAsPng.js', 'js/saveSvgAsPng.js'),
)
_SECONDS = 300


def find_missing():
  """Files of `ASSETS` that are not there, as paths below `folder`."""
  root = visdom_mirror.check_installed()
  return [x for *_, x in ASSETS if not os.path.exists(os.path.join(root, x))]


def fetch():
  """Fetch the packages and put the files into place.

  Raises:
    UsageError: If npm is missing or fails, or nothing can be written.
  """
  npm = shutil.which('npm')
  if npm is None:
    raise errors.UsageError(
      'The pages of visdom need libraries that npm fetches, but there is no '
      'npm; install Node.js, or run the program visdom once, which downloads '
      'them itself.'
    )
  root = visdom_mirror.check_installed()
  specs = list(dict.fromkeys(spec for spec, *_ in ASSETS))
  with tempfile.TemporaryDirectory() as temporary:
    _pack(npm, specs, temporary)
    for spec, member, target in ASSETS:
      archive = f'{spec.replace("@", "-")}.tgz'
      content = _read_member(os.path.join(temporary, archive), member)
      path = os.path.join(root, target)
      try:
        with files.atomic_write(path, 'wb') as file_:
          file_.write(content)
      except OSError as error:
        raise errors.UsageError(
          f'Cannot write {path!r}: {error.strerror}. Install visdom where you '
          'may write, such as a virtual environment.'
        ) from None


def run(argv=None):
  """Entry point; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog='python -m tests.visdom_assets',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.parse_args(argv)
  return entry.run(_main)


def _main():
  if find_missing():
    fetch()
  folder = visdom_mirror.check_installed()
  print(f'The pages of visdom are complete in {folder}.')


def _pack(npm, specs, target):
  """Let npm download the archives of some packages, nothing more."""
  command = [npm, 'pack', '--silent', '--ignore-scripts', *specs]
  try:
    result = subprocess.run(
      command,
      cwd=target,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      timeout=_SECONDS,
    )
    output, failed = result.stdout, result.returncode != 0
  except subprocess.TimeoutExpired:
    output, failed = f'no answer within {_SECONDS} seconds', True
  if failed:
    words = ' '.join(output.split())[-300:] or 'no reason given'
    raise errors.UsageError(
      f'npm cannot fetch the libraries of visdom: {words}. Check the network '
      'and `npm config get registry`, then repeat.'
    )


def _read_member(archive, member):
  with tarfile.open(archive) as tar:
    # npm puts everything into a folder, which old packages name freely.
    for info in tar:
      if info.isfile() and info.name.partition('/')[2] == member:
        return tar.extractfile(info).read()
  raise RuntimeError(f'{archive} has no {member}')


if __name__ == '__main__':
  sys.exit(run())
