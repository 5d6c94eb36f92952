"""Mirror the Python files of a source tree.

Deletes files of the target that are missing in the source. Skips hidden
folders, such as .git and .venv.

Replaces license headers by that of the first file of the target: a leading
block of comments, or nothing. The header of the source is that of its first
file.

Example:

  python -m planet.scripts.sync --source ~/planet --target ~/public/planet
"""

import argparse
import glob
import os
import re
import sys
from typing import Any

from agents.run import entry, errors, files


def main(args: Any) -> None:
  """Copy all files whose text differs, and delete those that are stale.

  Args:
    args: Namespace of `parse_args`.

  Raises:
    UsageError: If the source holds no Python files, or the target is not a
      mirror of it.
  """
  source = os.path.expanduser(args.source)
  target = os.path.expanduser(args.target)
  names = list_files(source)
  if not names:
    raise errors.UsageError(f'There are no Python files in {source}.')
  known = list_files(target)
  if known and not set(known) & set(names):
    # The original would delete whatever a mistyped target holds.
    raise errors.UsageError(
      f'The folder {target} has Python files, but none of those in {source}, '
      'and would lose them all; give a mirror or an empty folder as --target.'
    )
  old = read_header(os.path.join(source, names[0]))
  new = read_header(os.path.join(target, known[0])) if known else old
  count = 0
  for name in names:
    text = exchange_header(read(os.path.join(source, name)), old, new)
    filename = os.path.join(target, name)
    if not os.path.exists(filename) or read(filename) != text:
      count += 1
      with files.atomic_write(filename) as file_:
        file_.write(text)
  print(f'Wrote {count} of {len(names)} files to {target}.')
  for name in sorted(set(known) - set(names)):
    os.remove(os.path.join(target, name))
    print(f'Deleted {name}')


def list_files(folder: str) -> list[str]:
  """List all Python files that are not hidden, sorted, relative to a folder."""
  return sorted(glob.glob('**/*.py', root_dir=folder, recursive=True))


def read_header(filename: str) -> str:
  """Read the comments that a file begins with, and empty lines after them."""
  match = re.match(r'(?:(?:#.*\n)+\n*)?', read(filename))
  return match.group() if match else ''


def exchange_header(text: str, old: str, new: str) -> str:
  """Put one header in place of another one, or of none."""
  text = text.removeprefix(old)
  return text if text.startswith(new) else new + text


def read(filename: str) -> str:
  """Read the text of a file."""
  with open(filename) as file_:
    return file_.read()


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='python -m planet.scripts.sync',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('--source', required=True, help='folder to copy from')
  parser.add_argument('--target', required=True, help='folder to copy to')
  return parser.parse_args(argv)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


if __name__ == '__main__':
  sys.exit(run())
