module kubevirt-coschedule/tests/controlplane/constant-webhook

go 1.26.0
