"""Where the parameters of a run come from: a module, or a stored session."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from agents.pipeline import checkpoints, folders, old_trees, settings, toolbox
from agents.run import errors, files, references


@dataclasses.dataclass
class Source:
  """Parameters of a run.

  Attributes:
    cpanel: Control panel that the tree was made from.
    params: Tree of parameters, plain data.
    state: State of the runner at the checkpoint, empty without one.
    session: Folder of the stored session, None for a new one.
    checkpoint: Folder of its checkpoint, None for a new one.
    warnings: Sentences about damaged checkpoints that were passed over.
  """

  cpanel: dict[str, Any]
  params: dict[str, Any]
  state: dict[str, Any] = dataclasses.field(default_factory=dict)
  session: str | None = None
  checkpoint: str | None = None
  warnings: list[str] = dataclasses.field(default_factory=list)

  def write(self, path: str) -> None:
    """Store panel and tree in the folder of a new session."""
    folders.write_json(os.path.join(path, 'cpanel.json'), self.cpanel)
    plain = settings.to_plain(self.params)
    files.write_yaml(os.path.join(path, 'params.yaml'), plain)


def generate(name: str, given: Mapping[str, Any]) -> Source:
  """Return the parameters of a module, which the user has named.

  Args:
    name: Dotted name of the module.
    given: Values that replace those of its control panel.

  Raises:
    UsageError: If it is no module of parameters, or a value is wrong.
  """
  module = toolbox.get_module(name, references.EVERYTHING)
  for part in ('cpanel', 'gen_params'):
    if not hasattr(module, part):
      raise errors.UsageError(
        f'Module {name} has no {part!r}, which modules of parameters need; see '
        'agents.pipeline.params.ppo_pendulum.'
      )
  cpanel = settings.update_cpanel(module.cpanel, given)
  return Source(cpanel, module.gen_params(cpanel))


def load(path: str) -> Source:
  """Return the parameters of a session.

  Args:
    path: Folder of a session or checkpoint.

  Raises:
    UsageError: If it is neither, or what it holds cannot be read.
  """
  warnings: list[str] = []
  session, checkpoint = checkpoints.find_checkpoint(path, warnings.append)
  try:
    with open(os.path.join(session, 'cpanel.json')) as file_:
      cpanel = settings.parse_json(file_.read())
    runner = files.read_yaml(os.path.join(checkpoint, 'runner.yaml'))
    params, state = runner['params'], runner['state']
  except (OSError, TypeError, KeyError, ValueError) as error:
    raise errors.UsageError(
      f'Cannot read the parameters of {checkpoint} ({error}); give another '
      'checkpoint.'
    ) from None
  old_trees.upgrade(params)
  return Source(cpanel, params, state, session, checkpoint, warnings)
