"""The API's client in Python: `Client`, and `AsyncClient` for asynchronous programs.

    with Client("http://127.0.0.1:8420", token) as drills:
        started = drills.start_runs(scenarios=["tag:web"], agents=["careful"])
        for event in drills.follow_run(started.runs[0].id):
            print(event.kind, event.data)

Both have one method for each operation of the API, of the operation's name; answers are the models
of `opsdrill.wire`. What is not done raises an `ApiError`.
"""

from opsdrill.client.async_client import AsyncClient
from opsdrill.client.client import Client
from opsdrill.client.refusals import (
    ApiError,
    Conflict,
    NotAllowed,
    NotThere,
    Refused,
    TooMany,
    Unavailable,
    Unreachable,
)
from opsdrill.client.scenarios import ANY, TaggedScenario
from opsdrill.client.streams import Event
from opsdrill.client.uploads import Content

__all__ = [
    "ANY", "ApiError", "AsyncClient", "Client", "Conflict", "Content", "Event", "NotAllowed",
    "NotThere", "Refused", "TaggedScenario", "TooMany", "Unavailable", "Unreachable",
]  # fmt: skip
