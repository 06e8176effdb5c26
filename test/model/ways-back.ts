/** The roll-back of a plan: what the NodeRollout records of the plan's runs, and the plan that rolls a run back. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import type { NodeRolloutRun } from '../../src/api/refit/node-rollout.ts';
import { recordedRunIn } from '../../src/dialects/autopilot/plan/recorded-run.ts';
import {
  planBack,
  presentNodes,
  waysBack,
} from '../../src/dialects/autopilot/plan/roll-back-plan.ts';
import { phaseOfPlan } from '../../src/dialects/autopilot/plan/states.ts';
import { rolledBackBy } from '../../src/engine/model/earlier-versions.ts';
import { knownDownloads } from '../../src/engine/model/known-downloads.ts';
import type { Role } from '../../src/engine/model/rollout.ts';
import { idOfRun, orderedRun, qualifiedRunId } from '../../src/engine/model/runs.ts';
import { type KubeObject, nodes } from '../../src/kube/resources.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildWorldOf } from '../support/builders/worlds-of-kinds.ts';
import { type Configuration, NOW, OLD } from './cluster.ts';
import { OTHER_BUILD, V2, V3 } from './configure.ts';

/** An earlier run, which installed the version that all nodes run at first. */
const EARLIER_RUN: NodeRolloutRun = {
  ...recordOf({ planUid: 'plan-0', id: 'run-0', isOver: true, installed: [OLD] }),
  phase: 'done',
};
const FIRST_RUN = 'run-1';
const FIRST_PLAN = 'plan-1';
const ROLES: readonly Role[] = ['controller', 'worker'];

/**
 * Returns the plan as a new run sees it. If an ordered run has not begun yet, the returned plan has no status, because
 * the status belongs to the earlier run.
 */
export function begun(plan: Plan): Plan {
  const ordered = orderedRun(plan);
  if (ordered === undefined || recordedRunIn(plan)?.run === ordered) return plan;
  const { status: _, ...rest } = plan;
  return rest;
}

export function runIdOf(plan: Plan): string {
  return idOfRun(plan.spec.id ?? '', orderedRun(plan));
}

/**
 * Returns the runs that the NodeRollout records, the newest run first. The model always reads the newest record,
 * because a read of an older record is the same as an earlier decision.
 */
export function historyOf(plan: Plan): NodeRolloutRun[] {
  const { uid = '' } = plan.metadata;
  const isBack = rolledBackBy(plan) !== undefined;
  const isOver = !['new', 'running'].includes(phaseOfPlan(begun(plan).status?.state));
  const installed = plan.spec.commands.flatMap(({ k0supdate }) => k0supdate?.version ?? []);
  const own = { planUid: uid, id: runIdOf(plan), isOver, installed };
  if (!isBack) return [runFrom(OLD, own), EARLIER_RUN];
  const installable = [OTHER_BUILD, V2, V3];
  const first = { planUid: FIRST_PLAN, id: FIRST_RUN, isOver: true, installed: installable };
  return [runFrom(V2, own), runFrom(OLD, first), EARLIER_RUN];
}

interface RunFacts {
  readonly planUid: string;
  readonly id: string;
  readonly isOver: boolean;
  readonly installed: readonly string[];
}

function runFrom(before: string, facts: RunFacts): NodeRolloutRun {
  return {
    ...recordOf(facts),
    before: ROLES.map((role) => ({ role, version: before, nodes: [], others: true })),
  };
}

function recordOf({ planUid, id, isOver, installed }: RunFacts): NodeRolloutRun {
  const at = rfc3339(NOW);
  return {
    id,
    planUid,
    started: at,
    ...(isOver ? { ended: at } : {}),
    phase: isOver ? 'failed' : 'running',
    counts: { total: 0, done: 0, failed: 0, inProgress: 0, pending: 0, skipped: 0 },
    downloads: installed.map((version) => ({
      version,
      platform: 'linux-amd64',
      url: 'https://example.com/k0s',
    })),
  };
}

/**
 * Returns the roll-back plan that `refit rollback` creates and applies under the name of the deleted plan; undefined if
 * no node has to go back.
 */
export function wayBackOf(
  plan: Plan,
  objects: readonly KubeObject[],
  { nodes: specs, concurrent }: Configuration,
): Plan | undefined {
  const ofRole = (role: Role): KubeObject[] =>
    objects.filter((_, place) => specs[place]?.role === role);
  const world = buildWorldOf([controlNodes, ofRole('controller')], [nodes, ofRole('worker')]);
  const history = historyOf(plan);
  const [run] = history;
  if (run === undefined) return undefined;
  const ways = waysBack(run, presentNodes(world), []);
  if (ways.moves.length === 0 || ways.unable.length > 0) return undefined;
  const parts = { run: qualifiedRunId(run), downloads: knownDownloads(history), concurrent };
  const { metadata, ...made } = planBack(ways, parts, rfc3339(NOW));
  const { annotations: _, ...kept } = plan.metadata;
  return { ...made, metadata: { ...kept, ...metadata, uid: 'plan-2' } };
}
