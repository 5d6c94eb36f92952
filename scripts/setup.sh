#!/usr/bin/env bash
# Creates .venv, installs the project and makes sure that MuJoCo can render.
# Skips steps that are up to date. Run it alone, or let train.sh and test.sh
# source it from the root of the project.
#   PYTHON  Python to use; default: the best one found
#   VENV    folder of the virtual environment
#   EXTRAS  extras of setup.py to install

VENV="${VENV:-.venv}"
EXTRAS="${EXTRAS:-all,test}"
# Best first: later versions lack wheels for some simulators.
VERSIONS='3.11 3.10 3.12 3.13'

say() { printf '%s\n' "$*" >&2; }

as_root() {
  # Runs a command as root if possible without a password.
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
  # Prints the path of a Python; launchers of pyenv need an activated version.
  local version
  if version_of "$1" >/dev/null || ! command -v pyenv >/dev/null 2>&1; then
    printf '%s' "$1"
  elif version="$(pyenv whence "$1" 2>/dev/null)" && [ -n "$version" ]; then
    version="$(printf '%s\n' "$version" | sort -V | tail -n 1)"
    printf '%s' "$(pyenv root)/versions/$version/bin/$1"
  fi
}

find_python() {
  # Prints the first supported Python; only tries $PYTHON if it is set.
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
  # Prints the command of uv, which can install Python. Any Python version can
  # install uv.
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
      say "Error: $PYTHON is not Python 3.10 to 3.13; set PYTHON to one of these."
      exit 2
    }
    # If .venv has another version, $PYTHON gets a separate folder.
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
      say 'Error: this needs Python 3.10 to 3.13, or uv, which installs one:'
      say '  https://docs.astral.sh/uv/getting-started/installation'
      say "Then repeat: $0, or choose a Python: PYTHON=/path/to/python3.11 $0"
      exit 2
    }
  fi
  say "Creating $VENV with $("$python" --version)."
  "$python" -m venv "$VENV" >/dev/null 2>&1 && return
  # Debian and Ubuntu have a separate package for virtual environments.
  rm -rf "$VENV"
  package="python$(version_of "$python")-venv"
  apt_install "$package" && "$python" -m venv "$VENV" && return
  say "Error: $python cannot create virtual environments. Run:"
  say "  sudo apt-get install -y $package"
  exit 2
}

install_packages() {
  # uv is much faster than pip, but does not know pip's settings.
  local own_index='[.]index-url\|[.]no-index'
  if ! "$VENV/bin/python" -m pip config list | grep "$own_index" >/dev/null; then
    "$VENV/bin/uv" pip install -q --python "$VENV/bin/python" "$@" >&2 && return
    say 'uv could not install; trying pip, which takes longer.'
  fi
  "$VENV/bin/python" -m pip install -q --no-compile "$@" >&2
}

install_project() {
  local want have stamp="$VENV/.installed" version
  want="$(cat setup.py pyproject.toml scripts/setup.sh; echo "$EXTRAS"; pwd)"
  want="$(printf '%s' "$want" | cksum)"
  have="$(cat "$stamp" 2>/dev/null || true)"
  [ "$want" = "$have" ] && return
  say "Installing the project with the extras $EXTRAS; this takes minutes."
  "$VENV/bin/python" -m pip install -q --upgrade pip uv >&2
  install_packages -e ".[$EXTRAS]"
  version="$(version_of "$VENV/bin/python")"
  case "$version,$EXTRAS," in 3.13,*all,* | 3.13,*dmc,* | 3.13,*test,*)
    # Without labmaze, which has no wheel for this Python; see setup.py.
    install_packages --no-deps dm-control==1.0.43 ;;
  esac
  case "$version" in
  3.12) say 'Skipped PyBullet, which has no wheel for Python 3.12' \
    '(see docs/install.md to build it).' ;;
  3.13) say 'Skipped CARLA and PyBullet, which have no wheels for Python 3.13' \
    '(see docs/install.md to build PyBullet).' ;;
  esac
  # On all cores, and kept even with PYTHONDONTWRITEBYTECODE.
  # Not the tests of packages, nor TFP's copies for JAX and NumPy.
  "$VENV/bin/python" -W ignore -m compileall -qq -j 0 \
    -x 'site-packages/.*/(tests|substrates)/' "$VENV/lib" || true
  printf '%s' "$want" >"$stamp"
}

ensure_opengl() {
  # Check only once.
  [ -e "$VENV/.opengl" ] && return
  # Only MuJoCo needs it.
  "$VENV/bin/python" -m pip show -q mujoco 2>/dev/null || return 0
  local probe='from agents.envs import opengl; print(opengl.select_backend())'
  if ! "$VENV/bin/python" -c "$probe" >"$VENV/.opengl.tmp" 2>/dev/null; then
    say 'OpenGL cannot render yet; trying to install the Mesa drivers.'
    apt_install libegl1 libgl1 libgl1-mesa-dri libgles2 || true
    # Not available on newer systems.
    apt_install libosmesa6 || true
    if ! "$VENV/bin/python" -c "$probe" >"$VENV/.opengl.tmp" 2>/dev/null; then
      rm -f "$VENV/.opengl.tmp"
      say 'Error: OpenGL can render with neither EGL nor OSMesa. Run:'
      say '  sudo apt-get install -y libegl1 libgl1 libgl1-mesa-dri' \
        'libgles2 libosmesa6'
      exit 2
    fi
  fi
  say "OpenGL renders with $(cat "$VENV/.opengl.tmp")."
  mv "$VENV/.opengl.tmp" "$VENV/.opengl"
}

ensure_visdom() {
  # Only for tests, which are skipped without it.
  [ -e "$VENV/.visdom" ] && return
  {
    # Its source distribution does not build with the newest setuptools.
    install_packages 'setuptools>=70.1,<81' &&
      install_packages --no-build-isolation visdom==0.2.4 'tornado<6.6' &&
      "$VENV/bin/python" -m tests.visdom_assets
  } >&2 && touch "$VENV/.visdom" ||
    say 'Continuing without visdom; its tests will be skipped.'
}

ensure_browser() {
  # Only for a test. On Ubuntu, Chromium is a snap, which apt cannot install.
  command -v chromium >/dev/null 2>&1 && return
  grep -qs '^ID=debian' /etc/os-release &&
    say 'Trying to install a browser for the test of live curves.' &&
    timeout 300 bash -c "$(declare -f as_root apt_install)
      apt_install chromium" ||
    say 'Continuing without a browser; its test will be skipped.'
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
