//go:build kubelet

package main

import (
	"github.com/spf13/pflag"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	// The command registers the feature gates that only its packages have.
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

// componentFacts adds the flags as the command of the kubelet does. The command itself shows no flag set.
func componentFacts() facts {
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.NewKubeletFlags().AddFlags(flags)
	configuration, err := options.NewKubeletConfiguration()
	if err != nil {
		panic(err)
	}
	options.AddKubeletConfigFlags(flags, configuration)
	options.AddGlobalFlags(flags)
	flags.BoolP("help", "h", false, "")
	return facts{Flags: flagNames(flags), Gates: gatesOf(utilfeature.DefaultMutableFeatureGate)}
}
