//go:build kubeadm

package main

import (
	system "k8s.io/system-validators/validators"

	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/features"
)

type kubeadmFacts struct {
	// Etcd is the version that kubeadm installs with this minor version of Kubernetes.
	Etcd string `json:"etcd"`
	// ExternalEtcd is the oldest version of an etcd that kubeadm does not install.
	ExternalEtcd string `json:"externalEtcd"`
	// Formats are the versions of the configuration that kubeadm reads.
	Formats []string `json:"formats"`
	// Kernels are regular expressions. A kernel that matches none of them is not supported.
	Kernels     []string `json:"kernels"`
	KernelsNote string   `json:"kernelsNote"`
}

func componentFacts() facts {
	gates := map[string]gate{}
	for name, feature := range features.InitFeatureGates {
		gates[name] = gateOf(feature.FeatureSpec)
	}
	formats := []string{}
	for _, each := range scheme.Scheme.PrioritizedVersionsForGroup(kubeadm.GroupName) {
		formats = append(formats, each.Version)
	}
	return facts{Gates: gates, More: kubeadmFacts{
		Etcd:         constants.DefaultEtcdVersion,
		ExternalEtcd: constants.MinExternalEtcdVersion,
		Formats:      formats,
		Kernels:      system.DefaultSysSpec.KernelSpec.Versions,
		KernelsNote:  system.DefaultSysSpec.KernelSpec.VersionsNote,
	}}
}
