"""`keep`: the controller that updates the Secret and the caBundle, as a process with a health port."""
