/** The record of a rollout: plain data, with how to read and replace its parts. A new leader decides from it and from what it observes. */
import { type Owner, readOwner, writeOwner } from '../../drain/cordon-marks.ts';
import {
  apiVersionOf,
  type KubeObject,
  type OwnerReference,
  type Resource,
} from '../../kube/resources.ts';
import { defined } from '../../util/json.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Reason } from './reasons.ts';

export type Role = 'controller' | 'worker';

/** What is downloaded so that a target can move: one for each platform. */
export interface Payload {
  readonly url: string;
  /** Lower-case hex; without it the download is not verified. */
  readonly sha256?: string;
}

/** Details beyond this are read from the node when needed. */
export const RECORDED_STATES = [
  'pending',
  'intended',
  'done',
  'failed',
  'missing',
  'unsupported',
] as const;
export type RecordedState = (typeof RECORDED_STATES)[number];

export interface Target {
  readonly key: string;
  readonly name: string;
  readonly state: RecordedState;
  /** RFC 3339: when the state was recorded. Of an `intended` target it also names the attempt. */
  readonly since: string;
}

/** Targets that may move together. Stages run one after the other. */
export interface Stage {
  readonly id: string;
  /** Index of the command in the plan that this stage belongs to. */
  readonly command: number;
  readonly role: Role;
  /** How many targets may move at once; of controllers never more than one. */
  readonly maxInFlight: number;
  /** The version of each target when it is done, as the plan writes it. */
  readonly version: string;
  /** By platform, `<os>-<architecture>`; absent if targets need no download. */
  readonly payloads?: Readonly<Record<string, Payload>>;
  /** The selector of its targets, for people; absent if the plan lists them. */
  readonly selection?: string | undefined;
  /** What to do with the payload; only the dialect reads it. */
  readonly procedure?: string;
  readonly keepsVersion?: boolean;
  /** Upgrades a target even if it has the version already. */
  readonly forced: boolean;
  /** A failed target keeps its slot and the others continue; the stage is over once all are done. */
  readonly failedHoldSlots?: boolean;
  /** Milliseconds that a target keeps its slot after its success. */
  readonly restMs?: number;
  readonly targets: readonly Target[];
}

/**
 * new: nothing is recorded yet · running · done · failed: a target failed · incomplete: a target is missing or its
 * platform is · invalid: the plan cannot be carried out as written.
 */
export const ROLLOUT_PHASES = [
  'new',
  'running',
  'done',
  'failed',
  'incomplete',
  'invalid',
] as const;
export type RolloutPhase = (typeof ROLLOUT_PHASES)[number];

export interface Source
  extends Readonly<Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'>> {
  readonly namespace?: string;
  readonly created: string;
  /** What its cordons name instead of uid, kind and the time of the target. */
  readonly mark?: Owner;
}

/** One run of one plan. Only states change after it is made. */
export interface Rollout {
  readonly source: Source;
  /** The plan's name for this run: with the source's uid it names every signal. */
  readonly id: string;
  /** Where the plan had an earlier run: signals of other runs are not of this one. */
  readonly run?: number | undefined;
  /** `metadata.generation` of the newest spec that it was carried out with, if the record says it. */
  readonly generation?: number | undefined;
  readonly phase: RolloutPhase;
  /** True while a slot is free, targets are pending, and a gate lets none of them start. */
  readonly blocked: boolean;
  readonly reason?: Reason | undefined;
  readonly stages: readonly Stage[];
  /** What is wrong with the plan now: nothing starts until it is corrected. */
  readonly problems: readonly Reason[];
  /** How the plan differs from the record of a rollout that is over, as a clause; undefined if nothing shows that. */
  readonly edit?: string | undefined;
  /** Why part of the record cannot be read: nothing is done until it can. */
  readonly unread?: Reason | undefined;
}

export function inState(
  { targets }: Pick<Stage, 'targets'>,
  state: RecordedState,
): readonly Target[] {
  return byState(targets).get(state) ?? [];
}

/** Computed once for each list: every decision asks many times. */
const byState = onceForEach((targets: readonly Target[]) =>
  Map.groupBy(targets, ({ state }) => state),
);

export function targetIn({ targets }: Stage, key: string): Target | undefined {
  return targets[placesOf(targets).get(key) ?? -1];
}

const placesOf = onceForEach(
  (targets: readonly Target[]) => new Map(targets.map(({ key }, place) => [key, place])),
);

export function hasStarted({ stages }: Rollout): boolean {
  return stages.some((stage) => inState(stage, 'pending').length < stage.targets.length);
}

export function isFinal(rollout: Pick<Rollout, 'phase'>): boolean {
  return rollout.phase !== 'new' && rollout.phase !== 'running';
}

export function sourceOf<P extends KubeObject>(resource: Resource<P>, { metadata }: P): Source {
  const { name, namespace, uid = '', creationTimestamp: created = '' } = metadata;
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    ...defined({ namespace }),
    uid,
    created,
  };
}

/** Milliseconds: recorded times have no fractions of a second. */
export const SECOND = 1000;

export function isSettled({ state }: Target): boolean {
  return state !== 'pending' && state !== 'intended';
}

/** The first stage that is not over: only there anything moves. */
export function activeStage({ stages }: Rollout): Stage | undefined {
  return stages.find((stage) =>
    stage.failedHoldSlots === true
      ? inState(stage, 'done').length < stage.targets.length
      : inState(stage, 'pending').length + inState(stage, 'intended').length > 0,
  );
}

export function stagesBefore({ stages }: Pick<Rollout, 'stages'>, { id }: Stage): readonly Stage[] {
  const own = stages.findIndex((stage) => stage.id === id);
  return stages.slice(0, Math.max(0, own));
}

export function targetsIn(
  { stages }: Pick<Rollout, 'stages'>,
  ...states: readonly RecordedState[]
): Target[] {
  return states.flatMap((state) => stages.flatMap((stage) => inState(stage, state)));
}

/** Every target with its stage. Computed once per rollout: each decision needs it. */
export const withStages = onceForEach(({ stages }: Pick<Rollout, 'stages'>) =>
  stages.flatMap((stage) => stage.targets.map((target) => ({ stage, target }))),
);

/** The targets of `after` whose recorded state is new, each with what was recorded before. */
export function stateChanges(before: Rollout, after: Rollout) {
  const known = new Map(withStages(before).map(({ target }) => [target.key, target]));
  return withStages(after)
    .map(({ stage, target }) => ({ stage, target, before: known.get(target.key) }))
    .filter((change) => change.before?.state !== change.target.state);
}

/** Replaces targets by key; returns the same object if there are none. */
export function withTargets(rollout: Rollout, targets: readonly Target[]): Rollout {
  if (targets.length === 0) return rollout;
  const byKey = new Map(targets.map((target) => [target.key, target]));
  const replace = (stage: Stage): Stage =>
    stage.targets.some(({ key }) => byKey.has(key))
      ? { ...stage, targets: stage.targets.map((target) => byKey.get(target.key) ?? target) }
      : stage;
  return { ...rollout, stages: rollout.stages.map(replace) };
}

export function ownerOf(
  { source: { uid: plan, kind, mark } }: { readonly source: Pick<Source, 'uid' | 'kind' | 'mark'> },
  { since }: Pick<Target, 'since'>,
): string {
  return writeOwner(mark ?? { plan, kind, attempt: since });
}

/** A node that cordons itself knows the rollout's id, not the plan's uid. */
export function isOwnedBy(
  { source, id }: Pick<Rollout, 'source' | 'id'>,
  owner: string | undefined,
): boolean {
  const plan = owner === undefined ? undefined : readOwner(owner)?.plan;
  return plan !== undefined && (plan === (source.mark?.plan ?? source.uid) || plan === id);
}

/** The owner of a soft taint, which is for the whole rollout. */
export function pendingOwnerOf({ uid, kind }: Pick<Source, 'uid' | 'kind'>): string {
  return `${kind}.${uid}`;
}
