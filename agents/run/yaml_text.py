"""Plain data from YAML text."""

import warnings
from collections.abc import Callable
from typing import Any


def parse(
  text: str, add_tags: Callable[[Any], object] = lambda constructor: None
) -> Any:
  """Return plain data from YAML 1.2 text, where `5e7` and `1e-3` are numbers.

  Dates become strings, because plain data has no dates.

  Args:
    text: YAML.
    add_tags: Function that adds tags to a constructor class of ruamel.yaml.

  Raises:
    ValueError: If the text is not YAML, with the parser's explanation.
  """
  from ruamel import yaml

  class Constructor(yaml.constructor.SafeConstructor):
    pass

  Constructor.add_constructor(
    'tag:yaml.org,2002:timestamp', Constructor.construct_scalar
  )
  add_tags(Constructor)
  reader: Any = yaml.YAML(typ='safe', pure=True)
  reader.Constructor = Constructor
  try:
    with warnings.catch_warnings():
      # YAML allows it, and config.yaml of Rex-Gym does it; the last one counts.
      warnings.simplefilter('ignore', yaml.error.ReusedAnchorWarning)
      return reader.load(text)
  except (yaml.YAMLError, RecursionError) as error:
    raise ValueError(' '.join(str(error).split())) from None
