/** Renders a state of the model: makes from its objects what the surfaces of the product tell, with the code of the product. */
import type { NodeRollout } from '../../src/api/refit/node-rollout.ts';
import { mediumOf } from '../../src/cli/output.ts';
import { planJson, type ShownPlan } from '../../src/cli/status/json-form.ts';
import { withLeaderless } from '../../src/cli/status/leaderless.ts';
import type { LeaderView } from '../../src/cli/status/load.ts';
import { render } from '../../src/cli/status/render.ts';
import { whyLines } from '../../src/cli/why/why-command.ts';
import { autopilotModule } from '../../src/dialects/autopilot/module.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { settle } from '../../src/engine/assess/advance.ts';
import { assess } from '../../src/engine/assess/assess.ts';
import { withRunBegun } from '../../src/engine/execute/restart.ts';
import { explain } from '../../src/engine/explain/explain.ts';
import { readForPeople, warningsOf } from '../../src/engine/explain/inspect.ts';
import { readPlan } from '../../src/engine/explain/plan-reading.ts';
import { answered } from '../../src/engine/model/asked.ts';
import { approvalsIn } from '../../src/engine/model/decisions-of-people.ts';
import { earlierRunsIn } from '../../src/engine/model/earlier-versions.ts';
import type { Role } from '../../src/engine/model/rollout.ts';
import type { RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import { statusOf } from '../../src/engine/report/node-rollout-status.ts';
import { gather, type Known } from '../../src/engine/snapshot/gather.ts';
import { freshWorld, OwnWrites } from '../../src/engine/snapshot/world.ts';
import { commandsFor } from '../../src/engine/turn/commands.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { decodeReport, decodeSignal, encodeReport } from '../../src/signal/annotations.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { Configuration } from '../model/cluster.ts';
import type { NodeGlance } from '../model/glance.ts';
import { resultsOf } from '../model/hook-runs.ts';
import { viewsOfRoles } from '../model/leader.ts';
import { policyFor } from '../model/leader-moves.ts';
import { named } from '../model/nameless.ts';
import { decisionsOn } from '../model/people.ts';
import type { Seen } from '../model/world.ts';
import type { Told } from './model-told.ts';

/** When people look, and whether a leader runs then. */
export interface Look {
  readonly hasLeader: boolean;
  /** The milliseconds since the state began. Nothing has changed since. */
  readonly afterMs: number;
}

/**
 * The looks at each state. A wait is reported only after a few seconds, so the second look comes a minute later. The
 * third look comes long after the last leader has ended.
 */
export const LOOKS: readonly Look[] = [
  { hasLeader: true, afterMs: 0 },
  { hasLeader: true, afterMs: 60_000 },
  { hasLeader: false, afterMs: 5 * 3_600_000 },
];

/** The functions that make what is told. A planted mistake replaces one of them. */
export interface Surfaces {
  readonly read: typeof readForPeople;
  /** Reads the plan as the leader does before it writes the NodeRollout. */
  readonly readAsLeader: typeof readPlan;
  readonly json: typeof planJson;
  readonly status: typeof render;
  readonly why: typeof whyLines;
  readonly nodeRollout: typeof statusOf;
}

export const REAL_SURFACES: Surfaces = {
  read: readForPeople,
  readAsLeader: readPlan,
  json: planJson,
  status: render,
  why: whyLines,
  nodeRollout: statusOf,
};

const SHAPE = { hasColours: false, size: () => ({ columns: 200, rows: 50 }) };
const MEDIUM = mediumOf(SHAPE);
/** How long the model's agents say that each finished node took. Their own clock stands still. */
const TOOK_MS = 40_000;

/** What the leader and the commands find in the state at `now`. */
function gatheredIn({ plan: stored, glance }: Seen, now: number, configuration: Configuration) {
  const policy: RolloutPolicy = { ...policyFor(configuration, stored), name: 'careful' };
  const objects: Record<Role, KubeObject[]> = { controller: [], worker: [] };
  for (const node of glance.nodes) objects[node.spec.role].push(objectShown(node));
  const world = freshWorld(viewsOfRoles(objects), new OwnWrites());
  const plan = withRunBegun({ dialect: autopilot, world }, stored, policy, now);
  const known = knownIn(stored, glance.nodes, configuration, policy, now);
  return { plan, policy, snapshot: gather(autopilot, plan, world, now, known) };
}

/** Returns what is told in the state. `previous` is the NodeRollout as the leader wrote it last. */
export function toldIn(
  seen: Seen,
  { hasLeader, afterMs }: Look,
  configuration: Configuration,
  surfaces: Surfaces,
  previous?: NodeRollout,
): Told {
  const now = seen.now + afterMs;
  const gathered = gatheredIn(seen, now, configuration);
  const { snapshot, policy } = gathered;
  const reading = surfaces.read(snapshot, policy, now, previous?.status?.history);
  const json = surfaces.json(reading, {
    dialect: autopilot.name,
    namespace: undefined,
    cluster: undefined,
    updateConfig: undefined,
    warnings: warningsOf(snapshot, policy, now, []),
    unseen: [],
  });
  const alone: ShownPlan = { ...json, texts: autopilotModule };
  const status = withLeaderless({ leader: leaderAt(hasLeader, seen.now), plans: [alone] });
  const [shown = alone] = status.plans;
  const lines = (node?: string): string => surfaces.why(status, node, now, MEDIUM).join('\n');
  const names = new Set(shown.stages.flatMap(({ targets }) => targets.map(({ name }) => name)));
  return {
    hasLeader,
    now,
    reading,
    shown,
    status: surfaces.status(status, 'text', now, SHAPE),
    wide: surfaces.status(status, 'wide', now, SHAPE),
    why: lines(),
    whyOf: new Map([...names].map((name) => [name, lines(name)])),
    nodeRollout: hasLeader ? nodeRolloutOf(gathered, now, surfaces, previous) : undefined,
  };
}

/**
 * Returns what the leader writes to the NodeRollout in the state; undefined if it first has to do something else.
 */
export function nodeRolloutIn(
  seen: Seen,
  configuration: Configuration,
  surfaces: Surfaces,
  previous: NodeRollout | undefined,
): Told['nodeRollout'] {
  return nodeRolloutOf(gatheredIn(seen, seen.now, configuration), seen.now, surfaces, previous);
}

function nodeRolloutOf(
  { plan, policy, snapshot }: ReturnType<typeof gatheredIn>,
  now: number,
  surfaces: Surfaces,
  previous: NodeRollout | undefined,
): Told['nodeRollout'] {
  const assessment = assess(snapshot, policy, now);
  if (commandsFor(assessment).some(({ kind }) => MOVES_ON.has(kind))) return undefined;
  const { waits } = explain(settle(assessment));
  const { generation } = plan.metadata;
  const reading = surfaces.readAsLeader(assessment, { waits, generation });
  return surfaces.nodeRollout({ reading }, previous, now);
}

/** The commands after which another turn follows at once. */
const MOVES_ON: ReadonlySet<string> = new Set([
  'restart',
  'roll-back',
  'retry',
  'probe',
  'record',
] satisfies ReturnType<typeof commandsFor>[number]['kind'][]);

function leaderAt(hasLeader: boolean, began: number): LeaderView {
  const since = rfc3339(began - 60_000);
  return hasLeader ? { state: 'held', holder: 'refit-1', since } : { state: 'none', since };
}

/** Returns the object of the node. A finished agent says how long it took. */
function objectShown({ object, spec }: NodeGlance): KubeObject {
  const found = named(object, spec.name);
  const { annotations } = found.metadata;
  const { created = '' } = decodeSignal(annotations) ?? {};
  const report = decodeReport(annotations, created);
  if (report?.spent === undefined) return found;
  const told = encodeReport({ ...report, spent: { Restart: TOOK_MS } });
  return { ...found, metadata: { ...found.metadata, annotations: { ...annotations, ...told } } };
}

/** Returns the answers that commands and leaders get if they ask in this state. */
function knownIn(
  plan: Seen['plan'],
  nodes: readonly NodeGlance[],
  { cordoner }: Configuration,
  { hooks = [] }: RolloutPolicy,
  now: number,
): Known {
  const controllers = nodes.filter(({ spec }) => spec.role === 'controller');
  const { spec: decided, status } = decisionsOn(plan) as NodeRollout;
  const history = status?.history ?? [];
  const drains = new Map(nodes.map(({ spec, drain }) => [spec.name, drain]));
  return {
    controlPlane: answered(
      controllers.map(({ spec, host }) => ({
        name: spec.name,
        ready: host.service?.life === 'up',
      })),
    ),
    preconditions: answered([]),
    decisions: answered({
      plan: plan.metadata.name,
      place: 'refit/any',
      exists: true,
      approvals: approvalsIn(decided.approvals),
      accepted: [],
      ...(history.length > 0 ? { earlierRuns: earlierRunsIn(history), history } : {}),
    }),
    drainDelegationOf: () => answered(cordoner === 'leader'),
    drainOf: (node) => {
      const drain = drains.get(node) ?? 'none';
      if (drain === 'none') return undefined;
      return drain === 'drained'
        ? { kind: drain, since: now }
        : { kind: drain, since: now, left: 1 };
    },
    hooks: nodes.flatMap(({ hookJobs, spec }) =>
      resultsOf(hookJobs).map((result, index) => {
        const when = hookJobs[index]?.when;
        const isOfPlan = when === 'beforePlan' || when === 'afterPlan';
        const hook = hooks.find((each) => each.when === when)?.name ?? '';
        return { ...result, hook, target: isOfPlan ? undefined : spec.name };
      }),
    ),
  };
}
