"""One module for each plugin of kube-scheduler that the webhook answers for, under its upstream name.

webhook.core.scheduler.framework has their interface, webhook.core.scheduler.registry their list.
"""
