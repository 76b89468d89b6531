"""One LoadResult of those that several processes made at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from loadgen import histogram, proc, throttle
from loadgen.contract import ERROR_KINDS, ClientUse, Late, LoadResult, LoadSpec, TlsUse, Traffic, Unanswered
from loadgen.result import connections, is_late, lateness
from loadgen.snapshot import Snapshot, kernel_use, server_use


def merge(
    spec: LoadSpec, parts: Sequence[LoadResult], before: Snapshot, after: Snapshot, memory: proc.Memory
) -> LoadResult:
    """Counts add up, histograms add up exactly; what belongs to the machine was read once, by the parent."""
    requests = sum(part.requests for part in parts)
    late = _late([part.late for part in parts if part.late])
    services = [part.service for part in parts if part.service]
    return LoadResult(
        spec=spec,
        warmup_s=max(part.warmup_s or 0.0 for part in parts),
        elapsed_s=max(part.elapsed_s for part in parts),
        requests=requests,
        rps=sum(part.rps for part in parts),
        latency=histogram.merge(part.latency for part in parts),
        service=histogram.merge(services) if services else None,
        errors={kind: sum(part.errors[kind] for part in parts) for kind in ERROR_KINDS},
        first_error=next((part.first_error for part in parts if part.first_error), None),
        connections=connections(
            sum(part.connections.opened for part in parts),
            sum(part.connections.reconnects for part in parts),
            requests,
            sum(part.connections.resent for part in parts),
        ),
        unanswered=unanswered([part.unanswered for part in parts if part.unanswered]),
        tls=_tls([part.tls for part in parts if part.tls]),
        bytes=_traffic([part.bytes for part in parts]),
        client=_client([part.client for part in parts]),
        per_100ms=tuple(sum(counts) for counts in zip_longest(*(part.per_100ms for part in parts), fillvalue=0)),
        kernel=kernel_use(before, after),
        late=late,
        client_late=is_late(late, requests),
        server=server_use(spec.watch_pid, before, after, memory),
        host=proc.shares(before.cpus, after.cpus),
        throttled=throttle.between(before.throttled, after.throttled),
    )


def unanswered(parts: Sequence[Unanswered]) -> Unanswered:
    """The connections of all, and the oldest request of any."""
    oldest_us = max((part.oldest_us for part in parts if part.oldest_us is not None), default=None)
    return Unanswered(connections=sum(part.connections for part in parts), oldest_us=oldest_us)


def _tls(parts: Sequence[TlsUse]) -> TlsUse | None:
    if not parts:
        return None
    return TlsUse(handshakes=sum(part.handshakes for part in parts), resumed=sum(part.resumed for part in parts))


def _traffic(parts: Sequence[Traffic]) -> Traffic:
    received = [part.received for part in parts if part.received is not None]
    return Traffic(sent=sum(part.sent for part in parts), received=sum(received) if received else None)


def _client(parts: Sequence[ClientUse]) -> ClientUse:
    """CPU adds up; each process may run on CPUs of its own, and all have the same limits."""
    cpus = {cpu for part in parts for cpu in part.cpus or ()}
    return ClientUse(
        user_s=sum(part.user_s for part in parts),
        system_s=sum(part.system_s for part in parts),
        share=sum(part.share for part in parts) / len(parts),
        involuntary_switches=sum(part.involuntary_switches for part in parts),
        cpus=tuple(sorted(cpus)) or None,
        limits=parts[0].limits,
    )


def _late(parts: Sequence[Late]) -> Late | None:
    if not parts:
        return None
    return lateness(sum(part.requests for part in parts), int(max(part.max_us for part in parts) * 1000))
