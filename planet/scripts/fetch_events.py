"""Export scalars from TensorBoard event files to CSV files.

Example:

  planet-fetch-events --logdirs '~/logdir/*/scalars' \\
      --tags 'return/*' --outdir ~/curves

Finds tags of earlier versions and of the original by the current names, too.
Writes <outdir>/<logdir>___<tag>.csv with the columns wall_time, step and value.
Skips folders that were exported before unless --force is True.
"""

import concurrent.futures
import contextlib
import fnmatch
import glob
import os
import re
import sys
from typing import Any

from agents.run import entry, errors, files, log, names


def main(args: Any) -> None:
  """Export the scalars of all matching folders.

  Args:
    args: Flags, see `run`.

  Raises:
    UsageError: If no folder or no tag matches, or the names of two folders
      differ only in other characters than letters and digits.
  """
  found = glob.glob(files.expand(args.logdirs))
  logdirs = sorted(x for x in found if os.path.isdir(x))
  if not logdirs:
    raise errors.UsageError(
      f'No folder matches --logdirs {args.logdirs!r}; scalars are in the '
      "folder of that name of each run, such as '~/logdir/*/scalars'; earlier "
      'versions have them in train and test.'
    )
  seen: dict[str, str] = {}
  for logdir in logdirs:
    other = seen.setdefault(_sanitize(logdir), logdir)
    if other != logdir:
      raise errors.UsageError(
        f'Files of {other} and {logdir} would have the same names; export them '
        'one by one, each to an --outdir of its own.'
      )
  with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
    reports = list(pool.map(lambda x: fetch_logdir(x, args), logdirs))
  for logdir, report in zip(logdirs, reports):
    print(f'{logdir}: {report}')
  if set(reports) == {'0'}:
    raise errors.UsageError(
      f'No scalar matches --tags {args.tags!r}; give a pattern such as '
      "'return/*', or '*' for all."
    )


def fetch_logdir(logdir: str, args: Any) -> str:
  """Export the scalars of one folder of event files.

  Args:
    logdir: Folder of event files.
    args: Flags, see `run`.

  Returns:
    Number of files written, or 'skipped'.
  """
  outdir = files.expand(args.outdir)
  prefix = os.path.join(outdir, _sanitize(logdir) + '___')
  if glob.glob(glob.escape(prefix) + '*') and args.force == 'False':
    return 'skipped'
  scalars = read_scalars(logdir, args.tags)
  with contextlib.ExitStack() as stack:
    # All files or none, or the next call would skip the folder.
    for tag, rows in scalars.items():
      filename = f'{prefix}{_sanitize(tag)}.csv'
      temporary = stack.enter_context(files.atomic_path(filename))
      log.write_table(temporary, ['wall_time', 'step', 'value'], rows)
  return str(len(scalars))


def read_scalars(
  logdir: str, tags: str = '*'
) -> dict[str, list[tuple[float, int, float]]]:
  """Read the scalars of all event files of a folder in the order written.

  Args:
    logdir: Folder of event files.
    tags: Glob pattern of the tags, or of their current names.

  Returns:
    Dict from tag to a list of (wall_time, step, value).
  """
  phase = os.path.basename(os.path.normpath(logdir))
  pattern = names.plain_name(tags, 'test')
  scalars: dict[str, list] = {}
  for wall_time, step, tag, value in log.iterate_events(logdir):
    name = names.plain_name(tag, phase)
    if fnmatch.fnmatchcase(tag, tags) or fnmatch.fnmatchcase(name, pattern):
      scalars.setdefault(tag, []).append((wall_time, step, value))
  return scalars


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  parser = entry.Parser(prog='planet-fetch-events', description=__doc__)
  add = parser.add_argument
  add('--logdirs', required=True, help='glob pattern of event folders')
  add('--tags', default='return/test', help='glob pattern of tags')
  add('--outdir', required=True, help='output folder')
  text = 'overwrite existing files'
  add('--force', choices=['True', 'False'], default='False', help=text)
  add('--workers', type='positive', default=10, help='folders in parallel')
  return entry.run(lambda: main(parser.parse_args(argv)))


def _sanitize(text):
  """Replace everything but letters and digits with `_`."""
  return re.sub(r'[^a-zA-Z0-9]', '_', text)


if __name__ == '__main__':
  sys.exit(run())
