"""One module for each plugin of kube-scheduler that the webhook answers for, under its upstream name
(webhook.core.scheduler.registry).
"""
