"""World without a server: simple cars on real road geometry."""
