//go:build kube_scheduler

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func componentFacts() facts {
	command := app.NewSchedulerCommand()
	return facts{
		Flags: flagNames(command.Flags()),
		Gates: gatesOf(utilfeature.DefaultMutableFeatureGate),
	}
}
