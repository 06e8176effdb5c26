/** Pods and the budgets over them, for tests of drains. */
import type {
  ObjectMeta,
  OwnerReference,
  Pod,
  PodDisruptionBudget,
} from '../../../src/kube/resources.ts';

export interface PodTraits {
  readonly namespace?: string;
  readonly uid?: string;
  readonly node?: string;
  readonly labels?: Record<string, string>;
  /** `Kind/name`; none for a bare pod. */
  readonly controller?: string | null;
  readonly emptyDir?: boolean;
  readonly priority?: number;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly metadata?: Partial<ObjectMeta>;
}

/** Running and Ready on node `n1`, one of ReplicaSet `rs`, unless said otherwise. */
export function buildPod(name: string, traits: PodTraits = {}): Pod {
  const {
    namespace = 'default',
    node = 'n1',
    phase = 'Running',
    ready = phase === 'Running',
  } = traits;
  const owner = ownerOf(traits.controller === undefined ? 'ReplicaSet/rs' : traits.controller);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      uid: traits.uid ?? `${name}-uid`,
      ...(traits.labels ? { labels: traits.labels } : {}),
      ...(owner ? { ownerReferences: [owner] } : {}),
      ...traits.metadata,
    },
    spec: {
      nodeName: node,
      ...(traits.priority === undefined ? {} : { priority: traits.priority }),
      ...(traits.emptyDir ? { volumes: [{ name: 'scratch', emptyDir: {} }] } : {}),
    },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
}

function ownerOf(controller: string | null): OwnerReference | undefined {
  if (controller === null) return undefined;
  const [kind = '', name = ''] = controller.split('/');
  const apiVersion = kind === 'Job' ? 'batch/v1' : 'apps/v1';
  return { apiVersion, kind, name, uid: `${name}-uid`, controller: true };
}

/** Over the pods labelled `app=<name>`, seen by its controller unless `status` says otherwise. */
export function buildBudget(
  name: string,
  spec: NonNullable<PodDisruptionBudget['spec']>,
  status: NonNullable<PodDisruptionBudget['status']> = {},
): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default', generation: 1 },
    spec: { selector: { matchLabels: { app: name } }, ...spec },
    status: { observedGeneration: 1, ...status },
  };
}
