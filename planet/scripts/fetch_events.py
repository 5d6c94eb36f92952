"""Export scalars from TensorBoard event files to CSV files.

Example:

  planet-fetch-events --logdirs '~/logdir/*/test' \\
      --tags 'trainer*score' --outdir ~/curves

Writes <outdir>/<logdir>___<tag>.csv with columns wall_time, step and value.
Skips folders that have been exported before, unless --force is True.
"""

import argparse
import concurrent.futures
import fnmatch
import functools
import glob
import os
import re
import sys
from typing import Any

from agents.run import entry, errors, log


def main(args: Any) -> None:
  """Fetch the events of all folders that match.

  Args:
    args: Namespace of `parse_args`.

  Raises:
    UsageError: If no folder matches.
  """
  logdirs = sorted(
    x for x in glob.glob(os.path.expanduser(args.logdirs)) if os.path.isdir(x)
  )
  if not logdirs:
    raise errors.UsageError(
      f'No folder matches --logdirs {args.logdirs!r}; the phases of a run '
      "write to its folders train and test, such as '~/logdir/*/test'."
    )
  fetch = functools.partial(
    fetch_logdir, tags=args.tags, outdir=args.outdir, force=args.force
  )
  with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
    for logdir, filenames in zip(logdirs, pool.map(fetch, logdirs)):
      print(f'{logdir}: {"skipped" if filenames is None else len(filenames)}')


def fetch_logdir(
  logdir: str, tags: str, outdir: str, force: bool = False
) -> list[str] | None:
  """Write the scalars of one folder of event files.

  Args:
    logdir: Folder of event files.
    tags: Pattern of the tags, with `*` for any text.
    outdir: Folder of the CSV files, created if needed.
    force: Whether to write again what has been written before.

  Returns:
    List of the written files, None if the folder was skipped.
  """
  outdir = os.path.expanduser(outdir)
  prefix = os.path.join(outdir, sanitize(logdir) + '___')
  if glob.glob(glob.escape(prefix) + '*') and not force:
    return None
  filenames = []
  for tag, rows in sorted(read_scalars(logdir, tags).items()):
    filenames.append(f'{prefix}{sanitize(tag)}.csv')
    log.write_table(filenames[-1], ['wall_time', 'step', 'value'], rows)
  return filenames


def read_scalars(
  logdir: str, tags: str = '*'
) -> dict[str, list[tuple[float, int, float]]]:
  """Read scalars of all event files of a folder, in the order of writing.

  Args:
    logdir: Folder of event files.
    tags: Pattern of the tags.

  Returns:
    Dict from tag to a list of (wall_time, step, value).
  """
  scalars: dict[str, list] = {}
  for wall_time, step, tag, value in log.iterate_events(logdir):
    if fnmatch.fnmatchcase(tag, tags):
      scalars.setdefault(tag, []).append((wall_time, step, value))
  return scalars


def sanitize(text: str) -> str:
  """Replace everything but letters and digits by `_`."""
  return re.sub(r'[^a-zA-Z0-9]', '_', text)


def boolean(text: str) -> bool:
  """Return the value of `True` or `False`; ValueError for any other text."""
  return bool(('False', 'True').index(text))


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='planet-fetch-events',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('--logdirs', required=True, help='glob pattern of event folders')
  add('--tags', default='trainer*score', help='glob pattern of tags')
  add('--outdir', required=True, help='output folder')
  add(
    '--force',
    type=boolean,
    default=False,
    help='overwrite existing files: True or False',
  )
  add('--workers', type=int, default=10, help='folders to read in parallel')
  return parser.parse_args(argv)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


if __name__ == '__main__':
  sys.exit(run())
