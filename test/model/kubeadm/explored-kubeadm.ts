/** Tests that no invariant of a run of kubeadm is violated, and that docs/internals/safety.md has the same counts. */
import { testWorlds } from '../explored-worlds.ts';
import { kubeadmRow } from './configurations.ts';
import type { KubeadmConfiguration } from './kubeadm-objects.ts';
import { KubeadmWorld } from './kubeadm-world.ts';

export function testKubeadmConfigurations(configurations: readonly KubeadmConfiguration[]): void {
  testWorlds(configurations, (configuration) => new KubeadmWorld(configuration), kubeadmRow);
}
