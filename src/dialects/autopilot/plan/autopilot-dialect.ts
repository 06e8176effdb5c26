/** The dialect of k0s Autopilot. It maps its Plans to rollouts of the engine. */
import {
  type CommandStatus,
  type Plan,
  plans,
  type TargetStatus,
} from '../../../api/autopilot/plan.ts';
import { statusShards } from '../../../api/refit/status-shard.ts';
import type { Dialect } from '../../../engine/contract/dialect.ts';
import { isFinal, type Rollout, type Stage } from '../../../engine/model/rollout.ts';
import type { RecordedRun } from '../../../engine/model/runs.ts';
import { withPlanWindows } from '../../../engine/policy/plan-windows.ts';
import { isRelevant } from '../../../engine/snapshot/predicates.ts';
import type { KubeObject, Node } from '../../../kube/resources.ts';
import { trimNode } from '../../../kube/trimmed.ts';
import { agentOf } from '../../../signal/agent-presence.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { claimOn, signallerOf } from '../../../signal/at-work.ts';
import {
  type ControlNode,
  controlNodes,
  nodeNameOf,
  ROLLOUT_ANNOTATION,
} from '../../../signal/names.ts';
import { isOlder, mayBePartOf } from '../../../versions/release-parts.ts';
import { occupantOf } from '../../shared/annotation-signal.ts';
import { hostRefusal } from '../../shared/host-refusals.ts';
import { endpointOf } from '../../shared/node-endpoints.ts';
import { orphanedPlans } from './autopilot-orphaned-work.ts';
import { askedOf, drainDelegation, foreignWork, OBJECTS, signal } from './autopilot-signal.ts';
import { MOST_COMMANDS } from './problems.ts';
import {
  type RecordedSpec,
  recordedRunIn,
  recordedSpecIn,
  startedSpecOf,
  withRecordedSpec,
} from './recorded-run.ts';
import { preconditions } from './removed-apis.ts';
import { joinedTargets, resolve } from './resolve-autopilot-plan.ts';
import { planBackOf } from './roll-back-by-leader.ts';
import { PLAN_STATES, phaseOfPlan, planStateOf, TARGET_STATES, textOf } from './states.ts';
import { withoutCounts, withoutShards } from './status-shards/merge.ts';
import { shards } from './status-shards/spread.ts';
import { entriesIn, listOf, withEntries } from './status-shards/target-lists.ts';

export const autopilot: Dialect<Plan> = {
  name: 'autopilot',
  plans,
  statusRecord: { hasConditions: false, shards },
  reruns: { recordOf, withoutRecord, askedOf },
  rollBack: { planBack: planBackOf },
  watched: [
    {
      resource: OBJECTS.controller,
      isRelevant: (before, after) =>
        isRelevant(before, after) || versionOf(before) !== versionOf(after),
    },
    { resource: OBJECTS.worker, isRelevant, transform: trimNode },
    // A watch may show a Plan before its StatusShards, so each of them causes a new turn.
    { resource: statusShards, optional: true, isRelevant: () => true },
  ],
  resolve,
  project,
  joinedTargets,
  recordsSkips: true,
  ordersRetries: true,
  objectOf: ({ role }, { name }, world) => world.get(OBJECTS[role], name),
  endpoints: (world) =>
    world
      .list(controlNodes)
      .map((node) => ({ ...endpointOf(node), version: node.status?.k0sVersion })),
  preconditions: { unmet: preconditions },
  planRules: { apply: withPlanWindows },
  versions: {
    isBehind: (object, { version }) => isOlder(versionOf(object), version),
    skewRules: { versionOf, runs },
  },
  agents: { of: agentOf, unfitFor: hostRefusal },
  foreignWork,
  nodeSharing: {
    // The Node of a controller may have another name.
    occupantOf: (world, target, plan) =>
      occupantOf(
        world,
        { ...target, name: nodeNameOf(world.get(controlNodes, target.name)) ?? target.name },
        plan,
      ),
    claims: {
      needOf: () => 'with-limit',
      isAtWork: (world, node) => world.list(controlNodes).some((each) => isAtWorkOn(node, each)),
    },
  },
  drainDelegation,
  nodeRollouts: { namespace: 'k0s-autopilot' },
  orphanedWork: { plans: orphanedPlans },
  signal,
};

/**
 * Returns true if the controller works on the signal that the Node is claimed for. The signal of a
 * controller is on its ControlNode.
 */
function isAtWorkOn(node: Node, controller: ControlNode): boolean {
  const uid = claimOn(node)?.split('/').at(-1);
  const isOfClaim =
    controller.metadata.annotations?.[ROLLOUT_ANNOTATION]?.startsWith(`${uid}/`) === true;
  return (
    isOfClaim &&
    nodeNameOf(controller) === node.metadata.name &&
    signallerOf(controller) !== undefined
  );
}

/**
 * Returns true if the object proves that its node runs this build. A kubelet reports only the
 * release, but the last completed update of its agent names the build.
 */
function runs(object: KubeObject, version: string): boolean {
  const found = versionOf(object);
  if (found === undefined || found === version) return found === version;
  const { command, status } = decodeSignal(object.metadata.annotations) ?? {};
  const isLast =
    command?.kind === 'k0supdate' && command.version === version && status?.status === 'Completed';
  return isLast && mayBePartOf(found, version);
}

function versionOf(object: KubeObject): string | undefined {
  return (
    (object as ControlNode).status?.k0sVersion ?? (object as Node).status?.nodeInfo?.kubeletVersion
  );
}

function recordOf(plan: Plan): RecordedRun | undefined {
  return recordedRunIn(withoutShards(plan));
}

function withoutRecord(plan: Plan): Plan {
  const { status: _, ...rest } = withoutCounts(plan);
  return rest;
}

/**
 * Writes the rollout into the status in the words of the original, because scripts rely on them. Unknown fields stay. A
 * run after the first one is recorded too, and the spec of a rollout that ignores edits.
 */
export function project(rollout: Rollout, plan: Plan): Plan {
  const record = recorded(rollout, plan);
  const spec = specToRecord(rollout, plan);
  return spec === undefined ? record : withRecordedSpec(record, spec);
}

/** Returns what to record about run and spec; undefined for a first run that has always followed its edits. */
function specToRecord(rollout: Rollout, plan: Plan): RecordedSpec | undefined {
  const { run } = rollout;
  const known = recordedSpecIn(withoutShards(plan));
  const present = plan.metadata.generation ?? run ?? 1;
  if (rollout.ignoresEdits === true)
    return known?.started === undefined
      ? { run, generation: present, started: startedSpecOf(plan) }
      : { run, generation: known.generation, started: known.started };
  if (run === undefined && rollout.generation === undefined) return undefined;
  // A record that is written at or after the end keeps its generation, because it is not about a spec that was edited since.
  const wasOver = isFinal({ phase: phaseOfPlan(plan.status?.state) });
  const isKept = isFinal(rollout) && (wasOver || known?.started !== undefined);
  return { run, generation: isKept ? (rollout.generation ?? present) : present };
}

function recorded(rollout: Rollout, plan: Plan): Plan {
  const state = planStateOf(rollout);
  const before = plan.status?.commands ?? [];
  // A plan without commands gets one entry, because the reason must be recorded in an entry.
  const known = plan.spec.commands.slice(0, MOST_COMMANDS);
  const fresh = (known.length === 0 ? [{}] : known).map((_, id) => ({ id, state: '' }));
  // Each command of the first record keeps its entry, so that added and removed commands are detected.
  const entries: readonly CommandStatus[] = before.length > 0 ? before : fresh;
  const active = entries.find((entry) => !isCompleted(rollout, entry));
  const described = active ?? entries[0];
  const commands = entries.map((entry): CommandStatus => {
    const { description: _, ...rest } = withTargets(rollout, entry);
    const open = entry.id === active?.id || isFinal(rollout) ? state : PLAN_STATES.schedulableWait;
    return {
      ...rest,
      state: isCompleted(rollout, entry) ? PLAN_STATES.completed : open,
      ...(entry.id === described?.id && rollout.reason
        ? { description: textOf(rollout.reason, rollout.phase) }
        : {}),
    };
  });
  return { ...plan, status: { ...plan.status, state, commands } };
}

/**
 * Returns true if the command is done. A command without stages never runs; it is done if another
 * leader recorded that.
 */
function isCompleted({ stages }: Rollout, { id, state }: CommandStatus): boolean {
  const own = stages.filter(({ command }) => command === id);
  if (own.length === 0) return state === PLAN_STATES.completed;
  return own.every(({ targets }) => targets.every((target) => target.state === 'done'));
}

/** Writes the targets of each stage to its list. A list without a stage does not change. */
function withTargets({ stages }: Rollout, entry: CommandStatus): CommandStatus {
  let status = entry;
  for (const stage of stages) {
    if (stage.command !== entry.id || stage.targets.length === 0) continue;
    const list = listOf(stage);
    status = withEntries(status, list, statusOf(stage, entriesIn(entry, list)));
  }
  return status;
}

function statusOf({ targets }: Stage, recorded: readonly TargetStatus[]): TargetStatus[] {
  const byName = new Map(recorded.map((entry) => [entry.name, entry]));
  return targets.map(({ name, state, since }) => ({
    ...byName.get(name),
    name,
    state: TARGET_STATES[state],
    lastUpdatedTimestamp: since,
  }));
}
