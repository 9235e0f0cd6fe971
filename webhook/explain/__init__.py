"""The explain subcommand: what the webhook decides for a pod, a VM or a volume, and why. It only reads, and decides
nothing itself: core does.
"""
