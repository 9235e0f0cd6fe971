"""The objects of Kubernetes, KubeVirt and Longhorn, with only the fields that core reads, and the forms of their
names and quantities. This room imports no other room, and decides nothing.
"""
