"""What `/metrics` tells, in a registry of its own: nothing of other libraries in this process."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.types import Scope

from opsdrill import __version__

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
UNKNOWN = "other"
"""The label of what a caller made up: callers make no labels."""


class Metrics:
    """Counts of one serving process.

    Args:
        prefix: of the API's own paths, which a route of it does not know.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "opsdrill_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "opsdrill_http_request_seconds",
            "How long answers took, those that follow events among them.",
            ("route",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._runs = Gauge(
            "opsdrill_runs",
            "Runs that are not over, of this process, by state.",
            ("state",),
            registry=self._registry,
        )
        build = Gauge(
            "opsdrill_build", "1, with the version.", ("version",), registry=self._registry
        )
        build.labels(__version__).set(1)

    def answered(self, scope: Scope, status: int | None, seconds: float) -> None:
        """A request was answered, or given up (None)."""
        route = getattr(scope.get("route"), "path", UNKNOWN)
        if scope["path"].startswith(f"{self._prefix}/") and route != UNKNOWN:
            route = f"{self._prefix}{route.removeprefix(self._prefix)}"
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN
        self._requests.labels(method, route, str(status or UNKNOWN)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, runs: Mapping[str, int]) -> bytes:
        """All of it in Prometheus's text format.

        Args:
            runs: how many runs of this process are not over, by state.
        """
        for state in ("planned", "running"):
            self._runs.labels(state).set(runs.get(state, 0))
        return generate_latest(self._registry)
