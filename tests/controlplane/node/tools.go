//go:build tools

// Package main names the programs whose modules go.mod and go.sum pin.
package main

import (
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
