"""What kube-scheduler's plugins have against one node, for a plain pod. All other rules are in
webhook.core.scheduler.never_required.
"""
