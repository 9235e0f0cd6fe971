"""What users and operators see of VMs and decisions: the state of a VM, the command that restarts it, the content of
Events. Nothing here changes a decision.
"""
