"""The keeper of the serving certificate: issues it, renews it, and publishes its authority to the API servers.

Imports run one way: `cli -> {keep, inspection} -> {cluster, health} -> plan -> state -> {leaf, pki}`. Nothing here
knows `webhook`, nor the other way round: the two meet at mounted files.
"""
