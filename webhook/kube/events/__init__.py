"""Events on VirtualMachineInstances: queued, limited in rate, and written. Their content comes from
`webhook.core.observe`.
"""
