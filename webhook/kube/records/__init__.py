"""The records that the caches store, one module a kind.

A cluster can have 100,000 objects of a kind, so a cache stores records, not objects. A record has the fields that core
reads except the name, which is in the cache key. Equal parts of records are shared (webhook.kube.records.shared).

Each module has two functions: `transform(wire)` makes the record of a decoded object (client-go's TransformFunc), and
`to_object(key, record)` makes core's object of a record and its cache key. Invariant: what core reads of
to_object(key, transform(wire)) is what core would read of the object itself.
"""
