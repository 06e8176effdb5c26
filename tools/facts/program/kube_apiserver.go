//go:build kube_apiserver

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type lifecycle struct {
	Group       string `json:"group"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Deprecated  int    `json:"deprecated,omitempty"`
	Removed     int    `json:"removed,omitempty"`
	Replacement string `json:"replacement,omitempty"`
}

type deprecatedKind interface{ APILifecycleDeprecated() (int, int) }
type removedKind interface{ APILifecycleRemoved() (int, int) }
type replacedKind interface {
	APILifecycleReplacement() schema.GroupVersionKind
}

// lifecyclesOf returns the minor versions of Kubernetes 1 that deprecate or remove a kind.
func lifecyclesOf(scheme *runtime.Scheme) []lifecycle {
	all := []lifecycle{}
	for of := range scheme.AllKnownTypes() {
		object, err := scheme.New(of)
		if err != nil {
			panic(err)
		}
		found := lifecycle{Group: of.Group, Version: of.Version, Kind: of.Kind}
		if kind, ok := object.(deprecatedKind); ok {
			_, found.Deprecated = kind.APILifecycleDeprecated()
		}
		if kind, ok := object.(removedKind); ok {
			_, found.Removed = kind.APILifecycleRemoved()
		}
		if kind, ok := object.(replacedKind); ok {
			by := kind.APILifecycleReplacement()
			found.Replacement = by.GroupVersion().String() + " " + by.Kind
		}
		if found.Deprecated != 0 || found.Removed != 0 {
			all = append(all, found)
		}
	}
	return all
}

func componentFacts() facts {
	command := app.NewAPIServerCommand()
	lifecycles := lifecyclesOf(legacyscheme.Scheme)
	lifecycles = append(lifecycles, lifecyclesOf(apiextensions.Scheme)...)
	lifecycles = append(lifecycles, lifecyclesOf(aggregator.Scheme)...)
	return facts{
		Flags: flagNames(command.Flags()),
		Gates: gatesOf(utilfeature.DefaultMutableFeatureGate),
		More:  lifecycles,
	}
}
