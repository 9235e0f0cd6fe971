"""The objects of KubeVirt and Longhorn that explain reads, and the names by which users ask for them. Objects that
core reads are in `webhook.core.api`.
"""
