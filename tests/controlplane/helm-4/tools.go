//go:build tools

// Package tools names the module that go.mod and go.sum pin: helm, which installs the chart.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
