"""Rules 7 and 8: on which nodes a pod can run, and whether a node is required or preferred. Where the nodes come from
is the matter of `evidence`.
"""
