/** Owns the way from a whole status to a Plan that lists what is in flight or failed, and ledgers that hold the rest. */
import { createHash } from 'node:crypto';
import type { Plan, TargetStatus } from '../../../api/autopilot/plan.ts';
import { plans } from '../../../api/autopilot/plan.ts';
import { type TargetLedger, targetLedgers } from '../../../api/refit/target-ledger.ts';
import type { Instruction, Ledgers, Seen, World } from '../../../engine/dialect.ts';
import { exceedPlan, PLAN_HOLDS } from '../../../engine/ledgers.ts';
import type { RecordedState, Target } from '../../../engine/model.ts';
import { apiVersionOf } from '../../../kube/resources.ts';
import { phaseOfPlan, recordedStateOf } from '../states.ts';
import { ledgerName, type Mark, markOf, withMark } from './mark.ts';
import { counted, type Progress } from './progress.ts';
import { listsOf, type TargetList, withLists } from './target-lists.ts';
import { entriesOf, ledgersOf } from './unfold.ts';

export interface Sizes {
  /** Targets of a plan that needs no ledgers, where their names leave room for so many. */
  readonly plan: number;
  readonly ledger: number;
  /** Failed targets that a plan with ledgers lists, which hold all of them. */
  readonly failures: number;
}

/**
 * 200 in a ledger make 75 of 15,000 targets; each write of one takes some 5 KiB. More than 1,000 failures nobody reads in one
 * object, and they must fit into it beside what is in flight.
 */
const SIZES: Sizes = { plan: PLAN_HOLDS, ledger: 200, failures: 1_000 };

export const ledgers = ledgersOfSizes(SIZES);

export function ledgersOfSizes(sizes: Sizes): Ledgers<Plan> {
  return {
    split(plan, record, world, now) {
      const lists = listsOf(record);
      const counts = countsOf(lists);
      const known = markOf(plan);
      const isSmall = !exceedPlan(
        lists.map(({ entries }) => entries),
        sizes.plan,
      );
      if (!known && isSmall) return { plan: record, writes: [] };
      const { mark, writes } = known
        ? { mark: known, writes: changesOf(known, lists, world) }
        : begin(plan, lists, sizes.ledger);
      const isOver = phaseOfPlan(record.status?.state) !== 'running';
      // The first record names the ledgers by the version of the plan that it was decided on: nothing may come between.
      const summary = known && counted(plan, counts, isOver, now);
      const short = withMark(shortened(record, sizes.failures), mark, counts);
      return { plan: short, writes, ...(summary ? { counted: summary } : {}) };
    },

    holding(plan, targets, world) {
      const mark = markOf(plan);
      return mark && targets.length > 0 ? holdersOf(ledgersOf(mark, world), targets) : [];
    },
  };
}

function holdersOf(found: readonly (TargetLedger | undefined)[], targets: readonly Target[]): Seen[] {
  const names = new Set(targets.map(({ name }) => name));
  return found
    .filter((ledger) => ledger !== undefined)
    .filter(({ pending, settled = [] }) =>
      [...pending, ...settled.flatMap((group) => group.targets)].some((name) => names.has(name)),
    )
    .map((object) => ({ resource: targetLedgers, object }));
}

/**
 * Ledgers are named by the version of the plan and by what is in them: whoever finds one that exists already finds what it
 * would have written, and what others began on another view stays unnamed until it goes with the plan.
 */
function begin(plan: Plan, lists: readonly TargetList[], size: number): { mark: Mark; writes: Instruction[] } {
  const contents = lists.flatMap(({ command, list, entries }) =>
    chunksOf(entries, size).map((chunk) => ({
      command,
      list,
      ...contentOf(chunk, chunk[0]?.lastUpdatedTimestamp ?? ''),
    })),
  );
  const { name, uid = '', resourceVersion } = plan.metadata;
  const hash = createHash('sha256').update(JSON.stringify([uid, resourceVersion, contents]));
  const mark = { prefix: `${name}-${hash.digest('hex').slice(0, 10)}`, ledgers: contents.length };
  const ownerReferences = [{ apiVersion: apiVersionOf(plans), kind: plans.kind, name, uid }];
  const writes = contents.map((content, index): Instruction => {
    const metadata = { name: ledgerName(mark, index), ownerReferences };
    const object: TargetLedger = {
      apiVersion: apiVersionOf(targetLedgers),
      kind: targetLedgers.kind,
      metadata,
      ...content,
    };
    return { kind: 'create', resource: targetLedgers, object };
  });
  return { mark, writes };
}

function chunksOf(entries: readonly TargetStatus[], size: number): TargetStatus[][] {
  const count = Math.ceil(entries.length / size);
  return Array.from({ length: count }, (_, index) => entries.slice(index * size, (index + 1) * size));
}

function changesOf(mark: Mark, lists: readonly TargetList[], world: World): Instruction[] {
  const entries = new Map(
    lists.map(({ command, list, entries: all }) => [
      `${command}/${list}`,
      new Map(all.map((entry) => [entry.name, entry])),
    ]),
  );
  return ledgersOf(mark, world).flatMap((ledger): Instruction[] => {
    if (!ledger) return [];
    const own = entries.get(`${ledger.command}/${ledger.list}`);
    // Of what is in flight the plan tells: a leader that sees an old node must not take back what another one wrote of its end.
    const news = entriesOf(ledger).flatMap((told) => {
      const entry = own?.get(told.name);
      return entry && recordedStateOf(entry.state) === 'intended' ? told : (entry ?? []);
    });
    const content = contentOf(news, ledger.since);
    if (JSON.stringify(content) === JSON.stringify(contentOfLedger(ledger))) return [];
    return [{ kind: 'replace', resource: targetLedgers, object: { ...ledger, ...content } }];
  });
}

type Content = Required<Pick<TargetLedger, 'since' | 'pending' | 'settled'>>;

const contentOfLedger = ({ since, pending, settled = [] }: TargetLedger): Content => ({ since, pending, settled });

function contentOf(entries: readonly TargetStatus[], since: string): Content {
  const groups = new Map<string, Content['settled'][number]>();
  const pending: string[] = [];
  for (const { name, state, lastUpdatedTimestamp } of entries) {
    if (isOpen(recordedStateOf(state))) {
      pending.push(name);
      continue;
    }
    const key = `${state} ${lastUpdatedTimestamp}`;
    const group = groups.get(key) ?? { state, since: lastUpdatedTimestamp, targets: [] };
    group.targets.push(name);
    groups.set(key, group);
  }
  return { since, pending, settled: [...groups.values()] };
}

const isOpen = (state: RecordedState): boolean => state === 'pending' || state === 'intended';

/** The plan with what is in flight, and the first of what failed. */
function shortened(record: Plan, most: number): Plan {
  let failures = 0;
  return withLists(record, ({ entries }) =>
    entries.filter(({ state }) => {
      const recorded = recordedStateOf(state);
      if (isOpen(recorded) || recorded === 'done') return recorded === 'intended';
      return ++failures <= most;
    }),
  );
}

function countsOf(lists: readonly TargetList[]): Omit<Progress, 'at'> {
  const counts = { total: 0, done: 0, inFlight: 0, pending: 0, failed: 0 };
  for (const { state } of lists.flatMap(({ entries }) => entries)) {
    counts.total++;
    const recorded = recordedStateOf(state);
    if (recorded === 'done') counts.done++;
    else if (recorded === 'intended') counts.inFlight++;
    else if (recorded === 'pending') counts.pending++;
    else counts.failed++;
  }
  return counts;
}
