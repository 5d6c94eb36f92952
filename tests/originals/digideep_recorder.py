"""Numbers of the pipeline, by a clone of sharif1093/digideep."""

from tests.originals import digideep
from tests.originals.data import Results


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  return digideep.FOLDER, digideep.record(clone, out)
