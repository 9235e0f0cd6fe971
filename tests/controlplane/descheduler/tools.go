//go:build tools

// Package tools names the program whose modules go.mod and go.sum pin.
package tools

import _ "sigs.k8s.io/descheduler/cmd/descheduler"
