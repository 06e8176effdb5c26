/** Pods and their PodDisruptionBudgets, for tests of drains. */
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
  /** The controller as `Kind/name`; null for a pod without a controller. */
  readonly controller?: string | null;
  readonly emptyDir?: boolean;
  readonly priority?: number;
  readonly phase?: string;
  readonly ready?: boolean;
  readonly metadata?: Partial<ObjectMeta>;
}

/** Returns a pod. By default it is Running and Ready on node `n1`, and belongs to the ReplicaSet `rs`. */
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

/**
 * Returns a budget for the pods with the label `app=<name>`. By default its status says that the controller has
 * observed the current spec.
 */
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
