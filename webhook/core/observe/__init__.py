"""What users see of the VMs: the Events on them, their status, and how to restart them."""
