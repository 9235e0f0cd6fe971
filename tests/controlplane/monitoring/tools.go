//go:build tools

// Package tools names the modules that go.mod and go.sum pin: Prometheus, promtool, the Prometheus operator's API, and the generator
// that makes CustomResourceDefinitions of it.
package tools

import (
	_ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
)
