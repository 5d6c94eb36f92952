"""Mirror the Python files of a source tree.

Deletes files in the target that are missing in the source. Skips hidden
folders, such as .git and .venv.

Replaces the license header of the source, a leading block of comments or
nothing, with the header of the target. Both are read from the first file.

Example:

  python -m planet.scripts.sync --source ~/planet --target ~/public/planet
"""

import glob
import os
import re
import sys
from typing import Any

from agents.run import entry, errors, files

# Keeps all bytes, whatever the encoding of a file.
_ENCODING = 'latin-1'


def main(args: Any) -> None:
  """Copy all files that differ and delete stale ones.

  Args:
    args: Flags, see `run`.

  Raises:
    UsageError: If the source holds no Python files, the target is not a
      mirror of it, or one of them is within the other.
  """
  source, target = map(files.expand, (args.source, args.target))
  real = [os.path.realpath(x) for x in (source, target)]
  if os.path.commonpath(real) in real:
    raise errors.UsageError(
      f'One of {source} and {target} is within the other; give a --target '
      'elsewhere.'
    )
  texts, mirrored = read_files(source), read_files(target)
  if not texts:
    raise errors.UsageError(
      f'There are no Python files in {source}; give the folder of a package as '
      '--source.'
    )
  if mirrored and not set(mirrored) & set(texts):
    # The original would delete all files of a mistyped target.
    raise errors.UsageError(
      f'{target} is not a mirror of {source}, so all its Python files would '
      'be deleted; give a mirror or an empty folder as --target.'
    )
  old = find_header(texts)
  new = find_header(mirrored) if mirrored else old
  count = 0
  for name, text in texts.items():
    text = text.removeprefix(old)
    text = text if text.startswith(new) else new + text
    if mirrored.get(name) != text:
      count += 1
      with files.atomic_write(os.path.join(target, name), 'wb') as file_:
        file_.write(text.encode(_ENCODING))
  print(f'Wrote {count} of {len(texts)} files to {target}.')
  for name in sorted(set(mirrored) - set(texts)):
    os.remove(os.path.join(target, name))
    print(f'Deleted {name}')


def read_files(folder: str) -> dict[str, str]:
  """Return a dict from name to text of all Python files not hidden."""
  texts = {}
  for name in sorted(glob.glob('**/*.py', root_dir=folder, recursive=True)):
    path = os.path.join(folder, name)
    # Links may lead nowhere.
    if os.path.isfile(path):
      with open(path, 'rb') as file_:
        texts[name] = file_.read().decode(_ENCODING)
  return texts


def find_header(texts: dict[str, str]) -> str:
  """Return the comments and empty lines at the top of the first file."""
  first = next(iter(texts.values()))
  return re.findall(r'\A(?:(?:#.*\n)+\n*)?', first)[0]


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  parser = entry.Parser(
    prog='python -m planet.scripts.sync', description=__doc__
  )
  parser.add_argument('--source', required=True, help='folder to copy from')
  parser.add_argument('--target', required=True, help='folder to copy to')
  return entry.run(lambda: main(parser.parse_args(argv)))


if __name__ == '__main__':
  sys.exit(run())
