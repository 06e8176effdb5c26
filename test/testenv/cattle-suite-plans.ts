/** Creates Plans for the tests that re-create the original's own tests. */
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { planOf } from './cattle-rig.ts';
import { apply as applyManifest } from './control-plane.ts';

export async function apply(
  name: string,
  spec: Partial<CattleSpec>,
  labels: Record<string, string> = {},
): Promise<void> {
  await applyManifest(JSON.stringify(planOf(name, spec, labels)));
}

export const only = (name: string): Partial<CattleSpec> => ({
  version: 'v1',
  nodeSelector: { matchLabels: { 'kubernetes.io/hostname': name } },
});
