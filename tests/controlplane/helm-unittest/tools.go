//go:build tools

// Package tools names the module that go.mod and go.sum pin: helm-unittest, which runs the chart's own tests.
package tools

import _ "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
