"""What someone else's files may contain, and whether it was carried out."""

import os


def plant(folder, monkeypatch):
  """Make a module that can be imported as `hostile`.

  Returns:
    Path of the file that appears once anything of it, or of `calls`, runs.
  """
  marker = os.path.join(folder, 'marker')
  os.makedirs(os.path.join(folder, 'path'))
  with open(os.path.join(folder, 'path', 'hostile.py'), 'w') as file_:
    file_.write(
      'import os\n'
      f'open({marker!r}, "w").close()\n'
      'def anything(*args, **kwargs):\n'
      '  raise ValueError("hostile")\n'
    )
  monkeypatch.syspath_prepend(os.path.join(folder, 'path'))
  monkeypatch.delitem(__import__('sys').modules, 'hostile', raising=False)
  return marker


def calls(marker):
  """Values for a configuration that would create the marker when called."""
  touch = f'touch {marker}'
  names = [
    'os:system',
    'posix:system',
    'subprocess:getoutput',
    # What our own modules import, or do with the arguments of a file.
    'agents.utility:os.system',
    'agents.networks:functools.partial',
    'agents.run.references:resolve',
  ]
  values = [{'partial': x, 'args': [touch], 'kwargs': {}} for x in names]
  values += [
    {'partial': 'agents.run.files:check_writable', 'args': [marker]},
    {'partial': 'agents.tools.continuous:make', 'args': ['hostile:Any-v0']},
  ]
  values = [{'kwargs': {}, **x} for x in values]
  return [*values, {'reference': 'hostile:anything'}, 'hostile:Any-v0']
