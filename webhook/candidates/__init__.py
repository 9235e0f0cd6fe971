"""The command candidates: which VMs would gain by co-scheduling, before they opt in or anything is installed."""
