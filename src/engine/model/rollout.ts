/**
 * The record of a rollout, which is plain data, and functions that read and replace its parts. A new leader decides from this record
 * and from what it observes.
 */
import { type Owner, readOwner, writeOwner } from '../../drain/cordon-marks.ts';
import {
  apiVersionOf,
  type KubeObject,
  type OwnerReference,
  type Resource,
} from '../../kube/resources.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Reason, RolloutReason } from './reasons.ts';

export type Role = 'controller' | 'worker';
/** What people call a target of a stage; `node` if its plan has no roles. */
export type ShownRole = Role | 'node';

/** A file that a target downloads for its upgrade. Each platform has its own file. */
export interface Payload {
  readonly url: string;
  /** The checksum in lower-case hex. If it is undefined, the download is not verified. */
  readonly sha256?: string;
}

/** A container image that a plan names. */
export interface PlanImage {
  /** The field of the plan that names the image, such as `spec.upgrade.image`. */
  readonly field: string;
  /** The name of the image, as it is written in that field. */
  readonly image: string;
}

/**
 * The states of a target that are recorded. All other details are read from the node when they are needed. skipped: the
 * rollout continued without the target. The target keeps its version and does not count as a failure.
 */
export const RECORDED_STATES = [
  'pending',
  'intended',
  'done',
  'failed',
  'missing',
  'unsupported',
  'skipped',
] as const;
export type RecordedState = (typeof RECORDED_STATES)[number];

export interface Target {
  readonly key: string;
  readonly name: string;
  readonly state: RecordedState;
  /** The time at which the state was recorded, in RFC 3339. For an `intended` target it also names the attempt. */
  readonly since: string;
  /**
   * True for an `intended` target if no record says when its attempt began. Its `since` is then the earliest possible
   * time. The leader records an attempt before it does anything else for the target.
   */
  readonly lacksAttempt?: true;
  /** The reason why the target failed, if the record says it. No message contains the name of the target. */
  readonly failure?: Reason;
}

/**
 * The time of a turn, in milliseconds, as dialects get it. The type is wider than `number`, so that a dialect cannot
 * format it as the `since` of a target: the time of a turn differs in each turn, and an identity must not. Only
 * `newTarget` does this, for targets that are not recorded yet.
 */
export type TurnTime = Pick<number, 'valueOf'>;

/** Returns a target that is not recorded yet. The leader records it with the time of the turn. */
export function newTarget({ key, name }: Pick<Target, 'key' | 'name'>, now: TurnTime): Target {
  return { key, name, state: 'pending', since: rfc3339(now.valueOf()) };
}

/** What a rollout does to a target, as a word for people. */
export type RolloutWork = 'upgrade' | 'roll-back';

/**
 * Returns what the rollout does to the targets of the stage. A dialect marks either the whole
 * rollout or each stage that takes its targets back to an older version.
 */
export function workOf(
  { rollsBack }: Pick<Rollout, 'rollsBack'>,
  { goesBack }: Pick<Stage, 'goesBack'>,
): RolloutWork {
  return rollsBack !== undefined || goesBack === true ? 'roll-back' : 'upgrade';
}

/** Targets that are done and that were deleted since. They keep their places in the waves. */
export interface GoneTargets {
  readonly count: number;
  /** When the last of them was done, in milliseconds since the Unix epoch. */
  readonly lastEnd: number;
}

/** A group of targets that may be upgraded at the same time. Stages run one after another. */
export interface Stage {
  readonly id: string;
  /** The index of the command in the plan to which this stage belongs. */
  readonly command: number;
  readonly role: Role;
  /**
   * True if the plan does not tell controllers from workers. Its targets then start by the rules for workers, and people
   * and hooks read that they are nodes.
   */
  readonly lacksRoles?: true;
  /**
   * The maximum number of targets that may be upgraded at the same time. For controllers, this number is ignored, and
   * the maximum is always one.
   */
  readonly maxInFlight: number;
  /** The version that each target has when it is done, in the spelling of the plan. */
  readonly version: string;
  /**
   * The Kubernetes version that kubelets report when the stage is done, if it is spelled differently from `version` or
   * is another version. The version skew rules apply to it.
   */
  readonly kubernetesVersion?: string;
  /** The downloads by platform, `<os>-<architecture>`; undefined if the targets need no download. */
  readonly payloads?: Readonly<Record<string, Payload>>;
  /** The container images that the plan runs on each target; undefined if it names none. */
  readonly images?: readonly PlanImage[];
  /** The selector of the targets, in words for people; undefined if the plan lists its targets. */
  readonly selection?: string | undefined;
  /** What the target must do with the payload. Only the dialect reads it. */
  readonly procedure?: string;
  readonly keepsVersion?: boolean;
  /**
   * True if the version of the stage is older than the version that the targets run. Then workers are changed before
   * controllers.
   */
  readonly goesBack?: boolean;
  /**
   * True if targets with the label of control-plane Nodes or of etcd start first and one at a time, also without a
   * policy that orders the targets.
   */
  readonly controlPlaneFirst?: boolean;
  /**
   * Present if the API servers are asked before and after each target with the label of control-plane Nodes or of etcd,
   * although the stage has no controllers. `escape` is a clause that says how people switch this off.
   */
  readonly serverChecks?: { readonly escape: string };
  /**
   * Present if another controller chooses which target comes next. The targets are then listed in the order in which it
   * chose them, and after them those that it has not chosen yet; no order of the policy applies. `by` names that
   * controller. `advice` is a clause that says what to do if waves should select some of the targets. `gone` are the
   * targets that were done and are deleted.
   */
  readonly chosenElsewhere?: {
    readonly by: string;
    readonly advice: string;
    readonly gone?: GoneTargets | undefined;
  };
  /** True if a target is upgraded even if it already has the version. */
  readonly forced: boolean;
  /**
   * True if a failed target keeps its slot while other targets continue. The stage is then over once all targets are
   * done.
   */
  readonly failedHoldSlots?: boolean;
  /** Milliseconds that a target keeps its slot after its success. */
  readonly restMs?: number;
  readonly targets: readonly Target[];
}

/** Returns what people call a target of the stage. */
export function shownRole({ role, lacksRoles }: Pick<Stage, 'role' | 'lacksRoles'>): ShownRole {
  return lacksRoles === true ? 'node' : role;
}

/**
 * The phases of a rollout that are recorded. new: nothing is recorded yet · running · done · failed: a target failed · incomplete: a
 * target does not exist, or the plan lacks its platform · invalid: the plan cannot be carried out as written.
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
  /** True if the spec of the plan has changed since the plan was created. */
  readonly isEdited?: true;
  /**
   * The owner that the cordons of this rollout name. If it is undefined, the cordons name the uid and kind of the plan,
   * and the time of the target.
   */
  readonly mark?: Owner;
}

/** One run of one plan. Each later record of the run changes only the states in the rollout. */
export interface Rollout {
  readonly source: Source;
  /**
   * The name that the plan gives to this run. This id and the uid of the source together identify every signal of the
   * run.
   */
  readonly id: string;
  /** The id that the plan has now, if people have edited it since the run was admitted. Only a later run gets this id. */
  readonly editedId?: string | undefined;
  /** The number of this run; undefined for the first run of a plan. Signals of other runs do not belong to this run. */
  readonly run?: number | undefined;
  /**
   * `metadata.generation` of the newest spec with which the rollout was carried out; undefined if the record does not
   * contain it.
   */
  readonly generation?: number | undefined;
  /** True while the rollout is carried out with the spec in its record, even if people have edited the plan since. */
  readonly ignoresEdits?: true | undefined;
  /**
   * The run of an earlier plan that this plan rolls back, according to its annotation, as `<uid of the plan>/<id of the
   * run>`. Only a record proves that this is true.
   */
  readonly rollsBack?: string | undefined;
  /** The text in which the plan says who rolls that run back, and why. The text is only for people. */
  readonly rollsBackReason?: string | undefined;
  readonly phase: RolloutPhase;
  /** True while a slot is free and targets are pending, but a gate lets none of them start. */
  readonly blocked: boolean;
  readonly reason?: RolloutReason | undefined;
  readonly stages: readonly Stage[];
  /** The problems of the plan now; empty if it has no problem. No target starts until the plan is corrected. */
  readonly problems: readonly Reason[];
  /**
   * The difference between the plan and the record of an ended rollout, as a clause; undefined if no difference is
   * known.
   */
  readonly edit?: string | undefined;
  /**
   * The reason why a part of the record cannot be read, or must not be believed; undefined if there is none. As long as
   * there is one, the leader does nothing for the plan.
   */
  readonly unread?: Reason | undefined;
}

/** Returns the stage with the version to which the version skew rules apply. */
export function withKubernetesVersion(stage: Stage): Stage {
  const { kubernetesVersion: version } = stage;
  return version === undefined ? stage : { ...stage, version };
}

/** Returns the targets of the stage with this recorded state, in the order of the stage. */
export function inState(
  { targets }: Pick<Stage, 'targets'>,
  state: RecordedState,
): readonly Target[] {
  return byState(targets).get(state) ?? [];
}

/** The targets are grouped once for each list, because every decision asks for them many times. */
const byState = onceForEach((targets: readonly Target[]) =>
  Map.groupBy(targets, ({ state }) => state),
);

/** Returns the target of the stage with this key; undefined if the stage has none. */
export function targetIn({ targets }: Stage, key: string): Target | undefined {
  return targets[placesOf(targets).get(key) ?? -1];
}

const placesOf = onceForEach(
  (targets: readonly Target[]) => new Map(targets.map(({ key }, place) => [key, place])),
);

/** Returns true if the recorded state of any target is not `pending`. */
export function hasStarted({ stages }: Rollout): boolean {
  return stages.some((stage) => inState(stage, 'pending').length < stage.targets.length);
}

/** Returns true if the rollout is over. */
export function isFinal(rollout: Pick<Rollout, 'phase'>): boolean {
  return rollout.phase !== 'new' && rollout.phase !== 'running';
}

/** Returns the identity of a plan in the form that a rollout stores. */
export function sourceOf<P extends KubeObject>(resource: Resource<P>, { metadata }: P): Source {
  const { name, namespace, uid = '', creationTimestamp: created = '', generation = 1 } = metadata;
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    ...defined({ namespace }),
    uid,
    created,
    ...(generation > 1 && { isEdited: true as const }),
  };
}

/** One second in milliseconds. Recorded times have no fractions of a second. */
export const SECOND = 1000;

/** Returns true if the end of the target is recorded, whether it succeeded or not. */
export function isSettled({ state }: Target): boolean {
  return state !== 'pending' && state !== 'intended';
}

/**
 * Returns the first stage that is not over; undefined if all stages are over. Only the targets of this stage are
 * upgraded.
 */
export function activeStage({ stages }: Rollout): Stage | undefined {
  return stages.find((stage) =>
    stage.failedHoldSlots === true
      ? inState(stage, 'done').length < stage.targets.length
      : inState(stage, 'pending').length + inState(stage, 'intended').length > 0,
  );
}

/** Returns the stages that run before this one; empty if the stage is not in the rollout. */
export function stagesBefore({ stages }: Pick<Rollout, 'stages'>, { id }: Stage): readonly Stage[] {
  const own = stages.findIndex((stage) => stage.id === id);
  return stages.slice(0, Math.max(0, own));
}

/** Returns the stages after this one, in order. */
export function stagesAfter({ stages }: Pick<Rollout, 'stages'>, { id }: Stage): readonly Stage[] {
  return stages.slice(stages.findIndex((stage) => stage.id === id) + 1);
}

/** Returns true if a later stage has upgraded the target since it failed, so that a retry would downgrade it. */
export function isUpgradedByLaterStage(rollout: Rollout, own: Stage, target: Target): boolean {
  return laterUpgrade(rollout, own, target) !== undefined;
}

/** Returns the target of the last later stage that is done and has the same name; undefined if there is none. */
export function laterUpgrade(
  rollout: Rollout,
  own: Stage,
  { name }: Target,
): { readonly stage: Stage; readonly target: Target } | undefined {
  if (own.keepsVersion === true) return undefined;
  for (const stage of stagesAfter(rollout, own).toReversed()) {
    if (stage.role !== own.role || stage.keepsVersion === true) continue;
    const target = stage.targets.find((other) => other.name === name && other.state === 'done');
    if (target !== undefined) return { stage, target };
  }
  return undefined;
}

/** Returns the targets of all stages with one of these recorded states, sorted by state. */
export function targetsIn(
  { stages }: Pick<Rollout, 'stages'>,
  ...states: readonly RecordedState[]
): Target[] {
  return states.flatMap((state) => stages.flatMap((stage) => inState(stage, state)));
}

/** Returns every target with its stage. The list is made once per rollout, because each decision needs it. */
export const withStages = onceForEach(({ stages }: Pick<Rollout, 'stages'>) =>
  stages.flatMap((stage) => stage.targets.map((target) => ({ stage, target }))),
);

/** Returns the targets of `after` whose recorded state has changed, each with the state that was recorded before. */
export function stateChanges(before: Rollout, after: Rollout) {
  const known = new Map(withStages(before).map(({ target }) => [target.key, target]));
  return withStages(after)
    .map(({ stage, target }) => ({ stage, target, before: known.get(target.key) }))
    .filter((change) => change.before?.state !== change.target.state);
}

/**
 * Returns the rollout in which these targets replace the targets with the same keys. Returns the same object if the
 * list of targets is empty.
 */
export function withTargets(rollout: Rollout, targets: readonly Target[]): Rollout {
  if (targets.length === 0) return rollout;
  const byKey = new Map(targets.map((target) => [target.key, target]));
  const replace = (stage: Stage): Stage =>
    stage.targets.some(({ key }) => byKey.has(key))
      ? { ...stage, targets: stage.targets.map((target) => byKey.get(target.key) ?? target) }
      : stage;
  return { ...rollout, stages: rollout.stages.map(replace) };
}

/**
 * Returns the owner that a cordon for this target names. It identifies the plan and the attempt.
 */
export function ownerOf(
  { source: { uid: plan, kind, mark } }: { readonly source: Pick<Source, 'uid' | 'kind' | 'mark'> },
  { since }: Pick<Target, 'since'>,
): string {
  return writeOwner(mark ?? { plan, kind, attempt: since });
}

/**
 * Returns true if the owner of a cordon is this rollout. A node that cordons itself names the rollout's id, because it does not know
 * the plan's uid.
 */
export function isOwnedBy(
  { source, id, editedId }: Pick<Rollout, 'source' | 'id' | 'editedId'>,
  owner: string | undefined,
): boolean {
  const plan = owner === undefined ? undefined : readOwner(owner)?.plan;
  return plan !== undefined && [source.mark?.plan ?? source.uid, id, editedId].includes(plan);
}

/** Returns the owner of a soft taint. The whole rollout is the owner, not one attempt. */
export function pendingOwnerOf({ uid, kind }: Pick<Source, 'uid' | 'kind'>): string {
  return `${kind}.${uid}`;
}
