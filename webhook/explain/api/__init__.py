"""The objects of KubeVirt and Longhorn that only explain reads, and how a user names objects. Objects that core reads
are in `webhook.core.api`.
"""
