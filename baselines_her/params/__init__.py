"""Parameters of HER trainings in the pipeline; see `common`."""
