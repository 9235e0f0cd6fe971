//go:build tools

// Package tools names the programs whose modules go.mod and go.sum pin.
package tools

import (
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
