//go:build tools

// Package main names the programs whose modules go.mod and go.sum pin.
package main

import (
	_ "kubevirt.io/kubevirt/cmd/virt-api"
	_ "kubevirt.io/kubevirt/cmd/virt-controller"
)
