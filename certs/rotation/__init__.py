"""The rules of a rotation: which step is next, and what it writes. Pure: no I/O, no clock."""
