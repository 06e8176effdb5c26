/** The container runtime of the machines. */
import type { Recipe } from '../../../tools/controlplane/components.ts';

/** The versions of containerd. The machines begin with `from`. */
export const CONTAINERD = { from: 'v2.3.3', to: 'v2.3.4' } as const;

export const RUNTIME = ['containerd', 'containerd-shim-runc-v2', 'ctr'] as const;

/** Builds a program of containerd from the manifest `module`, which requires this version. */
export const containerdRecipe = (name: string, module: string, version: string): Recipe => ({
  module,
  package: `github.com/containerd/containerd/v2/cmd/${name}`,
  version,
  flags: ['-ldflags', `-s -w -X github.com/containerd/containerd/v2/version.Version=${version}`],
});
