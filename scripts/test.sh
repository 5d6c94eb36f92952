#!/usr/bin/env bash
# Sets everything up, then runs the linters and the tests, which check types, too.
# Passes arguments to pytest, such as: ./scripts/test.sh -m slow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
set_up
ensure_visdom
ensure_browser
"$VENV/bin/ruff" check .
"$VENV/bin/ruff" format --check .
"$VENV/bin/lint-imports"
# Tests in one file share fixtures. tests/conftest.py orders the files.
exec "$VENV/bin/python" -m pytest -n 2 --dist loadfile --no-loadscope-reorder "$@"
