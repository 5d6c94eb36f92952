"""Parameters of trainings with HER in the pipeline; see `common`."""
