//go:build kube_controller_manager

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func componentFacts() facts {
	command := app.NewControllerManagerCommand()
	return facts{
		Flags: flagNames(command.Flags()),
		Gates: gatesOf(utilfeature.DefaultMutableFeatureGate),
	}
}
