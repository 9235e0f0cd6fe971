"""What kube-scheduler's plugins have against one node, for a plain pod. Of all other rules
webhook.core.scheduler.never_required has a table.
"""
