"""One file for each kind: what is decoded of an object, what a cache stores of it, and how the object comes back.

A large cluster has 100,000 objects of some kinds. So a cache stores records and not objects: what core reads of an
object, without its name, and with equal parts shared. `build_*` makes core's object from the record again. Invariant:
what core reads of build(key, keep(wire)) is what core would read of the object itself.
"""
