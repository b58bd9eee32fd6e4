"""The ticket: what the agent is asked, and what was said on it."""

from __future__ import annotations

from typing import Literal

from opsdrill.model.fields import Instant, Items, Recorded

Author = Literal["agent", "requester"]


class TicketMessage(Recorded):
    """One message on the ticket; `agent` is the agent system as a whole."""

    at: Instant | None = None
    author: Author
    body: str
    name: str | None = None


class Ticket(Recorded):
    title: str = ""
    body: str = ""
    messages: Items[TicketMessage] = ()
