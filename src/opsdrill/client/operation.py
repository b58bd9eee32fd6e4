"""A described call as a method of both clients; of the one it answers, of the other is awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from opsdrill.client.call import Call
from opsdrill.client.streams import Event, Following

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


class Direct:
    """A client whose methods answer."""

    def do(self, call: Call[T]) -> T:
        """Send a call; its answer. Raises ApiError."""
        raise NotImplementedError

    def follow(self, following: Following) -> Iterator[Event]:
        """Events as they come. Raises ApiError."""
        raise NotImplementedError


class Awaited:
    """A client whose methods are awaited."""

    async def do(self, call: Call[T]) -> T:
        """Send a call; its answer. Raises ApiError."""
        raise NotImplementedError

    def follow(self, following: Following) -> AsyncIterator[Event]:
        """Events as they come. Raises ApiError."""
        raise NotImplementedError


class Operation(Generic[P, T]):
    """One operation: called, it sends what its description says.

    Args:
        describe: makes the call of the arguments.
    """

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Operation[P, T]: ...
    @overload
    def __get__(self, client: Direct, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaited, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Direct | Awaited | None, owner: type) -> object:
        if client is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> object:
            return client.do(self.describe(*args, **kwargs))

        return update_wrapper(method, self.describe)


class Pages(Generic[P, T, Item]):
    """Everything that a listing has, page by page as it is asked for.

    Args:
        describe: makes the call of the first page.
        items: those of a page.
    """

    def __init__(
        self, describe: Callable[P, Call[T]], items: Callable[[T], Sequence[Item]]
    ) -> None:
        self.describe = describe
        self.items = items
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Pages[P, T, Item]: ...
    @overload
    def __get__(self, client: Direct, owner: type) -> Callable[P, Iterator[Item]]: ...
    @overload
    def __get__(self, client: Awaited, owner: type) -> Callable[P, AsyncIterator[Item]]: ...
    def __get__(self, client: Direct | Awaited | None, owner: type) -> object:
        if client is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> object:
            call = self.describe(*args, **kwargs)
            if isinstance(client, Direct):
                return self._here(client, call)
            return self._later(client, call)

        return update_wrapper(method, self.describe)

    def _here(self, client: Direct, call: Call[T]) -> Iterator[Item]:
        more: Call[T] | None = call
        while more is not None:
            page = client.do(more)
            yield from self.items(page)
            more = _next(call, page)

    async def _later(self, client: Awaited, call: Call[T]) -> AsyncIterator[Item]:
        more: Call[T] | None = call
        while more is not None:
            page = await client.do(more)
            for item in self.items(page):
                yield item
            more = _next(call, page)


class Stream(Generic[P]):
    """Events that are followed.

    Args:
        describe: makes of the arguments what is followed.
    """

    def __init__(self, describe: Callable[P, Following]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Stream[P]: ...
    @overload
    def __get__(self, client: Direct, owner: type) -> Callable[P, Iterator[Event]]: ...
    @overload
    def __get__(self, client: Awaited, owner: type) -> Callable[P, AsyncIterator[Event]]: ...
    def __get__(self, client: Direct | Awaited | None, owner: type) -> object:
        if client is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> object:
            return client.follow(self.describe(*args, **kwargs))

        return update_wrapper(method, self.describe)


def _next(call: Call[T], page: T) -> Call[T] | None:
    cursor: str | None = getattr(page, "cursor", None)
    return call.behind(cursor) if cursor else None
