"""Parameter files: `cpanel` and `gen_params(cpanel)`."""
