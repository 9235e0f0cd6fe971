"""The command explain: the decision for a VM, a pod or a Longhorn volume, with everything that led to it. It only
reads, and core decides.
"""
