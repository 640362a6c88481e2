"""Programs on plain numbers, op by op: what a program means, for tests and for debugging.

One module a dialect, each a set of xDSL's `InterpreterFunctions`.
"""
