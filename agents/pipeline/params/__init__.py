"""Parameter modules: `cpanel` and `gen_params(cpanel)`."""
