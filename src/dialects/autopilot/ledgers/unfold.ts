/** Owns reading a Plan whose targets stand in ledgers: its status as it would be if it held all of them. */
import type { Plan, TargetStatus } from '../../../api/autopilot/plan.ts';
import { type TargetLedger, targetLedgers } from '../../../api/refit/target-ledger.ts';
import type { World } from '../../../engine/dialect.ts';
import { because, type Reason } from '../../../engine/reasons.ts';
import { PLAN_STATES, phaseOfPlan, TARGET_STATES } from '../states.ts';
import { ledgerName, type Mark, markOf, textBesideMark } from './mark.ts';
import { progressOf } from './progress.ts';
import { listsOf, withLists } from './target-lists.ts';

export interface Unfolded {
  readonly plan: Plan;
  /** Why ledgers that belong to it are not in it. */
  readonly unread?: Reason;
}

/** The very same plan where its status holds everything. The mark is taken out of its description. */
export function unfold(plan: Plan, world: World): Unfolded {
  const mark = markOf(plan);
  if (!mark) {
    const lost = plan.status?.state && progressOf(plan) !== undefined;
    if (!lost) return { plan };
    const message = 'the description of command 0 does not name the TargetLedgers of the plan any more';
    return { plan, unread: because('RecordUnread', message) };
  }
  const found = ledgersOf(mark, world);
  const missing = found.findIndex((ledger) => ledger === undefined);
  const ledgers = found.filter((ledger) => ledger !== undefined);
  const whole = withoutMark(withTargets(plan, ledgers));
  if (missing < 0) return { plan: reopened(whole) };
  const message = `TargetLedger ${ledgerName(mark, missing)} is not to be seen, and what it holds is not known`;
  return { plan: whole, unread: because('RecordUnread', message) };
}

/**
 * Ours says `Completed` once all ledgers do. A leader that knows none of them says so of what the plan lists: then it goes on.
 */
function reopened(whole: Plan): Plan {
  if (phaseOfPlan(whole.status?.state) !== 'done') return whole;
  const isOpen = listsOf(whole).some(({ entries }) => entries.some(({ state }) => state === TARGET_STATES.pending));
  if (!isOpen || !whole.status) return whole;
  return { ...whole, status: { ...whole.status, state: PLAN_STATES.schedulableWait } };
}

/** In their order; undefined for each that the world does not show. */
export function ledgersOf(mark: Mark, world: World): (TargetLedger | undefined)[] {
  return Array.from({ length: mark.ledgers }, (_, index) => world.get(targetLedgers, ledgerName(mark, index)));
}

/** What the plan lists counts: a ledger is written before it, and the plan says whether that was the whole record. */
function withTargets(plan: Plan, ledgers: readonly TargetLedger[]): Plan {
  return withLists(plan, ({ command, list, entries }) => {
    const own = ledgers.filter((ledger) => ledger.command === command && ledger.list === list);
    const listed = new Map(entries.map((entry) => [entry.name, entry]));
    return own.flatMap(entriesOf).map((entry) => listed.get(entry.name) ?? entry);
  });
}

/** In the order in which they stand there. */
export function entriesOf({ settled = [], pending, since }: TargetLedger): TargetStatus[] {
  return [
    ...settled.flatMap((group) => group.targets.map((name) => entryOf(name, group.state, group.since))),
    ...pending.map((name) => entryOf(name, TARGET_STATES.pending, since)),
  ];
}

const entryOf = (name: string, state: string, lastUpdatedTimestamp: string): TargetStatus => ({
  name,
  state,
  lastUpdatedTimestamp,
});

function withoutMark(plan: Plan): Plan {
  if (!plan.status) return plan;
  const commands = plan.status.commands.map((command) => {
    const { description: _, ...rest } = command;
    const text = textBesideMark(command);
    return text === undefined ? rest : { ...rest, description: text };
  });
  return { ...plan, status: { ...plan.status, commands } };
}
