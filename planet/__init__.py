"""Deep planning network: learning latent dynamics from pixels."""
