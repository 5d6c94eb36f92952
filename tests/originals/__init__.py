"""The unmodified originals beside ours; see `scripts.compare`.

`*_original.py` run the code of an original on current TensorFlow, the modules
without ending compare it with this project, and `*_recorder.py` compute the
numbers of `tests/data` again.
"""
