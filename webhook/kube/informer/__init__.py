"""Informers: caches that follow collections of the API server by list and watch, as client-go's tools/cache.

`Reflector` drives a `ListWatch` (a state machine without I/O), which is a `Store` of objects with an `Index` over them.
kubernetes-asyncio has no informer, and its Watch asks with a stale resourceVersion again after a 410.

What a cache promises its readers:

- Either `objects` is empty and `synced` is False, or `objects` is the whole collection as it was at one moment.
  A list in progress is not visible.
- `objects` follows the events of the API server in their order, and never goes back to an older state. The exception is
  an API server that was restored from a backup: then a new list replaces `objects`.
- `objects` may lag. While the watch is up, the lag is the time that an event takes. After the watch is lost, `age`
  returns how old `objects` may be, and `fresh` is True for 10 s (connection.STALE_AFTER_SECONDS).
- A connection that died is noticed after 90 s without a sign of life (connection.SILENCE_SECONDS). From then on the
  cache is not fresh, even if the task that drives it has ended.
- A watch that is up again counts as up after 1 s (connection.SETTLE_SECONDS). By then the API server has sent the
  events that happened while there was no watch.
- An object that was deleted while the watch was down disappears with its event, or with the next list.
- An object that can't be decoded is left out and counted (`unreadable`). It spoils no other object.
- An index always equals one that was made from `objects`.

A reader must not change what is stored: equal parts of it are shared.
"""
