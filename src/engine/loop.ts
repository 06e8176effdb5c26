/**
 * The loop of one plan: it takes a snapshot, assesses the snapshot and carries out the commands, until nothing is left
 * to do for the moment.
 */
import { type KubeObject, nodes, splitKey } from '../kube/resources.ts';
import { isOfObject } from '../kube/status-error.ts';
import type { ReconcileContext, ReconcileResult } from '../runtime/run-controller.ts';
import type { Clock } from '../util/clock.ts';
import { soonest } from '../util/soonest.ts';
import { assess } from './assess/assess.ts';
import { failuresDecided } from './assess/target-failures.ts';
import { plansAmong, withRulesOfParts } from './contract/plan-objects.ts';
import { cleanUpOrphanedWork } from './execute/clean-up-orphaned-work.ts';
import { copyControls } from './execute/copy-controls.ts';
import { execute, type Outcome, RECHECK_SOON } from './execute/execute.ts';
import { withRunBegun } from './execute/restart.ts';
import type { Effects } from './execute/writes.ts';
import { UNASKED } from './model/asked.ts';
import { titleOf } from './model/plan-reference.ts';
import { because } from './model/reasons.ts';
import type { RolloutPolicy } from './policy/rollout-policy.ts';
import type { Reporter } from './report/reporter.ts';
import { frozenWorld } from './snapshot/frozen-world.ts';
import { gather } from './snapshot/gather.ts';
import {
  followOutsideWork,
  forgetOutsideWork,
  type OutsideParts,
  outsideResults,
} from './snapshot/outside-work.ts';
import type { Prober } from './snapshot/probes.ts';
import { termMemory } from './snapshot/term-memory.ts';
import type { View } from './snapshot/world.ts';
import type { HooksCommand } from './turn/choose-hooks.ts';
import { commandsFor } from './turn/commands.ts';

export interface ReconcilerOptions extends Effects, OutsideParts {
  readonly plans: View<KubeObject>;
  policyFor(plan: KubeObject): RolloutPolicy;
  readonly clock: Clock;
  readonly prober: Prober;
  readonly reporter?: Reporter | undefined;
  /** The client of the cluster that has the NodeRollouts; undefined if they are in the cluster of the plans. */
  readonly nodeRollouts?: { readonly client: Effects['client'] } | undefined;
}

/**
 * The maximum number of turns in one reconcile. No plan needs so many turns. The limit only stops an endless loop,
 * which only a bug of Refit could cause.
 */
const MAX_TURNS = 20;

type Reconcile = (key: string, context?: Partial<ReconcileContext>) => Promise<ReconcileResult>;

/** Returns the reconciler of plans for one term of leadership. */
export function createReconciler(options: ReconcilerOptions): Reconcile {
  const { dialect, world, plans, clock, reporter, hooks, locks } = options;
  const kinds = dialect.watched.map(({ resource }) => resource);
  const memory = termMemory(options, (rollout, at, reason) =>
    reporter?.refused(rollout, at, reason),
  );
  return async function reconcile(key, { abort, stop } = {}) {
    const title = titleOf(dialect, key);
    const hooksOfPlan = hooks && {
      follow: ({ due, kept, settled }: HooksCommand) => hooks.follow(title, due, kept, settled),
    };
    const parts = { ...options, abort, refusals: memory.refusals, hooks: hooksOfPlan };
    const answers = memory.newAnswers(key);
    const cleanUp = async (): Promise<number | undefined> => {
      const { requeueAfterMs } = await cleanUpOrphanedWork(parts, plans, key);
      return soonest([requeueAfterMs, memory.refusals.nextMs()]);
    };
    let hasRecorded = false;
    for (let turns = 0; turns < MAX_TURNS; turns++) {
      abort?.throwIfAborted();
      if (stop?.aborted === true) break;
      const stored = planAt(options, key);
      if (!stored) {
        forget(options, key);
        forgetOutsideWork(options, title);
        memory.forget(key);
        try {
          return { requeueAfterMs: await cleanUp() };
        } finally {
          // The locks are forgotten only after the clean-up: while nodes still work for the plan, the clean-up makes the keeper hold the
          // locks.
          locks?.forget(title);
        }
      }
      if (turns === 0 && !(await copyControls(parts, stored))) return RECHECK_SOON;
      const policy = withRulesOfParts(dialect, stored, options.policyFor(stored), world);
      const now = clock.now();
      const plan = withRunBegun(options, stored, policy, now);
      const known = {
        ...memory.knownOf(key, answers, policy),
        ...outsideResults(options, title),
        decisions: answers.known.decisions ?? UNASKED,
        hasRecorded,
      };
      const snapshot = gather(dialect, plan, frozenWorld(world, kinds), now, known);
      followOutsideWork(options, title, snapshot, policy, now);
      const assessment = assess(snapshot, policy, now);
      let outcome: Outcome;
      try {
        outcome = await execute(parts, answers, { plan, assessment }, commandsFor(assessment));
      } catch (error) {
        if (isOfObject(error)) {
          reportRefusal(options, plan, error.message);
          // The claims of this plan are cleaned up, because other plans wait for them.
          await cleanUp();
        }
        throw error;
      }
      if (outcome === 'recorded') {
        hasRecorded = true;
        memory.failed(key, failuresDecided(assessment));
      }
      // No clean-up follows here, because the next record needs the claims that were written before this record failed.
      if (outcome === 'outdated') return RECHECK_SOON;
      if (typeof outcome === 'object')
        return { ...outcome, requeueAfterMs: soonest([outcome.requeueAfterMs, await cleanUp()]) };
    }
    return RECHECK_SOON;
  };
}

/** Returns the plan as this process knows it; undefined if it was deleted, or is no plan of the dialect. */
function planAt({ dialect, ownWrites, plans }: ReconcilerOptions, key: string) {
  const { name, namespace } = splitKey(key);
  const stored = ownWrites.latest(dialect.plans, plans, name, namespace);
  if (!stored || stored.metadata.deletionTimestamp !== undefined) return undefined;
  const { planObjects = {} } = dialect;
  if (planObjects.isPlan?.(stored) === false) return undefined;
  // Another object may represent the plan now.
  const isOther = ({ metadata }: KubeObject): boolean => metadata.name !== name;
  return planObjects.representing && plansAmong(dialect, plans.list()).every(isOther)
    ? undefined
    : stored;
}

function forget({ reporter, drains, world }: ReconcilerOptions, key: string): void {
  reporter?.gone(key);
  // Some dialects use Nodes as plans. The drain of a deleted Node ends, unless a Node with the same
  // name is cordoned.
  const { name } = splitKey(key);
  drains?.keep((node) => node !== name || world.get(nodes, node)?.spec?.unschedulable === true);
}

/** Reports that the API server refused to write the record of the plan. Only an Event can say so, because the status cannot be written. */
function reportRefusal({ reporter }: ReconcilerOptions, plan: KubeObject, problem: string): void {
  const message = `the API server refuses to record the next step: ${problem}`;
  reporter?.failed(plan, because('RecordRefused', message));
}
