"""Whether the server lives, and whether it can work."""

from __future__ import annotations

from opsdrill.client.call import Call, get, model, text
from opsdrill.wire.health import Health, Readiness


def health() -> Call[Health]:
    """That it lives; takes no token."""
    return get("/health", model(Health))


def ready() -> Call[Readiness]:
    """That it can work; `Unavailable` where it cannot."""
    return get("/ready", model(Readiness))


def metrics() -> Call[str]:
    """Its measurements, in Prometheus's text format."""
    return get("/metrics", text)
