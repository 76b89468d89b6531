"""The errors of the load generator. Each has a `kind`, which goes into the agent's answer."""

from __future__ import annotations


class LoadgenError(Exception):
    """Base of all errors of this package."""

    kind = "internal"


class SpecError(LoadgenError):
    """A request to the load generator that makes no sense; the text names the field and what it takes."""

    kind = "spec"


class ProtocolError(LoadgenError):
    """A server's bytes that are not an HTTP/1 answer."""

    kind = "protocol"


class EngineError(LoadgenError):
    """A worker process or a second-opinion engine (wrk, h2load) that could not do its work."""

    kind = "engine"


class StartupError(LoadgenError):
    """A server that was about to start, and gave no right answer in time."""

    kind = "startup"
