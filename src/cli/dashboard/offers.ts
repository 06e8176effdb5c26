/**
 * Says which commands would do something for a plan, so that the page shows a button only for these commands. The server
 * checks each request again, because the plan may have changed since.
 */
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { acceptancesIn } from '../../engine/model/decisions-of-people.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import type { RollBackWay } from '../contract/roll-back.ts';
import { historyOf } from '../history/history.ts';
import type { ShownPlan } from '../status/json-form.ts';
import * as sentences from '../status/sentences.ts';
import type { PagePlan } from './state.ts';

export type Offers = Pick<PagePlan, 'closed' | 'acceptable' | 'leftOut' | 'rollBack'>;

export interface BesidePlan {
  /** The NodeRollout of the plan; undefined if the viewer may not read it, or if there is none. */
  readonly rollout: NodeRollout | undefined;
  /** How plans of the dialect go back; undefined if that is not known. */
  readonly way: RollBackWay | undefined;
}

/** Returns what the page may offer. A member is absent if its command would do nothing. */
export function offersOf(plan: ShownPlan, { rollout, way }: BesidePlan, now: number): Offers {
  const closed = closedBy(plan);
  const acceptable = acceptableChecks(plan, rollout, now);
  const leftOut = leftOutNodes(plan);
  const rollBack = rollBackOf(plan, { rollout, way });
  return {
    ...(closed === undefined ? {} : { closed }),
    ...(acceptable.length === 0 ? {} : { acceptable }),
    ...(leftOut.length === 0 ? {} : { leftOut }),
    ...(rollBack === undefined ? {} : { rollBack }),
  };
}

function closedBy({ situations }: ShownPlan): Offers['closed'] {
  // An opening that does not count during a blackout would let no node start.
  if (situations.some(({ kind }) => kind === 'Blackout')) return 'blackout';
  return situations.some(({ kind }) => kind === 'WindowClosed') ? 'window' : undefined;
}

/** Returns the names of the checks that keep nodes from starting, and whose failure nobody has accepted in this run. */
function acceptableChecks(
  plan: ShownPlan,
  rollout: NodeRollout | undefined,
  now: number,
): readonly string[] {
  const { abort, checks = [], waits } = plan;
  if (!isOpenPlan(plan) || abort !== undefined || rollout === undefined) return [];
  const isStoppedByUnknown = waits.some(({ reason }) => reason.code === 'HealthUnknown');
  const accepted = acceptancesIn(rollout.spec.accepted).filter(
    ({ run, until }) => isRunOf(run, plan) && (until === undefined || now < Date.parse(until)),
  );
  return checks
    .filter(({ state }) => state === 'Failing' || (state === 'Unknown' && isStoppedByUnknown))
    .map(({ name }) => name)
    .filter((name) => !accepted.some(({ check }) => check === name));
}

/** Returns true if a decision about this run is about the present run of the plan. The number of a later run may follow. */
function isRunOf(run: string, { uid, id }: ShownPlan): boolean {
  const own = `${uid}/${id}`;
  return run === own || run.startsWith(`${own}/`);
}

/** A retry of a pinned node would only leave it out once more, so pinned nodes do not count. */
function leftOutNodes({ situations, texts }: ShownPlan): readonly string[] {
  if (texts.advice.retry === undefined) return [];
  return situations.flatMap((each) => (each.kind === 'LeftOut' ? each.nodes : []));
}

/** Returns how people take the nodes of the plan back; undefined if no node of it can go back now. */
function rollBackOf(plan: ShownPlan, { rollout, way }: BesidePlan): Offers['rollBack'] {
  const { uid, wayBack } = plan;
  const hasChanged = sentences
    .targetsOf(plan)
    .some(({ phase, hadVersion }) => phase === 'failed' || (phase === 'done' && !hadVersion));
  if (way === undefined || isOpenPlan(plan) || !hasChanged || wayBack?.state === 'closed')
    return undefined;
  if (way.kind === 'byHand' && plan.goesBack === true) return undefined;
  if (way.kind === 'byHand')
    return { kind: 'byHand', sentence: `Going back is done by hand: ${way.instead}.` };
  const runs = rollout === undefined ? [] : historyOf(rollout).runs;
  const run = runs.find(({ planUid }) => planUid === uid);
  if (run?.ended === undefined) return undefined;
  // It is not clear whether people want to continue such a roll-back or to undo it, so the command needs another option.
  if (run.rollsBack !== undefined && run.phase !== 'done') return undefined;
  return { kind: 'command', takesImage: way.takesImage };
}
