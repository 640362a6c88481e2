"""Numbers: exact residue arithmetic on int64 tensors, one concern a module."""
