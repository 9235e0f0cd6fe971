"""The command explain: what core decides for a pod, and what decides about the next start of a VM. It only reads."""
