"""Between simulators and graphs: adapters, processes, vectors."""
