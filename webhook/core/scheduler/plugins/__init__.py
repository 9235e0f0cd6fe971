"""One file for each filter plugin of kube-scheduler that the webhook answers for, under its upstream name. State of
the cluster is in `state`.
"""
