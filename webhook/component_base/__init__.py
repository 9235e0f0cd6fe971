"""What both programs stand on, the webhook and `certs`, named as k8s.io/component-base: errors, options, command line,
log lines, a listening address, and the way to an API server. Nothing here imports another package of `webhook`, nor
`certs`.
"""
