"""Traits that ops of several dialects have."""

from xdsl.traits import OpTrait


class ViewsOperand(OpTrait):
    """A result may be an operand, or a view of one: to overwrite either changes both.

    So the op itself moves no words, or hardly any.
    """
