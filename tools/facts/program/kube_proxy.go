//go:build kube_proxy

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

func componentFacts() facts {
	command := app.NewProxyCommand()
	return facts{
		Flags: flagNames(command.Flags()),
		Gates: gatesOf(utilfeature.DefaultMutableFeatureGate),
	}
}
