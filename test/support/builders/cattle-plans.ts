/**
 * Plans of `upgrade.cattle.io` for tests. By default a Plan upgrades one node at a time, selects every node, and has
 * nothing recorded.
 */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { apiVersionOf } from '../../../src/kube/resources.ts';
import { later } from '../clock/times.ts';

export type CattleSpec = NonNullable<CattlePlan['spec']>;

export function buildCattlePlan(name: string, spec: Partial<CattleSpec> = {}): CattlePlan {
  return {
    apiVersion: apiVersionOf(cattlePlans),
    kind: cattlePlans.kind,
    metadata: {
      name,
      namespace: 'system-upgrade',
      uid: `${name}-uid`,
      creationTimestamp: later(0),
    },
    spec: {
      concurrency: 1,
      nodeSelector: {},
      version: 'v1.2.3',
      upgrade: { image: 'img' },
      ...spec,
    },
  };
}
