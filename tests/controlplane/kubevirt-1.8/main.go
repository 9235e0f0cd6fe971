// Writes what virt-operator installs for virt-controller and virt-api, into the file that the argument names.
//
// All of it comes from the code by which virt-operator installs this version: CustomResourceDefinitions, rights, the
// Service and the webhook configurations of virt-api. Each line is an object in JSON.
package main

import (
	"encoding/json"
	"os"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	operatorutil "kubevirt.io/kubevirt/pkg/virt-operator/util"
)

const namespace = "kubevirt"

func main() {
	kubeVirt, err := components.NewKubeVirtCrd()
	check(err)
	config := &operatorutil.KubeVirtDeploymentConfig{Namespace: namespace}
	strategy, err := install.GenerateCurrentInstallStrategy(config, "", namespace)
	check(err)
	file, err := os.Create(os.Args[1])
	check(err)
	lines := json.NewEncoder(file)
	write(lines, kubeVirt)
	write(lines, components.NewKubeVirtPriorityClassCR())
	write(lines, strategy.CRDs()...)
	write(lines, strategy.ServiceAccounts()...)
	write(lines, strategy.ClusterRoles()...)
	write(lines, strategy.ClusterRoleBindings()...)
	write(lines, strategy.Roles()...)
	write(lines, strategy.RoleBindings()...)
	write(lines, strategy.Services()...)
	write(lines, strategy.APIServices()...)
	write(lines, strategy.ValidatingWebhookConfigurations()...)
	write(lines, strategy.MutatingWebhookConfigurations()...)
	check(file.Close())
}

func write[T any](lines *json.Encoder, objects ...T) {
	for _, object := range objects {
		check(lines.Encode(object))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
