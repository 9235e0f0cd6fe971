// Command constant-webhook answers every AdmissionReview with the same JSON Patch: what the least webhook in Go costs.
//
// Called as `constant-webhook ADDRESS CERT_FILE KEY_FILE PATCH_FILE`.
package main

import (
	"crypto/tls"
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID string `json:"uid"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	Patch     []byte `json:"patch"`
	PatchType string `json:"patchType"`
}

func main() {
	address, certFile, keyFile, patchFile := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	patch, err := os.ReadFile(patchFile)
	if err != nil {
		log.Fatal(err)
	}
	answer := func(writer http.ResponseWriter, asked *http.Request) {
		var got review
		if err := json.NewDecoder(asked.Body).Decode(&got); err != nil || got.Request == nil {
			http.Error(writer, "no AdmissionReview", http.StatusBadRequest)
			return
		}
		got.Response = &response{UID: got.Request.UID, Allowed: true, Patch: patch, PatchType: "JSONPatch"}
		got.Request = nil
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(got); err != nil {
			log.Print(err)
		}
	}
	server := http.Server{
		Addr:      address,
		Handler:   http.HandlerFunc(answer),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
	}
	log.Fatal(server.ListenAndServeTLS(certFile, keyFile))
}
