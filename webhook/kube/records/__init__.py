"""What the caches store of the objects of each kind.

A cache stores core's objects, with only the fields that core reads: `objects` makes them of decoded ones (client-go's
TransformFunc). Only pods are records (`pods`), because a cluster has 150,000 of them: a record has what a node's sums
need to count its pod and to stop counting it. A pod of a VM is also stored as core's pod. Invariant: what core reads of
a stored object is what core would read of the object itself.
"""
