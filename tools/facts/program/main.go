// Prints, as JSON, what one component of Kubernetes accepts: its flags and its feature gates. The program is built
// once for each component, with a build tag that has the name of the component, because a process registers the
// feature gates of everything that is linked into it.
package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/pflag"

	"k8s.io/component-base/featuregate"
)

type gate struct {
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
}

type facts struct {
	Flags []string        `json:"flags,omitempty"`
	Gates map[string]gate `json:"gates,omitempty"`
	// More has the facts that only one component has.
	More any `json:"more,omitempty"`
}

func flagNames(flags *pflag.FlagSet) []string {
	names := []string{}
	flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

func gatesOf(known featuregate.MutableFeatureGate) map[string]gate {
	gates := map[string]gate{}
	for name, spec := range known.GetAll() {
		gates[string(name)] = gateOf(spec)
	}
	return gates
}

func gateOf(spec featuregate.FeatureSpec) gate {
	stage := string(spec.PreRelease)
	if stage == "" {
		stage = "GA"
	}
	return gate{Stage: stage, Default: spec.Default, Locked: spec.LockToDefault}
}

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(componentFacts()); err != nil {
		panic(err)
	}
}
