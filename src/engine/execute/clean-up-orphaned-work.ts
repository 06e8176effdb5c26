/**
 * Ends orphaned work: cancels the signals of deleted plans, and removes the cordons of Refit. While nodes still do such
 * work, Refit keeps the locks that it shares with other tools.
 */
import type { LockKeeper } from '../../coordination/lock-keeper.ts';
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Clock } from '../../util/clock.ts';
import { settleAll } from '../../util/waits.ts';
import { assess } from '../assess/assess.ts';
import type { OrphanedPlan } from '../contract/features.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Reporter } from '../report/reporter.ts';
import { followLocksOfOrphans } from '../snapshot/followed-locks.ts';
import { gatherOrphaned, type Known } from '../snapshot/gather.ts';
import { type RefusedWrites, refusedPartOf } from '../snapshot/refused-writes.ts';
import type { View } from '../snapshot/world.ts';
import { commandsFor } from '../turn/commands.ts';
import {
  claimsLeft,
  conditionsLeft,
  dropClaim,
  dropConditions,
  dropMarks,
  marksLeft,
} from './claim-writes.ts';
import { runNodeActions } from './run-node-actions.ts';
import type { Effects } from './writes.ts';

interface Parts extends Effects {
  readonly clock: Clock;
  readonly refusals: RefusedWrites;
  readonly reporter?: Pick<Reporter, 'cleared'> | undefined;
  readonly locks?: Pick<LockKeeper, 'follow' | 'forget'> | undefined;
  /** Returns the policy of a deleted plan. `plan` is a substitute that has the name of the deleted plan. */
  policyFor(plan: KubeObject): RolloutPolicy;
}

/** Milliseconds until the next clean-up after a conflicting write, or while a node has not answered yet. */
const RECHECK_MS = 1000;
/** Milliseconds until the next clean-up if the API server refused to remove claims, and no claim was removed. */
const REFUSED_MS = 60_000;

/**
 * Ends the work of deleted plans and removes unneeded claims, including those of the plan with this key. It first lists the plans at the
 * API server, because a cache may lack a plan that exists.
 */
export async function cleanUpOrphanedWork(parts: Parts, cached: View<KubeObject>, key: string) {
  const { dialect, client, world, ownWrites, clock, reporter, abort } = parts;
  const orphansAmong = (plans: readonly KubeObject[]) =>
    dialect.orphanedWork?.plans(world, plans) ?? [];
  const nodeActionsAmong = (plans: readonly KubeObject[], orphans = orphansAmong(plans)) =>
    orphans
      .filter(
        ({ plan }) =>
          keyOf(plan) === key || plans.every(({ metadata }) => metadata.uid !== plan.metadata.uid),
      )
      .map((orphanedPlan) => nodeActionsFor(parts, orphanedPlan));
  const claimsAmong = (plans: readonly KubeObject[]) => claimsLeft(parts, plans, key, clock.now());
  const known = ownWrites.latestOfAll(dialect.plans, cached);
  const marksAmong = (plans: readonly KubeObject[]) => marksLeft(parts, plans, key, clock.now());
  const conditionsAmong = (plans: readonly KubeObject[]) =>
    conditionsLeft(parts, plans, key, clock.now());
  const orphans = orphansAmong(known);
  followLocksOfOrphans(parts, orphans);
  const isNone = nodeActionsAmong(known, orphans).every(
    ({ nodeActions }) => nodeActions.length === 0,
  );
  const lefts = [claimsAmong, marksAmong, conditionsAmong];
  if (isNone && lefts.every((leftAmong) => leftAmong(known).length === 0)) return {};
  const { plans, planObjects: { namespace, fieldSelector } = {} } = dialect;
  const found = await ifFound(client.listAll(plans, { abort, namespace, fieldSelector }));
  // If the kind is not found, its CRD was deleted together with all plans.
  const claims = claimsAmong(found?.items ?? known);
  const dropped = await settleAll(claims.map(async (left) => await dropClaim(parts, left)));
  const marks = marksAmong(found?.items ?? known);
  const unmarked = await settleAll(marks.map(async (left) => await dropMarks(parts, left)));
  const conditions = conditionsAmong(found?.items ?? known);
  const cleared = await settleAll(
    conditions.map(async (left) => await dropConditions(parts, left, clock.now())),
  );
  const left = nodeActionsAmong(found?.items ?? known).filter(
    ({ nodeActions }) => nodeActions.length > 0,
  );
  for (const { rollout, nodeActions } of left)
    await runNodeActions({ ...parts, rollout, now: clock.now() }, nodeActions, {
      isCurrent: async () => await Promise.resolve(true),
      onDone: (nodeAction) => reporter?.cleared(rollout, nodeAction),
      onRefused: (nodeAction, words) =>
        parts.refusals.add(rollout, nodeAction, words, refusedPartOf(nodeAction, words)),
    });
  const written = [...dropped, ...unmarked, ...cleared];
  const requeueAfterMs = left.length > 0 || written.includes(true) ? RECHECK_MS : REFUSED_MS;
  return left.length + written.length > 0 ? { requeueAfterMs } : {};
}

function nodeActionsFor(
  { dialect, world, clock, drains, refusals }: Parts,
  { rollout, plan }: OrphanedPlan,
) {
  const now = clock.now();
  const known: Known = {
    drainOf: (node, owner) => drains?.stateOf(node, owner),
    refusalOf: (of, target, part) => refusals.of(of, target, part),
  };
  const snapshot = gatherOrphaned({ dialect, plan, rollout, world, known }, now);
  const commands = commandsFor(assess(snapshot, DEFAULT_POLICY, now));
  const nodeActions = commands.flatMap((each) =>
    each.kind === 'node-action' ? [each.nodeAction] : [],
  );
  return { rollout, nodeActions };
}
