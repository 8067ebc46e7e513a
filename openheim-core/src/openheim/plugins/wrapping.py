"""Wrappers of general plugins around the hook of another one.

pluggy runs wrappers too, but what one of them raises or forgets to return then looks like a failure of the plugin that
it wraps. Here the two are told apart: a wrapper that fails is named, and the call goes on as if it were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from openheim.errors import OpenheimError
from openheim.plugins.supervision import supervised

if TYPE_CHECKING:
    from openheim.plugins.catalogue import Candidate

__all__ = ("OnFault", "ProblemOf", "Wrapper", "call_wrapped")

#: Why a value is no answer to the hook, or ``""``.
ProblemOf: TypeAlias = Callable[[Any], str]

#: Told of a wrapper that failed: whose it is, and what it raised or did wrong. What it raises ends the call.
OnFault: TypeAlias = "Callable[[Candidate, BaseException | str], None]"

_Started: TypeAlias = Generator[None, Any, Any]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A generator function that yields once, and the arguments that it takes."""

    candidate: Candidate
    hook: str
    function: Callable[..., _Started]
    argnames: Sequence[str]


def call_wrapped(
    wrappers: Sequence[Wrapper],
    inner: Callable[[], Any],
    arguments: Mapping[str, Any],
    *,
    problem_of: ProblemOf,
    on_fault: OnFault,
) -> Any:
    """Calls ``inner`` inside the wrappers, outermost first, and returns what comes of it.

    A wrapper gets the outcome at its ``yield``, and returns what is to take its place, or raises: an error of
    openheim's own, or the one it got, or another ``from`` that. Whatever else it does is its fault.

    Raises:
        BaseException: what ``inner`` raised, or a wrapper in its place; what ``on_fault`` raised.
    """
    started: list[tuple[Wrapper, _Started]] = []
    try:
        for wrapper in wrappers:
            generator = wrapper.function(*[arguments[name] for name in wrapper.argnames])
            try:
                ended = _step(wrapper, partial(next, generator))
            except OpenheimError:
                raise
            except (Exception, SystemExit) as err:
                on_fault(wrapper.candidate, err)
                continue
            if ended is None:
                started.append((wrapper, generator))
            else:
                on_fault(wrapper.candidate, "it returned before its yield")
        outcome = _Outcome.of(inner)
        while started:
            wrapper, generator = started.pop()
            outcome = _replaced(wrapper, generator, outcome, problem_of, on_fault)
        return outcome.get()
    finally:
        for _wrapper, generator in reversed(started):
            _close(generator)


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, call: Callable[[], Any]) -> _Outcome:
        try:
            return cls(call())
        except BaseException as err:  # wrappers see Ctrl+C too, to clean up
            return cls(error=err)

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _replaced(
    wrapper: Wrapper, generator: _Started, outcome: _Outcome, problem_of: ProblemOf, on_fault: OnFault
) -> _Outcome:
    """What a wrapper makes of an outcome; the same outcome if the wrapper fails."""
    error = outcome.error
    try:
        resume = partial(generator.throw, error) if error is not None else partial(generator.send, outcome.value)
        ended = _step(wrapper, resume)
    except (Exception, SystemExit) as err:
        if err is error:
            return outcome
        if isinstance(err, OpenheimError) or (error is not None and err.__cause__ is error):
            return _Outcome(error=err)
        on_fault(wrapper.candidate, err)
        return outcome
    except BaseException as err:  # Ctrl+C, while the wrapper ran or before
        return _Outcome(error=err)
    if ended is None:
        _close(generator)
        problem = "it yields more than once"
    elif error is None and ended.value is outcome.value:
        return outcome
    else:
        problem = _problem(problem_of, ended.value)
        if not problem:
            return ended
    on_fault(wrapper.candidate, problem)
    return outcome


def _step(wrapper: Wrapper, advance: Callable[[], object]) -> _Outcome | None:
    """Runs a wrapper up to its next ``yield``, or to its end: then what it returned."""
    candidate = wrapper.candidate
    with supervised(f"Plugin {candidate.label} ({candidate.origin}) is wrapping {wrapper.hook}"):
        try:
            advance()
        except StopIteration as stop:
            return _Outcome(stop.value)
    return None


def _close(generator: _Started) -> None:
    # Its outcome is settled already, so that what it does about its end changes nothing.
    with suppress(Exception, SystemExit):
        generator.close()


def _problem(problem_of: ProblemOf, value: Any) -> str:
    try:
        return problem_of(value)
    except (Exception, SystemExit) as err:  # a stranger's object may raise when it is looked at
        return f"what it returned cannot be looked at: {type(err).__name__}"
