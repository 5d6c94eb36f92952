"""Which Python `scripts/setup.sh` takes, tried with pretended ones."""

import os
import shutil
import subprocess

import pytest

from tests import golden

TOOLS = ('bash', 'sh', 'mkdir', 'cp', 'rm', 'id', 'dirname', 'cat')
# Knows its version and makes virtual environments that know it, too.
PYTHON = """#!/bin/sh
case "$1 $2" in
-c*) echo {version} ;;
--version*) echo Python {version}.0 ;;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip") [ -z "$3" ] || [ "$3" = --version ] ;;
*) exit 1 ;;
esac
"""
UV = """#!/bin/sh
[ "$*" = "venv -q --seed --python 3.11 $VENV" ] && exec python3.99 -m venv $VENV
exit 1
"""
# Has two versions.
PYENV = """#!/bin/sh
case "$*" in
"whence python3.12") printf '3.12.10\\n3.12.1\\n' ;;
root) dirname "$(dirname "$0")" ;;
*) exit 1 ;;
esac
"""


@pytest.fixture
def place(tmp_path):
  """Folder with `bin`, the only folder of programs."""
  (tmp_path / 'bin').mkdir()
  for name in TOOLS:
    (tmp_path / 'bin' / name).symlink_to(shutil.which(name))
  return tmp_path


def put(place, name, text):
  path = place / 'bin' / name
  path.write_text(text)
  path.chmod(0o755)


def put_python(place, version, name=None):
  text = PYTHON.replace('{version}', version)
  put(place, name or f'python{version}', text)


def create(place, then='', **environ):
  """Run `create_venv`; exit code, version, name of the folder, messages."""
  script = os.path.join(golden.ROOT, 'scripts', 'setup.sh')
  code = f'set -euo pipefail; . {script}; create_venv\n{then}\necho "$VENV"'
  result = subprocess.run(
    [str(place / 'bin' / 'bash'), '-c', code],
    cwd=place,
    env={'PATH': str(place / 'bin'), 'VENV': '.venv', **environ},
    capture_output=True,
    text=True,
  )
  venv = result.stdout.strip()
  version = None
  if venv:
    command = [str(place / venv / 'bin' / 'python'), '-c', '']
    version = subprocess.check_output(command, text=True).strip()
  return result.returncode, version, venv, result.stderr


@pytest.mark.parametrize(
  'found, taken',
  [
    (['3.9', '3.13', '3.12', '3.10', '3.11'], '3.11'),
    (['3.13', '3.12', '3.10'], '3.10'),
    (['3.13', '3.12', '3.14'], '3.12'),
    (['3.13'], '3.13'),
  ],
)
def test_best_python_is_taken(place, found, taken):
  for version in found:
    put_python(place, version)
  assert create(place)[:3] == (0, taken, '.venv')
  # It stays, whatever comes later.
  put_python(place, '3.11')
  assert create(place)[:3] == (0, taken, '.venv')


def test_broken_and_unversioned_names(place):
  """The shims of pyenv fail for versions that are not chosen."""
  put(place, 'python3.11', '#!/bin/sh\nexit 127\n')
  put_python(place, '3.12', 'python3')
  assert create(place)[:3] == (0, '3.12', '.venv')


def test_named_python_of_pyenv(place):
  """A version that is installed, but not activated, is found all the same."""
  for name in ('sort', 'tail'):
    (place / 'bin' / name).symlink_to(shutil.which(name))
  put(place, 'python3.12', '#!/bin/sh\nexit 127\n')
  put(place, 'pyenv', PYENV)
  for version in ('3.12.1', '3.12.10'):
    (place / 'versions' / version / 'bin').mkdir(parents=True)
  put_python(place, '3.12', '../versions/3.12.10/bin/python3.12')
  assert create(place, PYTHON='python3.12')[:3] == (0, '3.12', '.venv')


def test_named_python_gets_its_own_folder(place):
  for version in ('3.11', '3.12'):
    put_python(place, version)
  assert create(place, PYTHON='python3.11')[:3] == (0, '3.11', '.venv')
  named = create(place, PYTHON='python3.12')
  assert named[:3] == (0, '3.12', '.venv-3.12')
  assert create(place)[:3] == (0, '3.11', '.venv')


@pytest.mark.parametrize('version', ['3.9', '3.14', None])
def test_named_python_that_will_not_do(place, version):
  put_python(place, '3.11')
  if version:
    put_python(place, version, 'mine')
  code, _, _, message = create(place, PYTHON='mine')
  assert code == 2 and message.count('\n') == 1
  assert message.startswith('Error: mine is not Python 3.10 to 3.13')
  assert not (place / '.venv').exists()


def test_uv_brings_a_python(place):
  put_python(place, '3.99')
  put(place, 'uv', UV)
  code, version, _, message = create(place)
  assert (code, version) == (0, '3.99') and 'trying uv' in message


def test_nothing_that_will_do(place):
  put_python(place, '3.9', 'python3')
  code, _, _, message = create(place)
  assert code == 2 and 'Error: this needs Python 3.10 to 3.13, or uv' in message


def test_opengl_only_for_mujoco(place):
  """Extras without MuJoCo need no drivers."""
  put_python(place, '3.11')
  code, _, _, message = create(place, 'ensure_opengl')
  assert code == 0 and 'OpenGL' not in message
