"""What people and Prometheus are told of VMs and of decisions."""
