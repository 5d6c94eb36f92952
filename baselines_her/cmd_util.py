"""Parser and environments of the command line, under the original's names."""

import argparse

from baselines_her import settings
from baselines_her import vec_env

make_env = vec_env.make_env
make_vec_env = vec_env.make_vec_env


def common_arg_parser() -> argparse.ArgumentParser:
  """Return an argparse parser of all flags of `settings.FLAGS`.

  For programs that add flags of their own. Call `parse_known_args` to get the
  settings of `settings.parse_cmdline_kwargs` as well. `baselines_her.run`
  itself reads the same flags with absl, see `settings.parse_args`.
  """
  parser = argparse.ArgumentParser(
    formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
  )
  for name, (kind, default, text) in settings.FLAGS.items():
    if kind is bool:
      parser.add_argument(
        f'--{name}', action='store_true', default=default, help=text
      )
      parser.add_argument(f'--no{name}', action='store_false', dest=name)
      parser.set_defaults(**{name: default})
    else:
      parser.add_argument(f'--{name}', type=kind, default=default, help=text)
  return parser
