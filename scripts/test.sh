#!/usr/bin/env bash
# Sets everything up, then runs the linter, the type checks and the tests.
# Arguments go to pytest, such as: ./scripts/test.sh -m slow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
set_up
ensure_visdom
ensure_browser
"$VENV/bin/ruff" check .
"$VENV/bin/ruff" format --check .
"$VENV/bin/mypy"
"$VENV/bin/lint-imports"
# Two at a time; tests of a file share what they set up.
exec "$VENV/bin/python" -m pytest -n 2 --dist loadfile "$@"
