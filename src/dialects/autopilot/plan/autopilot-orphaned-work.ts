/** Finds what Plans left on nodes: signals of deleted Plans, and cordons and taints of deleted or finished Plans. */
import {
  idOfPlan,
  PLAN_NAME,
  type Plan,
  plans as planResource,
} from '../../../api/autopilot/plan.ts';
import { cordonOwner, isPendingFor, pendingOwner, readOwner } from '../../../drain/cordon-marks.ts';
import type { OrphanedPlan } from '../../../engine/contract/features.ts';
import type { World } from '../../../engine/contract/world.ts';
import { pendingOwnerOf, type Role, type Source, sourceOf } from '../../../engine/model/rollout.ts';
import { idOfRun } from '../../../engine/model/runs.ts';
import { apiVersionOf, type KubeObject, type Node } from '../../../kube/resources.ts';
import {
  agentPolicyFor,
  decodeAgentPolicy,
  decodeSignal,
  type SignalData,
} from '../../../signal/annotations.ts';
import { isOver, signallerOf } from '../../../signal/at-work.ts';
import { controlNodes, nodeNameOf, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { decodeDownloadCheck, decodePrefetch } from '../../../signal/prefetch.ts';
import { orphanedRollout } from '../../shared/orphaned-rollout.ts';
import { isOfPlan } from '../../shared/signal-owner.ts';
import { OBJECTS } from './autopilot-signal.ts';
import { idOfRecordedRun, recordedRunIn } from './recorded-run.ts';
import { recordedStages } from './rollout.ts';
import { phaseOfPlan } from './states.ts';
import { withoutShards } from './status-shards/merge.ts';

const WAS_DELETED = 'its plan was deleted';

export function orphanedPlans(world: World, plans: readonly Plan[]): OrphanedPlan<Plan>[] {
  const working = world.list(controlNodes).filter((node) => signallerOf(node) !== undefined);
  const busy = new Set(working.map(nodeNameOf));
  return (['controller', 'worker'] as const).flatMap((role) =>
    world
      .list(OBJECTS[role])
      .flatMap((object) => orphanedPlanOf({ object, role }, plans, busy) ?? []),
  );
}

/** Returns the nodes that still work on a signal of any Plan. */
export function nodesAtWork(world: World): { readonly role: Role; readonly name: string }[] {
  return (['controller', 'worker'] as const).flatMap((role) =>
    world
      .list(OBJECTS[role])
      .filter(({ metadata: { annotations } }) => {
        const signal = decodeSignal(annotations);
        if (signal === undefined || isOver(signal)) return false;
        // If the policy says that the leader cordons, the signal belongs to another dialect. k0s's own leader does not
        // remove the policy of an earlier signal, so only a policy that was written for this signal is used.
        return agentPolicyFor(annotations, signal.created).cordoning !== 'leader';
      })
      .map(({ metadata: { name } }) => ({ role, name })),
  );
}

interface Carrier {
  readonly object: KubeObject;
  readonly role: Role;
}

/**
 * Returns the orphaned work on one object; undefined if there is none. `busy` contains the names of Nodes whose
 * controller is in progress. Such a Node is cleaned up after its controller is done.
 */
function orphanedPlanOf(
  carrier: Carrier,
  plans: readonly Plan[],
  busy: ReadonlySet<string | undefined>,
) {
  const { object, role } = carrier;
  const { annotations } = object.metadata;
  // The signal belongs to another dialect, which does its own clean-up.
  if (decodeAgentPolicy(annotations).cordoning === 'leader') return undefined;
  const signal = decodeSignal(annotations);
  if (signal && !isOver(signal)) {
    // If the Plan that sent the signal exists, the Plan removes the cordon itself. Otherwise the node may still do the
    // work of a deleted Plan.
    if (plans.some((plan) => isSentBy(plan, carrier, signal))) return undefined;
    return orphanedPlan(
      carrier,
      annotations?.[ROLLOUT_ANNOTATION]?.split('/')[0] ?? '',
      WAS_DELETED,
      signal,
    );
  }
  const ahead = (decodePrefetch(annotations) ?? decodeDownloadCheck(annotations))?.rollout;
  if (ahead !== undefined && !plans.some(({ metadata }) => metadata.uid === ahead))
    return orphanedPlan(carrier, ahead, WAS_DELETED);
  if (role === 'worker' && busy.has(object.metadata.name)) return undefined;
  const owner = pastOwner(object, plans);
  if (owner === undefined) return undefined;
  return orphanedPlan(carrier, owner, whyPast(owner, plans, carrier, signal));
}

/** Returns why the owner of a cordon or taint does not remove it. The signal is the last signal of the node. */
function whyPast(
  owner: string,
  plans: readonly Plan[],
  carrier: Carrier,
  signal: SignalData | undefined,
): string {
  if (plans.some((plan) => isOwner(plan, owner)))
    return 'its plan is over and no longer lists this node';
  // A node that cordons itself names the id that its plan had then.
  const isRenamed =
    signal?.planId === owner && plans.some((plan) => isSentBy(plan, carrier, signal));
  return isRenamed
    ? 'the id of its plan was edited after the node had cordoned itself'
    : WAS_DELETED;
}

function isSentBy(plan: Plan, { object, role }: Carrier, signal: SignalData): boolean {
  const source = sourceOf(planResource, plan);
  const whole = withoutShards(plan);
  const ids = { id: idOfRecordedRun(whole), editedId: idOfPlan(plan) };
  return isOfPlan(object, signal, { source, ...ids, stages: recordedStages(whole) }, role);
}

/**
 * Returns the uid of the deleted or finished Plan that left a cordon or taint on the Node; undefined if there is no
 * such cordon or taint. The uid is empty for a taint of an earlier version of Refit.
 */
function pastOwner(node: Node, plans: readonly Plan[]): string | undefined {
  const isActive = (isIts: (plan: Plan) => boolean) =>
    plans.some((plan) => isIts(plan) && cleansUp(plan, node));
  const { plan: owner, kind = planResource.kind } = readOwner(cordonOwner(node) ?? '') ?? {};
  const isIts = (plan: Plan): boolean => isOwner(plan, owner);
  if (owner !== undefined && kind === planResource.kind && !isActive(isIts)) return owner;
  const pending = pendingOwner(node);
  const own = pendingOwnerOf({ kind: planResource.kind, uid: '' });
  if (pending === undefined || (pending !== '' && !pending.startsWith(own))) return undefined;
  const isCaredFor = isActive(({ metadata }) => isPendingFor(pending, own + metadata.uid));
  return isCaredFor ? undefined : pending.slice(own.length);
}

/**
 * Returns true if the cordon belongs to the Plan. If the leader cordons, it marks the cordon with the uid of the Plan.
 * If an agent drains its own node, it marks the cordon with the id of the run.
 */
function isOwner(plan: Plan, owner: string | undefined): boolean {
  const whole = withoutShards(plan);
  const ofSpec = idOfRun(idOfPlan(plan), recordedRunIn(whole)?.run);
  return [plan.metadata.uid, idOfRecordedRun(whole), ofSpec].includes(owner);
}

/**
 * Returns true if the Plan will clean up the Node itself. A finished Plan cleans up the Nodes of its workers, but not
 * the Node of a deleted ControlNode. This function reads long lists, so call it only after cheaper checks.
 */
function cleansUp({ status }: Plan, { metadata }: Node): boolean {
  if (['new', 'running'].includes(phaseOfPlan(status?.state))) return true;
  const workers = (status?.commands ?? []).flatMap(({ k0supdate }) => k0supdate?.workers ?? []);
  return workers.some(({ name }) => name === metadata.name);
}

function orphanedPlan(
  { object, role }: Carrier,
  uid: string,
  why: string,
  signal?: SignalData,
): OrphanedPlan<Plan> {
  const { name } = object.metadata;
  const { planId: id = '', created = '', command } = signal ?? {};
  const apiVersion = apiVersionOf(planResource);
  const source: Source = { apiVersion, kind: planResource.kind, name: PLAN_NAME, uid, created };
  const target = { key: `${role}/${name}`, name, state: 'failed', since: created } as const;
  const more = command && {
    command: command.id,
    version: command.version,
    procedure: command.kind,
  };
  return {
    rollout: orphanedRollout(source, id, target, why, { role, ...more }),
    plan: { metadata: { name: PLAN_NAME, uid }, spec: { id, timestamp: '', commands: [] } },
  };
}
