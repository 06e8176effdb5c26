/** Owns the object that a rollout is recorded in: a ConfigMap with the frozen request and the record of its progress. */
import { z } from 'zod';
import type { Rollout } from '../../engine/model/recorded.ts';
import type { Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Manifest } from './manifest.ts';

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

/** The plan, and the Lease of whoever carries it out. */
export const PLACE = { namespace: 'kube-system', name: 'refit-kubeadm' } as const;

const request = z.object({
  version: z.string(),
  concurrent: z.int().min(1),
  /** In the order in which they move; hosts that had the version already are not among them. */
  leader: z.array(z.string()),
  followers: z.array(z.string()),
  /** Control-plane hosts whose kubelets move once every API server has; where it is empty, each moves with its host. */
  kubelets: z.array(z.string()),
  workers: z.array(z.string()),
});

/** What was asked for, frozen when the rollout begins: a manifest that is edited later does not change it. */
export type Request = z.infer<typeof request>;

export type Recorded = Pick<Rollout, 'phase' | 'blocked' | 'reason' | 'stages'>;

export function newPlan(wanted: Request): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...PLACE, labels: { 'app.kubernetes.io/managed-by': 'refit' } },
    data: { request: JSON.stringify(wanted) },
  };
}

/** Undefined where somebody has put something else there. */
export function requestOf({ data }: ConfigMap): Request | undefined {
  return request.safeParse(jsonIn(data?.['request'])).data;
}

/** Only ever written by `withRecord`; undefined until then, or where it cannot be read. */
export function recordOf({ data }: ConfigMap): Recorded | undefined {
  const value = jsonIn(data?.['rollout']) as Recorded | undefined;
  return Array.isArray(value?.stages) ? value : undefined;
}

export function withRecord(plan: ConfigMap, { phase, blocked, reason, stages }: Rollout): ConfigMap {
  return { ...plan, data: { ...plan.data, rollout: JSON.stringify({ phase, blocked, reason, stages }) } };
}

export interface Progress {
  /** Hosts that have the version in everything. */
  readonly done: ReadonlySet<string>;
  /** The cluster itself is recorded at the version. */
  readonly leaderIsDone: boolean;
  /** An API server is a minor version behind, which no kubelet that may reach it may be ahead of. */
  readonly isMinor: boolean;
}

/** Which hosts move in which stage. The leader runs `kubeadm upgrade apply`. */
export function requestFor(manifest: Manifest, { done, leaderIsDone, isMinor }: Progress): Request {
  const open = (role: string): string[] =>
    manifest.hosts.filter((host) => host.role === role && !done.has(host.name)).map(({ name }) => name);
  const controlPlane = open('controlPlane');
  const leaders = leaderIsDone ? 0 : 1;
  const severalApiServers = manifest.hosts.filter(({ role }) => role === 'controlPlane').length > 1;
  return {
    version: manifest.version,
    concurrent: manifest.concurrent,
    leader: controlPlane.slice(0, leaders),
    followers: controlPlane.slice(leaders),
    kubelets: isMinor && severalApiServers ? controlPlane : [],
    workers: open('worker'),
  };
}

function jsonIn(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
