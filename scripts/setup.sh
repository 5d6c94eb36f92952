#!/usr/bin/env bash
# Creates .venv, installs the project, and makes sure that OpenGL can render.
# Everything is skipped that was done before and has not changed since. Run it
# alone, or let train.sh and test.sh source it from the root of the project.
#   PYTHON  Python to use; by default the best one that is found
#   VENV    folder of the virtual environment
#   EXTRAS  extras of setup.py to install

VENV="${VENV:-.venv}"
EXTRAS="${EXTRAS:-all,test}"
# Best first: the further down, the more simulators have no wheels.
VERSIONS='3.11 3.10 3.12 3.13'

say() { printf '%s\n' "$*" >&2; }

as_root() {
  # Runs a command as root if that is possible without asking.
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo "$@"
  else
    return 126
  fi
}

apt_install() {
  command -v apt-get >/dev/null 2>&1 || return 126
  as_root true || return 126
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "$@" >&2
}

version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

locate() {
  # Prints what starts a Python: pyenv's launchers start only what is activated.
  local version
  if version_of "$1" >/dev/null || ! command -v pyenv >/dev/null 2>&1; then
    printf '%s' "$1"
  elif version="$(pyenv whence "$1" 2>/dev/null)" && [ -n "$version" ]; then
    version="$(printf '%s\n' "$version" | sort -V | tail -n 1)"
    printf '%s' "$(pyenv root)/versions/$version/bin/$1"
  fi
}

find_python() {
  # Prints the first Python that will do. One that was named has to.
  local name version
  if [ -n "${PYTHON:-}" ]; then
    set -- "$PYTHON"
  else
    # shellcheck disable=SC2086
    set -- $(printf 'python%s ' $VERSIONS) python3 python
  fi
  for name in "$@"; do
    name="$(locate "$name")"
    version="$(version_of "$name")" || continue
    case " $VERSIONS " in *" $version "*)
      printf '%s' "$name"
      return ;;
    esac
  done
  return 1
}

find_uv() {
  # Prints the command of uv, which brings a Python of its own. Any other
  # Python can install it.
  command -v uv && return
  python3 -m venv "$VENV.uv" >/dev/null 2>&1 &&
    "$VENV.uv/bin/python" -m pip install -q uv >&2 &&
    printf '%s' "$VENV.uv/bin/uv"
}

venv_works() {
  [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version \
    >/dev/null 2>&1
}

create_venv() {
  local python uv version package
  if [ -n "${PYTHON:-}" ]; then
    python="$(find_python)" || {
      say "Error: $PYTHON is not a Python from 3.10 to 3.13; name one of these."
      exit 2
    }
    # A Python that was named gets a folder of its own beside that of another.
    version="$(version_of "$python")"
    if venv_works && [ "$(version_of "$VENV/bin/python")" != "$version" ]; then
      VENV="$VENV-$version"
    fi
  fi
  venv_works && return
  if ! python="$(find_python)"; then
    say 'No Python from 3.10 to 3.13 found; trying uv, then apt-get.'
    if uv="$(find_uv)" && "$uv" venv -q --seed --python 3.11 "$VENV" >&2; then
      return
    fi
    apt_install python3 python3-venv || true
    python="$(find_python)" || {
      say 'Error: this needs Python 3.10 to 3.13, or uv, which brings one:'
      say '  https://docs.astral.sh/uv/getting-started/installation'
      say "Then repeat: $0, or name a Python: PYTHON=/path/to/python3.11 $0"
      exit 2
    }
  fi
  say "Creating $VENV with $("$python" --version)."
  "$python" -m venv "$VENV" >/dev/null 2>&1 && return
  # Debian and Ubuntu keep this part of Python in a package of its own.
  rm -rf "$VENV"
  package="python$(version_of "$python")-venv"
  apt_install "$package" && "$python" -m venv "$VENV" && return
  say "Error: $python cannot create virtual environments. Run:"
  say "  sudo apt-get install -y $package"
  exit 2
}

install_project() {
  local want have stamp="$VENV/.installed" version
  want="$(cat setup.py pyproject.toml scripts/setup.sh; echo "$EXTRAS"; pwd)"
  want="$(printf '%s' "$want" | cksum)"
  have="$(cat "$stamp" 2>/dev/null || true)"
  [ "$want" = "$have" ] && return
  say "Installing the project with the extras $EXTRAS; this takes minutes."
  "$VENV/bin/python" -m pip install -q --upgrade pip >&2
  "$VENV/bin/python" -m pip install -q -e ".[$EXTRAS]" >&2
  version="$(version_of "$VENV/bin/python")"
  case "$version,$EXTRAS," in 3.13,*all,* | 3.13,*dmc,* | 3.13,*test,*)
    # Without labmaze, which has no wheel for this Python; see setup.py.
    "$VENV/bin/python" -m pip install -q --no-deps dm-control==1.0.43 >&2 ;;
  esac
  case "$version" in
  3.12) say 'Left out on Python 3.12: PyBullet, which has no wheel for it' \
    '(docs/install.md says how to build it).' ;;
  3.13) say 'Left out on Python 3.13: CARLA and PyBullet, which have no wheels' \
    'for it (docs/install.md says how to build PyBullet).' ;;
  esac
  printf '%s' "$want" >"$stamp"
}

ensure_opengl() {
  # A renderer that worked once is taken to work still.
  [ -e "$VENV/.opengl" ] && return
  local probe='from agents.envs import opengl; print(opengl.select_backend())'
  if ! "$VENV/bin/python" -c "$probe" >"$VENV/.opengl.tmp" 2>/dev/null; then
    say 'OpenGL cannot render yet; trying to install the drivers of Mesa.'
    apt_install libegl1 libgl1 libgl1-mesa-dri libgles2 || true
    # Newer systems do not have it any more.
    apt_install libosmesa6 || true
    if ! "$VENV/bin/python" -c "$probe" >"$VENV/.opengl.tmp" 2>/dev/null; then
      rm -f "$VENV/.opengl.tmp"
      say 'Error: OpenGL cannot render, neither through EGL nor OSMesa. Run:'
      say '  sudo apt-get install -y libegl1 libgl1 libgl1-mesa-dri' \
        'libgles2 libosmesa6'
      exit 2
    fi
  fi
  say "OpenGL renders with $(cat "$VENV/.opengl.tmp")."
  mv "$VENV/.opengl.tmp" "$VENV/.opengl"
}

ensure_visdom() {
  # Only tests need it, and these are skipped without.
  [ -e "$VENV/.visdom" ] && return
  {
    # Its source distribution does not build beside the newest setuptools.
    "$VENV/bin/python" -m pip install -q 'setuptools>=70.1,<81' &&
      "$VENV/bin/python" -m pip install -q --no-build-isolation visdom==0.2.4 'tornado<6.6' &&
      "$VENV/bin/python" -m tests.visdom_assets
  } >&2 && touch "$VENV/.visdom" ||
    say 'Going on without visdom; its tests are skipped.'
}

ensure_browser() {
  # Likewise. Chromium of Ubuntu is a snap, which other machinery installs.
  command -v chromium >/dev/null 2>&1 && return
  grep -qs '^ID=debian' /etc/os-release &&
    say 'Trying to install a browser for the test of live curves.' &&
    timeout 300 bash -c "$(declare -f as_root apt_install)
      apt_install chromium" ||
    say 'Going on without a browser; its test is skipped.'
}

set_up() {
  create_venv
  install_project
  ensure_opengl
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  cd "$(dirname "$0")/.."
  set_up
fi
