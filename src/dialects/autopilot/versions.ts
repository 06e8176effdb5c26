/** Owns the versions that ControlNodes and Nodes tell, in the form in which the engine's version rules ask for them. */
import type { World } from '../../engine/dialect.ts';
import type { Stage } from '../../engine/model.ts';
import type { ApiServerVersion, VersionStage } from '../../engine/policy/version-rules.ts';
import { nodes } from '../../kube/resources.ts';
import { controlNodes, MODE_ANNOTATION } from '../../signal/names.ts';

/** A stage of a `k0supdate`, with what its targets run now. A kubelet tells `v1.36.3+k0s` where its file is `v1.36.3+k0s.2`. */
export function versionStage({ role, version, forced, targets }: Stage, world: World): VersionStage {
  const versionOf = (name: string): string | undefined =>
    role === 'controller'
      ? world.get(controlNodes, name)?.status?.k0sVersion
      : world.get(nodes, name)?.status?.nodeInfo?.kubeletVersion;
  const hasKubelet = (name: string): boolean =>
    role === 'worker' || world.get(controlNodes, name)?.metadata.annotations?.[MODE_ANNOTATION] === 'controller+worker';
  return {
    role,
    version,
    forced,
    targets: targets.map(({ name }) => ({ name, current: versionOf(name), hasKubelet: hasKubelet(name) })),
  };
}

/** Of every controller of the cluster: in k0s each one runs an API server of its own version. */
export function apiServerVersions(world: World): ApiServerVersion[] {
  return world.list(controlNodes).map(({ metadata, status }) => ({
    name: metadata.name,
    version: status?.k0sVersion,
  }));
}
