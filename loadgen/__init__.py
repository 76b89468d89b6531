"""The load generator: a package of its own that never imports the orchestrator."""

__version__ = "0.1.0"
