"""What is known of nodes and pods: the counterpart of kube-scheduler's cache, snapshot and NodeInfo. No rule refuses
a node here.
"""
