/** Defines the ConfigMap of a rollout. It contains the request, which never changes, and the record of the progress. */
import { z } from 'zod';
import {
  RECORDED_STATES,
  ROLLOUT_PHASES,
  type Rollout,
  type Source,
  sourceOf,
} from '../../../engine/model/rollout.ts';
import { toRecord } from '../../../engine/reasons/recorded.ts';
import { type ConfigMap, configMaps } from '../../../kube/resources.ts';
import { describeIssues } from '../../../util/describe-issue.ts';
import { defined, parseJson } from '../../../util/json.ts';
import { controlPlaneOf, type Manifest } from './manifest.ts';

/** The namespace and the name of both the ConfigMap and the Lease. */
export const PLACE = { namespace: 'kube-system', name: 'refit-kubeadm' } as const;

/** The id of the stage with the hosts that get new certificates. */
export const RENEWAL = 'certificates';

const request = z.object({
  version: z.string(),
  concurrent: z.int().min(1),
  /** The control-plane hosts that are not upgraded, but whose certificates end soon and are renewed. */
  certificates: z.array(z.string()).default([]),
  /**
   * The first control-plane host, which runs `kubeadm upgrade apply`. This list, like the other lists, does not contain
   * hosts that already had the version.
   */
  leader: z.array(z.string()),
  followers: z.array(z.string()),
  /**
   * The control-plane hosts whose kubelets are upgraded after all API servers. If the list is empty, each kubelet is upgraded
   * together with its host.
   */
  kubelets: z.array(z.string()),
  workers: z.array(z.string()),
  /**
   * True if the rollout goes back to an older patch version. In that case the workers go back first, and then the
   * control plane.
   */
  back: z.literal(true).exactOptional(),
});

/**
 * What a rollout must do, and on which hosts. The request is fixed at the start of the rollout; a later edit of the
 * manifest does not change it.
 */
export type Request = z.infer<typeof request>;

export type Recorded = Pick<Rollout, 'phase' | 'blocked' | 'reason' | 'stages'>;

const before = z.object({
  /** The version that the upgrade brings. */
  to: z.string(),
  /** The hosts by name, each with the uid of its Node and the version that it ran before the upgrade. */
  hosts: z.record(z.string(), z.object({ uid: z.string().exactOptional(), version: z.string() })),
});

/** The versions that hosts ran before an upgrade. A run that repeats or undoes the upgrade keeps this record. */
export type Before = z.infer<typeof before>;

/** Returns the versions that hosts ran before the last upgrade; undefined if no run has recorded them. */
export function beforeOf(plan: ConfigMap | undefined): Before | undefined {
  return before.safeParse(parseJson(plan?.data?.['before'])).data;
}

/** Returns the plan that replaces the previous one. `run` is the uid by which hosts distinguish rollouts. */
export function newPlan(
  wanted: Request,
  start: string,
  run?: Pick<Source, 'uid' | 'created'>,
  ran?: Before,
): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...PLACE, labels: { 'app.kubernetes.io/managed-by': 'refit' } },
    data: {
      request: JSON.stringify(wanted),
      start,
      ...run,
      ...(ran === undefined ? {} : { before: JSON.stringify(ran) }),
    },
  };
}

/**
 * Returns the uid and the creation time of the run. An object of an earlier release had only one run. For such an
 * object, the function returns the uid and the creation time of the object.
 */
export function sourceOfPlan(plan: ConfigMap): Source {
  return {
    ...sourceOf(configMaps, plan),
    ...defined({ uid: plan.data?.['uid'], created: plan.data?.['created'] }),
  };
}

export function requestOf({ data }: ConfigMap): Request | undefined {
  return request.safeParse(parseJson(data?.['request'])).data;
}

const target = z.looseObject({
  key: z.string(),
  name: z.string(),
  state: z.enum(RECORDED_STATES),
  since: z.string(),
});
const stage = z.looseObject({
  id: z.string(),
  role: z.enum(['controller', 'worker']),
  targets: z.array(target),
});
const record = z.looseObject({
  phase: z.enum(ROLLOUT_PHASES),
  reason: z.looseObject({ code: z.string(), message: z.string() }).exactOptional(),
  stages: z.array(stage),
});

/**
 * Returns the recorded progress as `recorded`, which is absent before the first `withRecord`. If somebody has edited
 * the record so that it cannot be read, `unread` is a message for that person.
 */
export function readRecord({ data }: ConfigMap): {
  readonly recorded?: Recorded;
  readonly unread?: string;
} {
  const text = data?.['rollout'];
  const { error } = record.safeParse(parseJson(text) ?? text, { reportInput: true });
  if (text === undefined || !error) return { recorded: parseJson(text) as Recorded };
  const cure = 'correct it, or delete the ConfigMap, then run `refit kubeadm apply` again';
  const found = `data.rollout: ${describeIssues(error, 'it')}`;
  return { unread: `ConfigMap ${PLACE.namespace}/${PLACE.name}: ${found}; ${cure}` };
}

export function openRequest(plan: ConfigMap | undefined): Request | undefined {
  return plan && ['new', 'running'].includes(readRecord(plan).recorded?.phase ?? 'new')
    ? requestOf(plan)
    : undefined;
}

export function withRecord(
  plan: ConfigMap,
  { phase, blocked, reason, stages }: Rollout,
): ConfigMap {
  const recorded: Recorded = { phase, blocked, reason: reason && toRecord(reason), stages };
  return { ...plan, data: { ...plan.data, rollout: JSON.stringify(recorded) } };
}

export interface Progress {
  readonly done: ReadonlySet<string>;
  readonly leaderIsDone: boolean;
  /**
   * True if an API server has an earlier minor version than the target. The kubelets of the control plane must then wait for all API
   * servers, because no kubelet may be newer than an API server that it can reach.
   */
  readonly isMinor: boolean;
  readonly toRenew?: ReadonlySet<string>;
}

/** Assigns hosts to stages. The leader runs `kubeadm upgrade apply`. */
export function requestFor(
  manifest: Manifest,
  { done, leaderIsDone, isMinor, toRenew }: Progress,
): Request {
  const open = (role: string): string[] =>
    manifest.hosts
      .filter((host) => host.role === role && !done.has(host.name))
      .map(({ name }) => name);
  const controlPlane = open('controlPlane');
  const leaders = leaderIsDone ? 0 : 1;
  const all = controlPlaneOf(manifest).map(({ name }) => name);
  return {
    version: manifest.version,
    concurrent: manifest.concurrent,
    certificates: all.filter((name) => toRenew?.has(name) && !controlPlane.includes(name)),
    leader: controlPlane.slice(0, leaders),
    followers: controlPlane.slice(leaders),
    kubelets: isMinor && all.length > 1 ? controlPlane : [],
    workers: open('worker'),
  };
}
