/** Owns the mistakes that are planted in leaders of plans with ledgers, each with the invariant that it breaks. */
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { autopilot } from '../../../src/dialects/autopilot/dialect.ts';
import { withLists } from '../../../src/dialects/autopilot/ledgers/target-lists.ts';
import { TARGET_STATES } from '../../../src/dialects/autopilot/states.ts';
import type { Ledgers } from '../../../src/engine/dialect.ts';
import { configureLedgers, type NamedLedgerConfiguration } from './configurations.ts';
import { type LedgerLeader, ledgerLeaderWith, type Objects, realLedgerLeader, SMALL_LEDGERS } from './ledger-leader.ts';
import { PLAN } from './ledgers-world.ts';

export interface LedgerMistake {
  readonly name: string;
  readonly configuration: NamedLedgerConfiguration;
  readonly leader: LedgerLeader;
  readonly breaks: string;
}

/** Takes back what a ledger says of a target that its own view shows in flight, as Refit once did. */
const takesBack = withLedgers({
  split: (plan, record, world, now) => {
    const told = SMALL_LEDGERS.split(plan, record, world, now);
    return { ...told, writes: SMALL_LEDGERS.split(plan, withNobodyInFlight(record), world, now).writes };
  },
});

function withNobodyInFlight(record: Plan): Plan {
  return withLists(record, ({ entries }) =>
    entries.map((entry) =>
      entry.state === TARGET_STATES.intended ? { ...entry, state: TARGET_STATES.pending } : entry,
    ),
  );
}

/** Takes its own cache's word for what ledgers hold. */
const asksNoLedger = withLedgers({ holding: () => [] });

/** Writes the plan first, and its ledgers once that is done. */
const planFirst: LedgerLeader = async (view) => {
  const { first, next } = await realLedgerLeader(view);
  const isFirstRecord = first.some(({ object }) => object.metadata.resourceVersion === undefined);
  return next.length === 0 || isFirstRecord ? { first, next } : { first: [], next: [...next, ...first] };
};

/** Signals as soon as it decides to, beside the write that records it. */
const ahead: LedgerLeader = async (view) => {
  const { first, next } = await realLedgerLeader(view);
  const record = next.at(-1);
  if (!record) return { first, next };
  const recorded = (objects: Objects): Objects => new Map([...objects, [PLAN, record.object]]);
  const early = await realLedgerLeader({ seen: recorded(view.seen), current: recorded(view.current) });
  return { first: [...first, ...early.first], next };
};

const withoutLimit = ledgerLeaderWith({
  ...autopilot,
  ledgers: SMALL_LEDGERS,
  resolve: (...given) => {
    const campaign = autopilot.resolve(...given);
    return { ...campaign, stages: campaign.stages.map((stage) => ({ ...stage, maxInFlight: Infinity })) };
  },
});

/** Takes a node that was told to move for one that has. */
const tooEarly = ledgerLeaderWith({
  ...autopilot,
  ledgers: SMALL_LEDGERS,
  signal: {
    ...autopilot.signal,
    read: (...given) => {
      const seen = autopilot.signal.read(...given);
      return seen.kind === 'sent' ? { ...seen, kind: 'succeeded' } : seen;
    },
  },
});

function withLedgers(changed: Partial<Ledgers<Plan>>): LedgerLeader {
  return ledgerLeaderWith({ ...autopilot, ledgers: { ...SMALL_LEDGERS, ...changed } });
}

const oneByOne = configureLedgers('w1 w2', 1, 0);
const together = configureLedgers('w1 w2', 2, 0);
const failing = configureLedgers('w1 w2:bad', 2, 0);

export const LEDGER_MISTAKES: readonly LedgerMistake[] = [
  { name: 'an end is taken back', configuration: together, leader: takesBack, breaks: 'nothing-taken-back' },
  { name: 'no ledger is asked for', configuration: oneByOne, leader: asksNoLedger, breaks: 'started-once' },
  { name: 'the plan before its ledgers', configuration: oneByOne, leader: planFirst, breaks: 'started-once' },
  { name: 'a signal before its intent', configuration: oneByOne, leader: ahead, breaks: 'intent-before-signal' },
  { name: 'no limit on workers', configuration: oneByOne, leader: withoutLimit, breaks: 'signals-within-slots' },
  {
    name: 'a signal is taken for its end',
    configuration: failing,
    leader: tooEarly,
    breaks: 'no-signal-for-what-is-done',
  },
  { name: 'a signal is taken for its end', configuration: failing, leader: tooEarly, breaks: 'told-as-it-is' },
];
