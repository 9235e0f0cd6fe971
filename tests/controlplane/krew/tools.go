//go:build tools

// Package tools names the module that go.mod and go.sum pin: krew, which installs kubectl plugins, and its check of manifests.
package tools

import (
	_ "sigs.k8s.io/krew/cmd/krew"
	_ "sigs.k8s.io/krew/cmd/validate-krew-manifest"
)
