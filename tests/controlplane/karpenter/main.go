// Writes Karpenter's CustomResourceDefinitions, and those of its kwok provider, as JSON files into a directory.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"slices"

	kwok "sigs.k8s.io/karpenter/kwok/apis"
	karpenter "sigs.k8s.io/karpenter/pkg/apis"
)

func main() {
	directory := os.Args[1]
	if err := os.MkdirAll(directory, 0o755); err != nil {
		log.Fatal(err)
	}
	for _, definition := range slices.Concat(karpenter.CRDs, kwok.CRDs) {
		content, err := json.Marshal(definition)
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, definition.Name+".json"), content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
