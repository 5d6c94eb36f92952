"""Parser and environments of the command line, under the original's names."""

import argparse

from baselines_her import vec_env
from baselines_her.declarations import Flags

make_env = vec_env.make_env
make_vec_env = vec_env.make_vec_env


def common_arg_parser() -> argparse.ArgumentParser:
  """Return an argparse parser of all flags of `declarations.Flags`.

  For programs that add flags of their own. Call `parse_known_args` to get the
  settings of `settings.parse_cmdline_kwargs` as well. `baselines_her.run`
  itself reads the same flags with absl, see `settings.parse_args`.
  """
  parser = argparse.ArgumentParser(
    formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
  )
  for name in Flags.names():
    kind, default, text = (
      Flags.base(name),
      Flags.default(name),
      Flags.meaning(name),
    )
    if kind is bool:
      parser.add_argument(
        f'--{name}', action='store_true', default=default, help=text
      )
      parser.add_argument(f'--no{name}', action='store_false', dest=name)
      parser.set_defaults(**{name: default})
    else:
      parser.add_argument(f'--{name}', type=kind, default=default, help=text)
  return parser
