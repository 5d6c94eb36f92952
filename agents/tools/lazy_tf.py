"""`tf` for programs, which read their flags before TensorFlow is imported.

`tf.app` consists of `absl.app` and `absl.flags`, as TensorFlow's own does, so
that both have the same flags. Any other attribute imports TensorFlow.
"""

import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import absl.app
import absl.flags


def _run(
  main: Callable[[list[str]], Any] | None = None,
  argv: Sequence[str] | None = None,
) -> None:
  """Same as `tf.app.run`: leaves unknown flags to the main function.

  Other libraries print their warnings, but not their notes.
  """

  def parse(words):
    words = [words[0], '--verbosity=-1', *words[1:]]
    return absl.flags.FLAGS(words, known_only=True)

  main = main or sys.modules['__main__'].main
  argv = list(sys.argv if argv is None else argv)
  absl.app.run(main, argv, flags_parser=parse)


class _TensorFlow:
  app = types.SimpleNamespace(flags=absl.flags, run=_run)

  def __getattr__(self, name: str) -> Any:
    from agents.run.tf1 import tf

    return getattr(tf, name)


if TYPE_CHECKING:
  from agents.run.tf1 import tf as tf
else:
  tf = _TensorFlow()
