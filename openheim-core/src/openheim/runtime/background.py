"""A call that runs in the runtime's own task group, and whose result is asked for elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ("BackgroundTask",)

T = TypeVar("T")


class BackgroundTask(Generic[T]):
    """Its error stays here until :meth:`result` is called: it must not end the runtime."""

    def __init__(self) -> None:
        self.done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], None]] = []

    async def run(self, call: Callable[..., Awaitable[T]], arguments: Sequence[Any]) -> None:
        """Makes the call; to be started in a task group."""
        try:
            self._value = await call(*arguments)
        except Exception as err:
            self._error = err
        finally:
            self.done = True
            for callback in self._callbacks:
                callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Has the callback called at the end, or now if that was before."""
        if self.done:
            callback()
        else:
            self._callbacks.append(callback)

    def result(self) -> T:
        """What the call returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value
