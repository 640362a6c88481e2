"""What a rule is: from one operator of a model to ops of a program."""

from collections.abc import Callable

from fhelium.frontends.capture.builder import Argument, Call

Rule = Callable[[Call], Argument]
"""Emit what `Call` means and return its result. Raises `RefusedError`, with what to use instead."""
