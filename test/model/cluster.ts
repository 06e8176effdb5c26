/** The small clusters to explore: their nodes and plan as the API server has them at the start. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import type { Role } from '../../src/engine/model/rollout.ts';
import type { RetryRule } from '../../src/engine/policy/rollout-policy.ts';
import type { HookMoment } from '../../src/hooks/rules.ts';
import type { KubeObject, Node } from '../../src/kube/resources.ts';
import { encodePresence } from '../../src/signal/agent-presence.ts';
import { HOLD_ANNOTATION } from '../../src/signal/holds.ts';
import { AGENT_ANNOTATION, ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildControlNode, buildNode } from '../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed, selected } from '../support/builders/plans.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { recorded, statusOf } from '../support/builders/views.ts';
import { MINUTE, SECOND, T0 } from '../support/clock/times.ts';
import type { TurningPoint } from './forward-phases.ts';
import type { Quality } from './host.ts';
import { ANY_NODE } from './nameless.ts';
import { ABSENT_ANNOTATION } from './presence.ts';
import { tellingVersion } from './told-versions.ts';

export interface NodeSpec {
  readonly name: string;
  readonly role: Role;
  /** The quality of the last command's payload on this node. */
  readonly payload: Quality;
  /** True if somebody else cordons the Node before the run starts and never uncordons it. */
  readonly isClosed: boolean;
  /** True if somebody holds the node from the beginning. */
  readonly isHeld: boolean;
  /** True if the policy pins the node to the version that it runs at first. */
  readonly isPinned: boolean;
  /** True if the node joins only later. */
  readonly isLate?: boolean;
  /** The wave of a worker, counted from 1; undefined where the policy has no waves. */
  readonly wave: string | undefined;
}

/** What the UpgradePolicy requires, apart from limits and deadlines. */
export interface Rules {
  /** `in turn`: the second wave starts by itself · `approved`: it starts once somebody has approved it. */
  readonly waves?: 'in turn' | 'approved';
  /** True if the plan may end without upgrading the workers that are held or pinned. */
  readonly leavesOutHeld?: boolean;
  readonly retry?: RetryRule;
  /** True if the plan pauses and waits for people after more nodes have failed than allowed. */
  readonly pausesOnFailure?: boolean;
  /** The moments at which a hook runs. At each of these moments, a Job must succeed for each node. */
  readonly hooks?: readonly HookMoment[];
  /** True if the leader rolls a failed run back. */
  readonly rollsBackOnFailure?: boolean;
  /** True if the edit of an ended plan starts a new run. */
  readonly restartsEdited?: boolean;
  /** The number of workers that may fail; that of the configuration if it is absent. */
  readonly maxFailures?: number;
}

/**
 * The orders that people may give to a plan, each once and at any moment. Somebody who pauses a plan resumes it later.
 */
export type Order =
  | 'abort'
  | 'pause'
  | 'retry'
  | 'approve'
  | 'unhold'
  | 'retryHooks'
  | 'editId'
  | 'editVersion'
  | 'editBoth'
  | 'reapply'
  | 'changePolicy'
  | 'loseNode'
  | 'joinNode'
  | 'upgradeByHand';

export interface Configuration {
  /** A short name for tables. */
  readonly name: string;
  readonly nodes: readonly NodeSpec[];
  /** The versions of the plan's commands, one for each command, in this order. They are compared as strings. */
  readonly versions: readonly string[];
  /**
   * The versions of the commands of a second plan that may replace the first at any moment. Empty if the first plan
   * stays.
   */
  readonly replacedBy: readonly string[];
  /**
   * True if the first plan has already ended when the run starts: every node with a good payload was upgraded, and all
   * other nodes failed.
   */
  readonly startsUpgraded: boolean;
  /**
   * True if the first plan has just upgraded the controllers, and no worker has begun. Other configurations explore how
   * this state is reached.
   */
  readonly startsAtWorkers: boolean;
  /**
   * True if k0s's own leader has sent a signal to the first node and recorded it, and has then stopped. Refit takes the
   * plan over.
   */
  readonly takenOver: boolean;
  /**
   * The time at which somebody may replace the plan with its roll-back plan: either only after the plan has ended, as
   * `refit rollback` does, or also while the plan runs, as is possible with kubectl.
   */
  readonly wayBack: 'never' | 'once it has ended' | 'at any moment';
  /**
   * The point at which a person rolls the plan back. Only fair edges are explored before that point; other
   * configurations explore the rest.
   */
  readonly turnsBack?: TurningPoint;
  /**
   * `one`: only one leader at a time. This leader knows every signal that was sent, and its requests end before it acts
   * on another plan.
   */
  readonly leaders: 'any' | 'one';
  /** The limit of concurrent workers. */
  readonly concurrent: number;
  /**
   * The number of faults in a run: crashes of agents, lost answers, failing steps, power losses and writes by others,
   * all together.
   */
  readonly faults: number;
  /**
   * The additional faults per node: how many crashes of its agent, or losses of power, each node may suffer while it
   * works on a signal.
   */
  readonly crashesEach: number;
  /**
   * Who cordons, drains and uncordons Nodes: the leader, or each agent for its own Node. In the model, ControlNodes
   * have no Node.
   */
  readonly cordoner: 'leader' | 'self';
  readonly controls: readonly Order[];
  /** True if others cordon Nodes as well. Each of these cordons counts as a fault. */
  readonly othersCordon: boolean;
  /**
   * The moments that the model's clock can show, in milliseconds since the Unix epoch. There is only one moment if
   * nothing depends on time.
   */
  readonly times: readonly number[];
  /** The milliseconds for which leaders allow a target to be in progress. */
  readonly targetDeadlineMs: number;
  /** True if the agents download, before their turn, the versions that the leader requests. */
  readonly fetchesAhead: boolean;
  /** The number of workers that may fail before no more targets start. */
  readonly maxFailures: number;
  readonly rules: Rules;
  /** What the policy requires after somebody has changed it. */
  readonly changedRules?: Rules;
  /** True if the object of each node tells the version that the node runs. */
  readonly tellsVersions?: boolean;
  /** True if the leader writes the id of a run to the plan when it admits the run, so that an edit does not rename it. */
  readonly namesRuns?: boolean;
  /** True if the plan selects all workers, so that a worker may join later. */
  readonly selectsWorkers?: boolean;
  /** Whether k0s's own agent also runs on every node. If it does, our agent is configured to leave signals to it. */
  readonly theirs: 'off' | 'on';
  /**
   * What our agent learns about k0s's own agent from a service process that answers. unknown: nothing · in doubt: it is
   * impossible to know whether k0s's agent runs · on: k0s's agent runs · on after the restart: k0s's agent runs, but
   * only in processes of the last version.
   */
  readonly ownAgent: 'unknown' | 'in doubt' | 'on' | 'on after the restart';
  /**
   * Whether the power may be lost while the agent works on the service. `stays`: it is never lost · `returns`: it
   * always comes back · `may stay off`: it may also be lost for good, which counts as a fault.
   */
  readonly power: 'stays' | 'returns' | 'may stay off';
}

/** The version that runs at first. */
export const OLD = 'v1.36.1+k0s.0';
export const WAVE_LABEL = 'wave';
export const PINNED_LABEL = 'pinned';
/** The number of the wave that needs an approval, if the configuration requires approvals. */
export const SECOND_WAVE = 2;
/** When k0s's own leader sends its signal. It records the attempt a moment later. */
export const SENT_BY_K0S = rfc3339(T0 + SECOND);
/** If nothing depends on time, all clocks of the model show this moment. The plans were applied a minute earlier. */
export const NOW = T0 + MINUTE;

export function firstPlan(configuration: Configuration): Plan {
  const plan = planFor(configuration, 1, configuration.versions);
  const { startsUpgraded, startsAtWorkers, takenOver } = configuration;
  if (takenOver) return { ...plan, status: statusOfTakenOver(configuration) };
  if (startsUpgraded) return { ...plan, status: endedStatus(configuration) };
  return startsAtWorkers ? { ...plan, status: statusAtWorkers(configuration) } : plan;
}

/** The version that the node runs at first. */
export function versionAtFirst(spec: NodeSpec, configuration: Configuration): string {
  const [version = OLD] = configuration.versions;
  return isUpgradedAtFirst(spec, configuration) ? version : OLD;
}

/**
 * Returns the quality of the file on the node. `payload` is the quality of the last command's file. The files of
 * earlier commands are good.
 */
export function qualityOn(
  { payload }: NodeSpec,
  configuration: Configuration,
  file: string | undefined,
): Quality {
  return isOfLastCommand(configuration, file) ? payload : 'good';
}

/** Reports whether the file belongs to the last command. Also true for the file of a second plan. */
export function isOfLastCommand({ versions }: Configuration, file: string | undefined): boolean {
  return file !== OLD && !versions.slice(0, -1).some((each) => each === file);
}

function isUpgradedAtFirst(
  { payload, role }: NodeSpec,
  { startsUpgraded, startsAtWorkers }: Configuration,
): boolean {
  if (startsAtWorkers) return role === 'controller';
  return startsUpgraded && payload === 'good';
}

function endedStatus({ nodes }: Configuration): NonNullable<Plan['status']> {
  const hasFailed = nodes.some(({ payload }) => payload !== 'good');
  const stateOf = ({ payload }: NodeSpec): string =>
    payload === 'good' ? 'SignalCompleted' : 'SignalApplyFailed';
  return statusWith(hasFailed ? 'ApplyFailed' : 'Completed', nodes, stateOf);
}

function statusAtWorkers({ nodes }: Configuration): NonNullable<Plan['status']> {
  return statusWith('SchedulableWait', nodes, ({ role }) =>
    role === 'controller' ? 'SignalCompleted' : 'SignalPending',
  );
}

function statusOfTakenOver({ nodes }: Configuration): NonNullable<Plan['status']> {
  const stateOf = (spec: NodeSpec): string => (spec === nodes[0] ? 'SignalSent' : 'SignalPending');
  return statusWith('SchedulableWait', nodes, stateOf, T0 + 2 * SECOND);
}

/** Returns true if the node has a signal of k0s's own leader from the beginning. */
export function isTakenOver(spec: NodeSpec, { takenOver, nodes }: Configuration): boolean {
  return takenOver && spec.name === nodes[0]?.name;
}

function statusWith(
  state: string,
  nodes: readonly NodeSpec[],
  stateOf: (spec: NodeSpec) => string,
  since = T0,
): NonNullable<Plan['status']> {
  const statesOf = (role: Role) =>
    recorded(
      Object.fromEntries(
        nodes.filter((node) => node.role === role).map((node) => [node.name, stateOf(node)]),
      ),
      rfc3339(since),
    );
  return statusOf(state, statesOf('controller'), statesOf('worker'));
}

/**
 * Returns the second plan. It has the same name as the first, as if somebody had deleted the first plan and applied
 * this one.
 */
export function secondPlan(configuration: Configuration): Plan | undefined {
  const { replacedBy } = configuration;
  return replacedBy.length > 0 ? planFor(configuration, 2, replacedBy) : undefined;
}

const EDITS: ReadonlySet<Order> = new Set(['editVersion', 'editBoth']);

function planFor(
  { nodes, concurrent, rules, controls, selectsWorkers }: Configuration,
  run: number,
  versions: readonly string[],
): Plan {
  const named = (role: Role): string[] =>
    nodes.filter((node) => node.role === role).map(({ name }) => name);
  const targets = {
    controllers: listed(...named('controller')),
    workers: {
      ...(selectsWorkers === true ? selected() : listed(...named('worker'))),
      limits: { concurrent },
    },
  };
  const commands = versions.map((version) => ({ k0supdate: buildUpdate({ version, targets }) }));
  const plan = buildPlan({ id: `run-${run}`, commands });
  const isEdited = controls.some((control) => EDITS.has(control));
  const generation = rules.rollsBackOnFailure === true || isEdited ? { generation: 1 } : {};
  return { ...plan, metadata: { ...plan.metadata, ...generation, uid: `plan-${run}` } };
}

/** Reports whether the objects of the nodes tell the versions that the nodes run. */
export function tellsVersions(configuration: Configuration): boolean {
  return configuration.tellsVersions === true || maySeeWayBack(configuration);
}

/** Reports whether the run may be rolled back. In this case decisions depend on the versions that the nodes report. */
export function maySeeWayBack({ wayBack, rules }: Configuration): boolean {
  return wayBack !== 'never' || rules.rollsBackOnFailure === true;
}

function signalOfK0s({ versions: [version = OLD] }: Configuration): Record<string, string> {
  return buildSignal({ planId: 'run-1', created: SENT_BY_K0S, command: { version } });
}

/** Returns the object of the node with a placeholder for the node's name. */
export function objectOf(spec: NodeSpec, configuration: Configuration): KubeObject | Node {
  const { role, isClosed, isHeld, isPinned, wave } = spec;
  const { fetchesAhead, startsUpgraded } = configuration;
  const isOfPlan = startsUpgraded || isUpgradedAtFirst(spec, configuration);
  const annotations = {
    // Leaders request a prefetch only from agents of Refit.
    ...(fetchesAhead && { [AGENT_ANNOTATION]: encodePresence({ version: '1', since: '' }) }),
    ...(isOfPlan && { [ROLLOUT_ANNOTATION]: 'plan-1/run-1' }),
    ...(isHeld && { [HOLD_ANNOTATION]: 'it is on a call' }),
    ...(isTakenOver(spec, configuration) && signalOfK0s(configuration)),
    ...(spec.isLate === true && { [ABSENT_ANNOTATION]: 'true' }),
  };
  const labels = {
    ...(isPinned && { [PINNED_LABEL]: 'true' }),
    ...(wave !== undefined && { [WAVE_LABEL]: wave }),
  };
  const told = <T extends KubeObject>(object: T): T =>
    tellsVersions(configuration)
      ? tellingVersion(object, versionAtFirst(spec, configuration))
      : object;
  if (role === 'controller') return told(buildControlNode(ANY_NODE, { annotations, labels }));
  const node: Node = told(buildNode(ANY_NODE, { annotations, labels }));
  return isClosed ? { ...node, spec: { unschedulable: true } } : node;
}
