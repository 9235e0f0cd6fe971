//go:build tools

// Package tools names the modules that go.mod and go.sum pin: cert-manager's API, and the generator that makes
// CustomResourceDefinitions of it.
package tools

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
)
