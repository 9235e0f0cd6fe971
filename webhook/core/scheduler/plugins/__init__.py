"""One file for each filter plugin of kube-scheduler that this project answers for, under its upstream name."""
