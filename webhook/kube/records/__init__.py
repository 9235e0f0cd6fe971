"""What is decoded of each kind, and how little of it is remembered.

A cluster has 100,000 of some, so a cache holds records and not objects: what core reads of an object, less its name,
with equal parts shared. `build_*` makes core's object from it again. Invariant: what core reads of
build(key, keep(wire)) is what it would read of the object itself.
"""
