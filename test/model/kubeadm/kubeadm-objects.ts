/** The objects with which an exploration of `refit kubeadm apply` begins: the ConfigMap of the run, and the Nodes. */
import type { Manifest } from '../../../src/dialects/kubeadm/plan/manifest.ts';
import {
  newPlan,
  type Request,
  readRecord,
  requestFor,
  requestOf,
} from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import { CONTROL_PLANE } from '../../../src/dialects/shared/node-endpoints.ts';
import type { Target } from '../../../src/engine/model/rollout.ts';
import type { ConfigMap, KubeObject } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { parseVersion } from '../../../src/util/version.ts';
import { buildNode, withKubelet } from '../../support/builders/nodes.ts';
import { NOW } from '../cluster.ts';
import type { Qualities } from '../works/configurations.ts';
import type { HostPast } from './kubeadm-state.ts';

/** What a person may do once in a run. */
export type KubeadmMove =
  | 'pause'
  | 'abort'
  | 'cordon'
  /** The process of the command is killed, and the person runs the same command again. */
  | 'restart'
  /** After the end of the run, the person runs the same command again. */
  | 'again'
  /** After the end of the run, the person goes back to the version before it. */
  | 'back';

export interface KubeadmConfiguration {
  readonly name: string;
  /**
   * The hosts in the order of the manifest. A name that begins with `c` is a control-plane host. The upgrade of a `bad`
   * host may fail, either before it changes the host or after that.
   */
  readonly hosts: Qualities;
  readonly concurrent: number;
  /** `minor`: the kubelets of the control plane are upgraded after all API servers. */
  readonly kind: 'patch' | 'minor' | 'way back';
  /** The names of the control-plane hosts whose certificates are renewed. These hosts already run the version. */
  readonly renews: readonly string[];
  /** True if the policy has a hook before the drain of each host. */
  readonly hasHook: boolean;
  readonly moves: readonly KubeadmMove[];
}

export const PLAN = 'configmaps/refit-kubeadm';

const NEW = 'v1.36.2';
const OLDER_PATCH = 'v1.36.1';
const OLDER_MINOR = 'v1.35.4';

export const isController = (name: string): boolean => name.startsWith('c');

export function minorOf(version: string): number {
  return parseVersion(version)?.minor ?? 0;
}

/** Returns the version that a host runs at first. */
export function versionAtFirst({ kind, renews }: KubeadmConfiguration, name: string): string {
  if (kind === 'way back' || renews.includes(name)) return NEW;
  return olderOf(kind);
}

function olderOf(kind: KubeadmConfiguration['kind']): string {
  return kind === 'minor' ? OLDER_MINOR : OLDER_PATCH;
}

/** Returns the version from which a run to this version comes, or to which it returns. */
export function otherVersion({ kind }: KubeadmConfiguration, version: string): string {
  return version === NEW ? olderOf(kind) : NEW;
}

/** Returns the objects at the beginning, by their keys. */
export function objectsOf(
  configuration: KubeadmConfiguration,
  past: readonly HostPast[],
): Map<string, KubeObject> {
  const goesBack = configuration.kind === 'way back';
  const nodes = past.map(({ name, kubelet }): [string, KubeObject] => {
    const labels = isController(name) ? { [CONTROL_PLANE]: '' } : {};
    return [`nodes/${name}`, withKubelet(buildNode(name, { labels }), kubelet)];
  });
  return new Map([[PLAN, planFor(configuration, { past, goesBack, number: 1 })], ...nodes]);
}

interface Run {
  readonly past: readonly HostPast[];
  readonly goesBack: boolean;
  /** The number of the run, counted from 1. */
  readonly number: number;
  /** The hosts whose certificates an earlier run should have renewed. */
  readonly unrenewed?: readonly string[];
}

/** Returns the plan with which the command replaces the last plan. */
function planFor(
  configuration: KubeadmConfiguration,
  { past, goesBack, number, unrenewed = [] }: Run,
): ConfigMap {
  const version = goesBack ? otherVersion(configuration, NEW) : NEW;
  const done = new Set(
    past
      .filter(({ kubeadm, kubelet }) => kubeadm === version && kubelet === version)
      .map(({ name }) => name),
  );
  const hosts = past.map(({ name }) => ({
    name,
    role: isController(name) ? 'controlPlane' : 'worker',
  }));
  const manifest = { version, concurrent: configuration.concurrent, hosts } as Manifest;
  const controllers = past.filter(({ name }) => isController(name));
  const toRenew = controllers
    .filter(({ name, needsRenewal }) => needsRenewal || unrenewed.includes(name))
    .map(({ name }) => name);
  const request: Request = {
    ...requestFor(manifest, {
      done,
      leaderIsDone: controllers.slice(0, 1).every(({ name }) => done.has(name)),
      isMinor: controllers.some(({ kubeadm }) => minorOf(kubeadm) !== minorOf(version)),
      toRenew: new Set(goesBack ? [] : toRenew),
    }),
    ...(goesBack && { back: true }),
  };
  return newPlan(request, '', { uid: `run-${number}`, created: rfc3339(NOW) });
}

/** Returns the plan of the next run; undefined if there is nothing to do. */
export function nextPlan(
  configuration: KubeadmConfiguration,
  last: ConfigMap,
  run: Pick<Run, 'past' | 'goesBack'>,
): ConfigMap | undefined {
  const number = Number(runOf(last).replace('run-', '')) + 1;
  const unrenewed = targetsIn(last)
    .filter(({ key, state }) => key.startsWith('certificates/') && state !== 'done')
    .map(({ name }) => name);
  const plan = planFor(configuration, { ...run, number, unrenewed });
  const { certificates = [], leader = [], followers = [], workers = [] } = requestOf(plan) ?? {};
  const isEmpty = certificates.length + leader.length + followers.length + workers.length === 0;
  return isEmpty ? undefined : plan;
}

/** Returns the uid of the run. */
export function runOf(plan: ConfigMap): string {
  return plan.data?.['uid'] ?? '';
}

/** Returns the recorded targets of the run; empty before the first record. */
export function targetsIn(plan: ConfigMap): readonly Target[] {
  return readRecord(plan).recorded?.stages.flatMap(({ targets }) => targets) ?? [];
}

export function phaseOf(plan: ConfigMap): string {
  return readRecord(plan).recorded?.phase ?? 'new';
}

/** Returns true once the run has ended, so that the command runs no more. */
export function hasEnded(plan: ConfigMap): boolean {
  return !['new', 'running'].includes(phaseOf(plan));
}
