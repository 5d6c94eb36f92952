"""Command-line programs of PlaNet and their configuration."""
