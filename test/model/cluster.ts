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
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { recorded, statusOf } from '../support/builders/views.ts';
import { MINUTE, T0 } from '../support/clock/times.ts';
import type { TurningPoint } from './forward-phases.ts';
import type { Quality } from './host.ts';
import { ANY_NODE } from './nameless.ts';
import { tellingVersion } from './told-versions.ts';

export interface NodeSpec {
  readonly name: string;
  readonly role: Role;
  /** What the payload of the last command turns out to be on this node. */
  readonly payload: Quality;
  /** True where somebody else keeps its Node cordoned from the beginning on. */
  readonly isClosed: boolean;
  /** True where somebody holds it from the beginning on. */
  readonly isHeld: boolean;
  /** True where the policy pins it to the version that runs at first. */
  readonly isPinned: boolean;
  /** The wave of a worker, counted from 1; undefined where the policy has no waves. */
  readonly wave: string | undefined;
}

/** What the UpgradePolicy asks for beside limits and deadlines. */
export interface Rules {
  /** `in turn`: the second wave starts by itself · `approved`: it starts once somebody has approved it. */
  readonly waves?: 'in turn' | 'approved';
  /** True where the plan ends without the workers that are held or pinned. */
  readonly leavesOutHeld?: boolean;
  readonly retry?: RetryRule;
  /** True where the plan waits for people once more nodes failed than may. */
  readonly pausesOnFailure?: boolean;
  /** The moments at which a Job must succeed for each node. */
  readonly hooks?: readonly HookMoment[];
  /** True where the leader takes a failed run back. */
  readonly rollsBackOnFailure?: boolean;
}

/** What people may order once, at any moment; whoever pauses a plan lets it go on later. */
export type Order = 'abort' | 'pause' | 'retry' | 'approve' | 'unhold' | 'retryHooks';

export interface Configuration {
  /** In a few words, for tables. */
  readonly name: string;
  readonly nodes: readonly NodeSpec[];
  /** One command for each, in this order. Versions are ordered as texts. */
  readonly versions: readonly string[];
  /** The commands of a second plan that may take the place of the first at any moment; none where it stays. */
  readonly replacedBy: readonly string[];
  /** True where the first plan has ended at the beginning: every node with a good payload was upgraded, and every other one failed. */
  readonly startsUpgraded: boolean;
  /** True where the first plan has just upgraded the controllers, and no worker has begun: the way there is explored elsewhere. */
  readonly startsAtWorkers: boolean;
  /** When somebody may put its way back in the place of the plan: as `refit rollback` does, or while it runs, with kubectl. */
  readonly wayBack: 'never' | 'once it has ended' | 'at any moment';
  /** Where a person turns the plan back. Until then only what is fair happens: other configurations explore the way there. */
  readonly turnsBack?: TurningPoint;
  /** `one`: one at a time. It knows every signal that was sent, and its requests end before it acts on another plan. */
  readonly leaders: 'any' | 'one';
  /** Of the workers. */
  readonly concurrent: number;
  /** Crashes of agents, lost answers, failing steps, power losses and foreign writes, all together. */
  readonly faults: number;
  /** Beside those: crashes of its agent, or losses of power, that each node may suffer while it works on a signal. */
  readonly crashesEach: number;
  /** Who cordons, drains and uncordons Nodes: the leader, or each agent its own. ControlNodes have no Node here. */
  readonly cordoner: 'leader' | 'self';
  readonly controls: readonly Order[];
  /** True where others, too, cordon Nodes, as a fault each. */
  readonly othersCordon: boolean;
  /** The moments of the model's clock, in milliseconds since the Unix epoch; one where nothing depends on time. */
  readonly times: readonly number[];
  /** Milliseconds a target may be in flight, for leaders. */
  readonly targetDeadlineMs: number;
  /** True where the agents fetch ahead what the leader asks for. */
  readonly fetchesAhead: boolean;
  /** Workers that may fail before nothing new starts. */
  readonly maxFailures: number;
  readonly rules: Rules;
  /** Whether k0s's own agent is on as well, on every node, and ours is configured to leave signals to it. */
  readonly theirs: 'off' | 'on';
  /**
   * What our agent finds out about k0s's own one from a process that answers: nothing · in doubt: that it cannot be known ·
   * on: that it runs · on after the restart: that it runs in processes of the last version only.
   */
  readonly ownAgent: 'unknown' | 'in doubt' | 'on' | 'on after the restart';
  /** Whether it may go while the agent works on the service, and come back: always, or but once. */
  readonly power: 'stays' | 'returns' | 'may stay off';
}

/** The version that runs at first. */
export const OLD = 'v1.36.1+k0s.0';
export const WAVE_LABEL = 'wave';
export const PINNED_LABEL = 'pinned';
/** The number of the wave that needs an approval, where one does. */
export const SECOND_WAVE = 2;
/** Where nothing depends on time, all clocks stand still here; the plans were applied a minute ago. */
export const NOW = T0 + MINUTE;

export function firstPlan(configuration: Configuration): Plan {
  const plan = planFor(configuration, 1, configuration.versions);
  const { startsUpgraded, startsAtWorkers } = configuration;
  if (startsUpgraded) return { ...plan, status: endedStatus(configuration) };
  return startsAtWorkers ? { ...plan, status: statusAtWorkers(configuration) } : plan;
}

/** The version that the node runs at first. */
export function versionAtFirst(spec: NodeSpec, configuration: Configuration): string {
  const [version = OLD] = configuration.versions;
  return isUpgradedAtFirst(spec, configuration) ? version : OLD;
}

/** What the file turns out to be on the node: `payload` tells of the last command, and what an earlier one brings is good. */
export function qualityOn(
  { payload }: NodeSpec,
  configuration: Configuration,
  file: string | undefined,
): Quality {
  return isOfLastCommand(configuration, file) ? payload : 'good';
}

/** True for the file of a second plan, too. */
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

function statusWith(
  state: string,
  nodes: readonly NodeSpec[],
  stateOf: (spec: NodeSpec) => string,
): NonNullable<Plan['status']> {
  const statesOf = (role: Role) =>
    recorded(
      Object.fromEntries(
        nodes.filter((node) => node.role === role).map((node) => [node.name, stateOf(node)]),
      ),
      rfc3339(T0),
    );
  return statusOf(state, statesOf('controller'), statesOf('worker'));
}

/** As if the first one had been deleted and this one applied under its name. */
export function secondPlan(configuration: Configuration): Plan | undefined {
  const { replacedBy } = configuration;
  return replacedBy.length > 0 ? planFor(configuration, 2, replacedBy) : undefined;
}

function planFor(
  { nodes, concurrent, rules }: Configuration,
  run: number,
  versions: readonly string[],
): Plan {
  const named = (role: Role): string[] =>
    nodes.filter((node) => node.role === role).map(({ name }) => name);
  const targets = {
    controllers: listed(...named('controller')),
    workers: { ...listed(...named('worker')), limits: { concurrent } },
  };
  const commands = versions.map((version) => ({ k0supdate: buildUpdate({ version, targets }) }));
  const plan = buildPlan({ id: `run-${run}`, commands });
  const generation = rules.rollsBackOnFailure === true ? { generation: 1 } : {};
  return { ...plan, metadata: { ...plan.metadata, ...generation, uid: `plan-${run}` } };
}

/** True where the run may be taken back: then decisions depend on the versions that nodes tell. */
export function maySeeWayBack({ wayBack, rules }: Configuration): boolean {
  return wayBack !== 'never' || rules.rollsBackOnFailure === true;
}

/** Without its node's name. */
export function objectOf(spec: NodeSpec, configuration: Configuration): KubeObject | Node {
  const { role, isClosed, isHeld, isPinned, wave } = spec;
  const { fetchesAhead, startsUpgraded } = configuration;
  const isOfPlan = startsUpgraded || isUpgradedAtFirst(spec, configuration);
  const annotations = {
    // Leaders ask only agents of Refit.
    ...(fetchesAhead && { [AGENT_ANNOTATION]: encodePresence({ version: '1', since: '' }) }),
    ...(isOfPlan && { [ROLLOUT_ANNOTATION]: 'plan-1/run-1' }),
    ...(isHeld && { [HOLD_ANNOTATION]: 'it is on a call' }),
  };
  const labels = {
    ...(isPinned && { [PINNED_LABEL]: 'true' }),
    ...(wave !== undefined && { [WAVE_LABEL]: wave }),
  };
  const told = <T extends KubeObject>(object: T): T =>
    maySeeWayBack(configuration)
      ? tellingVersion(object, versionAtFirst(spec, configuration))
      : object;
  if (role === 'controller') return told(buildControlNode(ANY_NODE, { annotations, labels }));
  const node: Node = told(buildNode(ANY_NODE, { annotations, labels }));
  return isClosed ? { ...node, spec: { unschedulable: true } } : node;
}
