/** The objects with which an exploration of Rancher's Plans begins: one Plan, and the Nodes that it selects. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import type { KubeObject } from '../../../src/kube/resources.ts';
import { buildCattlePlan, type CattleSpec } from '../../support/builders/cattle-plans.ts';
import { buildNode, withKubelet } from '../../support/builders/nodes.ts';
import { HOUR } from '../../support/clock/times.ts';
import { NOW } from '../cluster.ts';

/** What a person, or another program, may do once in a run. */
export type CattleMove =
  | 'edit'
  | 'editBack'
  | 'pause'
  | 'abort'
  | 'cordon'
  | 'retry'
  /** The process of the leader ends, and with it the process forgets its drains. */
  | 'restart';

export interface CattleConfiguration {
  readonly name: string;
  /** For each node, `bad` if each Job on it fails. */
  readonly nodes: Readonly<Record<string, 'good' | 'bad'>>;
  readonly concurrency: number;
  /** Who cordons and drains the nodes. */
  readonly drains: 'nobody' | 'the leader' | 'the Job';
  /** True if the image installs K3s, so that the kubelet must report the version. */
  readonly installsK3s: boolean;
  /** True if the policy has a hook before the drain of each node. */
  readonly hasHook: boolean;
  readonly moves: readonly CattleMove[];
}

/**
 * The moments of the clock. Between them, Kubernetes deletes the Jobs that ended at the first moment, because an hour is
 * longer than their `ttlSecondsAfterFinished`.
 */
export const TIMES: readonly number[] = [NOW, NOW + HOUR];

export const NAMESPACE = 'system-upgrade';

const OLD_KUBELET = 'v1.33.1+k3s1';

/** Returns the version of the Plan at first, or the other version that a person may write into it. */
function versionOf({ installsK3s }: CattleConfiguration, which: 'first' | 'other'): string {
  const patch = which === 'first' ? 3 : 4;
  return installsK3s ? `v1.33.${patch}+k3s1` : `v1.2.${patch}`;
}

/** Returns the objects at the beginning, by their keys. */
export function objectsOf(configuration: CattleConfiguration): Map<string, KubeObject> {
  const { nodes, installsK3s } = configuration;
  const built = Object.keys(nodes).map((name): [string, KubeObject] => {
    const node = buildNode(name, { labels: { 'kubernetes.io/hostname': name } });
    return [`nodes/${name}`, installsK3s ? withKubelet(node, OLD_KUBELET) : node];
  });
  return new Map([['plans/plan', planOf(configuration)], ...built]);
}

function planOf(configuration: CattleConfiguration): CattlePlan {
  const { concurrency, drains, installsK3s } = configuration;
  const spec: Partial<CattleSpec> = {
    concurrency,
    version: versionOf(configuration, 'first'),
    ...(drains !== 'nobody' && { drain: {} }),
    ...(installsK3s && { upgrade: { image: 'rancher/k3s-upgrade' } }),
  };
  const plan = buildCattlePlan('plan', spec);
  return { ...plan, metadata: { ...plan.metadata, generation: 1 } };
}

/** Returns the Plan after a person has written its other version. */
export function withOtherVersion(plan: CattlePlan, configuration: CattleConfiguration): CattlePlan {
  const { metadata, spec } = plan;
  if (!spec) throw new RangeError('the Plan has no spec');
  const first = versionOf(configuration, 'first');
  const version = spec.version === first ? versionOf(configuration, 'other') : first;
  const generation = (metadata.generation ?? 0) + 1;
  return { ...plan, metadata: { ...metadata, generation }, spec: { ...spec, version } };
}
