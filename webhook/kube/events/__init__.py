"""Events on VirtualMachineInstances: queued, paced and written."""
