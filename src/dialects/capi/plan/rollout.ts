/**
 * Turns the Nodes with update requests of one group into a rollout, and writes the record back to these Nodes. Each Node
 * holds the state of its own Machine, and the first Node also holds what is recorded of the whole plan.
 */
import { machines } from '../../../api/capi/machine.ts';
import type { RecordSharding, WholeRecord } from '../../../engine/contract/features.ts';
import type { TargetWrite } from '../../../engine/contract/signal.ts';
import type { World, WorldObject } from '../../../engine/contract/world.ts';
import { ABORT_ANNOTATION, controlsOn } from '../../../engine/model/controls.ts';
import type { Signalling } from '../../../engine/model/decision.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import {
  inState,
  isFinal,
  newTarget,
  type Payload,
  type Role,
  type Rollout,
  type RolloutPhase,
  type Source,
  type Stage,
  type Target,
  type TurnTime,
} from '../../../engine/model/rollout.ts';
import { toRecord } from '../../../engine/reasons/recorded.ts';
import { platformOf } from '../../../engine/snapshot/gather.ts';
import { apiVersionOf, type Node, nodes, splitKey } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { listed } from '../../../util/phrases.ts';
import { isController } from '../../shared/node-endpoints.ts';
import {
  doneAmong,
  goneIn,
  groupOf,
  type MachineGroup,
  type Requested,
  rolloutUidOf,
  stateIn,
} from './machine-groups.ts';
import {
  type DoneMachines,
  type MachineUpdate,
  recordOf,
  type UpdateRecord,
  updateOn,
  withRecord,
} from './machine-update.ts';
import { changedControls, MOST_COPIES, proved } from './owner-controls.ts';

/** Who chooses the next Machine, and the advice for waves whose selectors select some Machines of one owner. */
const CHOSEN_BY_CLUSTER_API = {
  by: 'Cluster API',
  advice: 'put the Machines that come first into a MachineDeployment of their own',
} as const;

export function resolve(node: Node, world: Pick<World, 'list'>, now: TurnTime): Rollout {
  const group = groupOf(world.list(nodes), node);
  if (!group) throw new Error(`node ${node.metadata.name} has no update request`);
  const [{ update }] = group.chosen;
  if (update.owner !== undefined) return rolloutOfGroup(group);
  const { name } = node.metadata;
  const { state, since } = newTarget({ key: name, name }, now);
  const fresh = { phase: 'new', blocked: false, state, since } as const;
  return rolloutOf(node, update, recordOf(node, update) ?? fresh);
}

/** Returns the rollout of a Machine that is a plan of its own. */
export function rolloutOf(
  node: Node,
  update: MachineUpdate,
  record: Omit<UpdateRecord, 'uid'>,
): Rollout {
  const { phase, blocked, reason, state, since } = record;
  const { name } = node.metadata;
  return {
    source: sourceOf(update),
    id: update.requested,
    phase,
    blocked,
    reason,
    stages: [{ ...stageOf(update), targets: [{ key: name, name, state, since }] }],
    problems: [],
  };
}

function rolloutOfGroup({ chosen, unchosen }: MachineGroup): Rollout {
  const [first] = chosen;
  const { update } = first;
  const asked = chosen.map((each) => targetOf(chosen, each));
  const isWaiting = ({ state }: Target): boolean => state === 'pending';
  const targets = [
    ...failedAndGone({ chosen, unchosen }),
    // A Machine that has begun keeps its place, even if the clock of another replica gives a later request an earlier time.
    ...asked.filter((target) => !isWaiting(target)),
    ...asked.filter(isWaiting),
    // Their attempt begins only after Cluster API has chosen them, so any time that never changes will do.
    ...unchosen.map(({ metadata: { name } }) =>
      newTarget({ key: name, name }, requestedAt(update)),
    ),
  ];
  const record = recordOf(first.node, update);
  const recorded = record?.phase ?? phaseElsewhere(chosen);
  const isAborted =
    record?.reason?.code === 'Aborted' && controlsOn(proved(first.node)).abort !== undefined;
  const phase = isAborted ? recorded : reopened(recorded, targets);
  return {
    source: sourceOf(update),
    id: rolloutUidOf(update),
    phase,
    blocked: phase === recorded && record?.blocked === true,
    reason: phase === recorded ? record?.reason : undefined,
    stages: [
      {
        ...stageOf(update),
        id: 'machines',
        role: roleOf(chosen, unchosen),
        // Cluster API limits how many Machines are updated at once.
        maxInFlight: targets.length,
        payloads: payloadsOf(chosen, unchosen),
        chosenElsewhere: { ...CHOSEN_BY_CLUSTER_API, gone: goneIn(chosen) },
        targets,
      },
    ],
    problems: [],
    unread: unprovedControlsOf(first),
  };
}

/**
 * Returns why the leader does nothing for the plan, if somebody else has changed what people have asked of it; undefined if nobody
 * has.
 */
function unprovedControlsOf({ node, update }: Requested): Reason | undefined {
  const changed = changedControls(node);
  if (changed.length === 0) return undefined;
  const keys = listed(changed);
  const place = `node ${node.metadata.name}, which holds the plan ${sourceOf(update).name}`;
  const cure = changed.includes(ABORT_ANNOTATION)
    ? 'run refit abort to keep the plan aborted; then refit retry with the name of the plan can start it again'
    : 'run refit pause to keep the plan paused, or refit resume to let it go on; both remove what Refit did not write';
  const message = `somebody other than Refit changed ${keys} on ${place}: ${cure}`;
  return because('ControlsUnproved', message);
}

/**
 * Returns the targets whose Machines failed, and are gone since. Their failures count until somebody retries them, which
 * means for a Machine that is gone that the plan goes on without it.
 */
function failedAndGone({ chosen, unchosen }: MachineGroup): readonly Target[] {
  const { retries } = controlsOn(proved(chosen[0].node));
  // If a person removed the request of a Machine, the Machine is one of the unchosen ones until Cluster API asks again.
  const existing = [...chosen.map(({ node }) => node), ...unchosen];
  const present = new Set(existing.map(({ metadata }) => metadata.name));
  const all = chosen.flatMap(({ node, update }) => recordOf(node, update)?.failed ?? []);
  const byName = new Map(all.map((each) => [each.name, each]));
  return [...byName.values()].flatMap(({ name, since, failure }): Target[] => {
    const retriedAt = retries.get(name) ?? Number.NEGATIVE_INFINITY;
    if (present.has(name) || retriedAt >= Date.parse(since)) return [];
    return [{ key: name, name, state: 'failed', since, ...(failure && { failure }) }];
  });
}

const requestedAt = ({ requested }: MachineUpdate): number => Date.parse(requested);

function targetOf(chosen: readonly Requested[], each: Requested): Target {
  const { name } = each.node.metadata;
  const record = stateIn(chosen, each);
  if (!record) return newTarget({ key: name, name }, requestedAt(each.update));
  const { state, since, failure } = record;
  return { key: name, name, state, since, ...(failure && { failure }) };
}

/**
 * Returns the phase that the other Nodes have recorded. It is needed if the Node that represented the plan is gone.
 */
function phaseElsewhere(chosen: readonly Requested[]): RolloutPhase {
  const phases = chosen.flatMap(({ node, update }) => recordOf(node, update)?.phase ?? []);
  return phases.find((phase) => phase !== 'new') ?? 'new';
}

/**
 * Returns `running` for a plan that has ended, if Cluster API has chosen another Machine since, or if somebody has
 * withdrawn what failed, or the abort. Otherwise returns the recorded phase.
 */
function reopened(phase: RolloutPhase, targets: readonly Target[]): RolloutPhase {
  if (!isFinal({ phase })) return phase;
  const isFailed = targets.some((target) => target.state !== 'done' && !isOpen(target));
  return targets.some(isOpen) && !isFailed ? 'running' : phase;
}

function isOpen({ state }: Target): boolean {
  return state === 'pending' || state === 'intended';
}

/**
 * Returns `controller` if any Node of the owner is one. The requests may say something else if another release has
 * written them. A kubelet can change neither such a request nor this label.
 */
function roleOf(chosen: MachineGroup['chosen'], unchosen: MachineGroup['unchosen']): Role {
  const isOne = chosen.some(
    ({ node, update }) => update.role === 'controller' || isController(node),
  );
  return isOne || unchosen.some(isController) ? 'controller' : 'worker';
}

/** Returns the payloads by platform. The newest request of a platform counts. */
function payloadsOf(
  chosen: MachineGroup['chosen'],
  unchosen: MachineGroup['unchosen'],
): Record<string, Payload> {
  const [{ update: first }] = chosen;
  // What a Node needs that Cluster API has not chosen yet is known only when it is chosen.
  const later = unchosen.flatMap((node) => platformOf(node) ?? []);
  const entries = [
    ...later.map((platform) => [platform, payloadOf(first)] as const),
    ...chosen.map(({ update }) => [update.platform, payloadOf(update)] as const),
  ];
  return Object.fromEntries(entries);
}

export function payloadOf({ url, sha256 }: MachineUpdate): Payload {
  return { url, ...(sha256 === undefined ? {} : { sha256 }) };
}

function sourceOf(update: MachineUpdate): Source {
  const { machine, requested: created, owner } = update;
  const uid = rolloutUidOf(update);
  if (owner === undefined)
    return { apiVersion: apiVersionOf(machines), kind: machines.kind, name: machine, uid, created };
  const { apiVersion, kind } = owner;
  return { apiVersion, kind, name: `${namespaceOf(update)}/${owner.name}`, uid, created };
}

/** Returns the namespace of the Machine, which is also the namespace of its owner. */
export function namespaceOf({ machine }: MachineUpdate): string {
  return splitKey(machine).namespace ?? '';
}

/** Returns the only stage of the rollout, without its targets. */
function stageOf(update: MachineUpdate): Omit<Stage, 'targets'> {
  const { version, role, platform, procedure } = update;
  return {
    id: 'machine',
    command: 0,
    role,
    maxInFlight: 1,
    version,
    ...(procedure && { procedure }),
    payloads: { [platform]: payloadOf(update) },
    forced: false,
  };
}

export function project(rollout: Rollout, node: Node): Node {
  return projected(rollout, node, { done: undefined, intended: [] });
}

/** What the Node that represents a plan with several Machines records of the others. */
interface OfOthers {
  readonly done: DoneMachines | undefined;
  readonly intended: NonNullable<UpdateRecord['intended']>;
}

function projected(rollout: Rollout, node: Node, { done, intended }: OfOthers): Node {
  const update = updateOn(node);
  const target = rollout.stages[0]?.targets.find(({ name }) => name === node.metadata.name);
  if (!update || !target)
    throw new Error(`the rollout of node ${node.metadata.name} has no target for it`);
  const { blocked, reason } = rollout;
  const known = reason ? { reason: toRecord(reason) } : {};
  const before = newerOf(update, done) ?? recordOf(node, update)?.before;
  return withRecord(node, update, {
    ...recordFor(update, target, rollout),
    blocked,
    ...known,
    ...(before && { before }),
    ...(intended.length > 0 && { intended }),
  });
}

function recordFor(
  { uid, owner }: MachineUpdate,
  target: Pick<Target, 'state' | 'since' | 'failure'>,
  { phase, stages }: Rollout,
): UpdateRecord {
  const { state, since } = target;
  const failed = owner === undefined ? [] : stages.flatMap((stage) => inState(stage, 'failed'));
  return {
    uid,
    phase,
    blocked: false,
    state,
    since,
    ...(state === 'failed' && failureIn(target)),
    ...(failed.length > 0 && {
      failed: failed.map((each) => ({
        name: each.name,
        since: each.since,
        ...failureIn(each),
      })),
    }),
  };
}

function failureIn({ failure }: Pick<Target, 'failure'>): Pick<UpdateRecord, 'failure'> {
  return failure ? { failure: toRecord(failure) } : {};
}

/** Returns the Node of a Machine that starts, with the start in its record. The plan has recorded it before. */
export function withStart(
  node: Node,
  { target }: Pick<Signalling, 'target'>,
  rollout: Rollout,
): Node {
  const update = updateOn(node);
  if (update === undefined) return node;
  const { failed: _failed, ...own } = recordFor(update, target, rollout);
  const known = recordOf(node, update);
  return withRecord(node, update, { ...known, ...own });
}

/** Writes the state of each Machine to its own Node. */
export const sharding: RecordSharding<Node> = {
  spread(plan, { projected: alone, rollout, failures }, world) {
    const group = groupOf(world.list(nodes), plan);
    if (group === undefined || updateOn(plan)?.owner === undefined)
      return { plan: alone, writes: [] };
    const told = withFailures(rollout, failures);
    const [stage] = told.stages;
    const targets = stage?.targets ?? [];
    const next = targets.find(isOpen)?.name;
    const done = doneAmong(group.chosen, endsOf(targets));
    const started = recordOf(plan, group.chosen[0].update)?.intended ?? [];
    const ofTargets = group.chosen.flatMap(({ node, update }, index): TargetWrite[] => {
      const { name } = node.metadata;
      const target = targets.find((each) => each.name === name);
      if (stage === undefined || target === undefined || name === plan.metadata.name) return [];
      // The start itself is recorded with the plan, so that of two leaders only one can start a Machine.
      const isStart =
        target.state === 'intended' &&
        !started.some((each) => each.uid === update.uid && each.since === target.since);
      const known = recordOf(node, update);
      const { failed, ...own } = isStart
        ? recordFor(update, known ?? newTarget(target, requestedAt(update)), told)
        : recordFor(update, target, told);
      // One of the first Nodes represents the plan if those before it are deleted. The others are not written only because
      // the phase of the plan has changed.
      const isKeeper = index <= MOST_COPIES;
      // No Machine must take the place of one that is done, if that one is deleted. So the Node that represents the plan
      // knows the Machines that are done, and so do the one that represents it next and that of the next Machine.
      const before =
        (index === 1 || name === next ? newerOf(update, done) : undefined) ?? known?.before;
      const wanted = {
        ...own,
        phase: isKeeper ? own.phase : (known?.phase ?? own.phase),
        ...(isKeeper && failed && { failed }),
        ...(before && { before }),
      };
      // Nothing is known about a Machine that waits, and that no turn has recorded yet.
      const isUntold = wanted.failed === undefined && before === undefined;
      if (known === undefined && own.state === 'pending' && isUntold) return [];
      if (known !== undefined && sameJson(known, wanted)) return [];
      const object = withRecord(node, update, wanted);
      return [{ stage, target, instruction: { kind: 'replace', resource: nodes, object } }];
    });
    const intended = intendedIn(group.chosen, targets);
    return { plan: projected(told, plan, { done, intended }), writes: [], ofTargets };
  },
  holding(plan, targets, world) {
    return targets.flatMap(({ name }): WorldObject[] => {
      const object = name === plan.metadata.name ? undefined : world.get(nodes, name);
      return object ? [{ resource: nodes, object }] : [];
    });
  },
};

/** Returns the Machines in progress, with the uids of their requests. */
function intendedIn(
  chosen: readonly Requested[],
  targets: readonly Target[],
): OfOthers['intended'] {
  const uids = new Map(chosen.map(({ node, update }) => [node.metadata.name, update.uid]));
  return inState({ targets }, 'intended').flatMap(({ name, since }) => {
    const uid = uids.get(name);
    return uid === undefined ? [] : [{ name, uid, since }];
  });
}

/** Returns when the targets that are done were done, in milliseconds since the Unix epoch. */
function endsOf(targets: readonly Target[]): number[] {
  return inState({ targets }, 'done').map(({ since }) => Date.parse(since));
}

/** Returns the Machines that are done, if they are more than those that the request names. */
function newerOf(
  { owner }: MachineUpdate,
  now: DoneMachines | undefined,
): DoneMachines | undefined {
  return now !== undefined && now.done > (owner?.before?.done ?? 0) ? now : undefined;
}

/** Returns the rollout in which each target that fails in this turn has its reason. */
function withFailures(rollout: Rollout, { reasons }: WholeRecord<Node>['failures']): Rollout {
  const stages = rollout.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target): Target => {
      const failure = target.failure ?? ownMember(reasons, target.name);
      return target.state === 'failed' && failure ? { ...target, failure } : target;
    }),
  }));
  return { ...rollout, stages };
}
