# Shared by train.sh and test.sh; expects to be sourced from the project root.
# Creates .venv, installs the project, and makes sure that OpenGL can render.
# Everything is skipped that was done before and has not changed since.

VENV="${VENV:-.venv}"
EXTRAS="${EXTRAS:-all,test}"

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

find_python() {
  local name
  for name in "${PYTHON:-}" python3.11 python3.10 python3 python; do
    [ -n "$name" ] || continue
    if "$name" -c 'import sys; sys.exit(sys.version_info[:2] not in
((3, 10), (3, 11)))' >/dev/null 2>&1; then
      printf '%s' "$name"
      return
    fi
  done
  return 1
}

ensure_python() {
  if ! PYTHON_BIN="$(find_python)"; then
    say 'No Python 3.10 or 3.11 found; trying to install one.'
    apt_install python3.11 python3.11-venv || apt_install python3 python3-venv \
      || true
    PYTHON_BIN="$(find_python)" || {
      say 'Error: this needs Python 3.10 or 3.11 (PyBullet has no wheels for'
      say 'later ones). Install it, or name it: PYTHON=/path/to/python3.11 ' \
        "$0"
      exit 2
    }
  fi
}

create_venv() {
  [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version \
    >/dev/null 2>&1 && return
  say "Creating $VENV with $("$PYTHON_BIN" --version)."
  "$PYTHON_BIN" -m venv "$VENV" >/dev/null 2>&1 && return
  # Debian and Ubuntu keep this part of Python in a package of its own.
  rm -rf "$VENV"
  local version
  version="$("$PYTHON_BIN" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
  apt_install "python$version-venv" || {
    say "Error: Python $version cannot create virtual environments. Run:"
    say "  sudo apt-get install -y python$version-venv"
    exit 2
  }
  "$PYTHON_BIN" -m venv "$VENV"
}

install_project() {
  local want have stamp="$VENV/.installed"
  want="$(cat setup.py pyproject.toml; echo "$EXTRAS"; pwd)"
  want="$(printf '%s' "$want" | cksum)"
  have="$(cat "$stamp" 2>/dev/null || true)"
  [ "$want" = "$have" ] && return
  say "Installing the project with the extras $EXTRAS; this takes minutes."
  "$VENV/bin/python" -m pip install -q --upgrade pip >&2
  "$VENV/bin/python" -m pip install -q -e ".[$EXTRAS]" >&2
  printf '%s' "$want" >"$stamp"
}

ensure_opengl() {
  # A renderer that worked once is taken to work still.
  [ -e "$VENV/.opengl" ] && return
  local probe='from agents.envs import opengl; print(opengl.select_backend())'
  if ! "$VENV/bin/python" -c "$probe" >"$VENV/.opengl.tmp" 2>/dev/null; then
    say 'OpenGL cannot render yet; trying to install the drivers of Mesa.'
    apt_install libegl1 libgl1 libgl1-mesa-dri libgles2 libosmesa6 || true
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
      "$VENV/bin/python" -m pip install -q --no-build-isolation visdom==0.2.4 &&
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
  ensure_python
  create_venv
  install_project
  ensure_opengl
}
