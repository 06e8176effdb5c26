/** The invariants of a plan with status shards. Their names are the names in docs/internals/safety.md. */
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import type { StatusShard } from '../../../src/api/refit/status-shard.ts';
import { TARGET_STATES } from '../../../src/dialects/autopilot/plan/states.ts';
import { listsOf } from '../../../src/dialects/autopilot/plan/status-shards/target-lists.ts';
import type { SignalData } from '../../../src/signal/annotations.ts';

export interface ShardGlance {
  /** The plan, including everything that its status shards contain. */
  readonly plan: Plan;
  /** The plan without the content of its status shards: all versions, the oldest first. */
  readonly listed: readonly Plan[];
  /** All versions of each status shard, the oldest first. */
  readonly shards: readonly (readonly StatusShard[])[];
  /** The signal on each version of a node's object, the oldest first, by node. */
  readonly signals: ReadonlyMap<string, readonly (SignalData | undefined)[]>;
}

interface ShardInvariant {
  readonly name: string;
  /** True if the invariant must hold only at the end of the run. */
  readonly atRest?: boolean;
  readonly holds: (glance: ShardGlance, slots: number) => boolean;
}

const isOpen = (signal: SignalData | undefined): boolean => signal !== undefined && !signal.status;

/**
 * Calls `holds` for each node, with the recorded states of the node and its newest signal. Reports whether the result
 * was true for all nodes.
 */
function everyNode(
  { plan, signals }: ShardGlance,
  holds: (states: string[], signal?: SignalData) => boolean,
): boolean {
  const entries = listsOf(plan).flatMap((list) => list.entries);
  return [...signals].every(([node, all]) => {
    const states = entries.filter(({ name }) => name === node).map(({ state }) => state);
    return holds(states, all.at(-1));
  });
}

/** Returns the state that must be recorded for a node at the end, which depends on its signal. */
function endOf(signal: SignalData | undefined): string {
  const answers = new Map([
    ['Completed', TARGET_STATES.done],
    ['Failed', TARGET_STATES.failed],
  ]);
  return answers.get(signal?.status?.status ?? '') ?? (signal ? 'none' : TARGET_STATES.pending);
}

/** Returns how many times the plan began to list the node as in flight. */
function startsOf(listed: readonly Plan[], node: string): number {
  const inFlight = listed.map((plan) =>
    listsOf(plan).some(({ entries }) =>
      entries.some(({ name, state }) => name === node && state === TARGET_STATES.intended),
    ),
  );
  return inFlight.filter((is, at) => is && !inFlight[at - 1]).length;
}

/**
 * Reports whether results of targets stay recorded: no later version of the status shard lists a settled target as
 * pending.
 */
function takesNothingBack(versions: readonly StatusShard[]): boolean {
  return versions.every(({ pending }, at) => {
    const settled = versions.slice(0, at).flatMap((version) => version.settled ?? []);
    return !settled.some(({ targets }) => targets.some((name) => pending.includes(name)));
  });
}

export const SHARD_INVARIANTS: readonly ShardInvariant[] = [
  {
    name: 'signals-within-slots',
    holds: ({ signals }, slots) =>
      [...signals.values()].filter((all) => isOpen(all.at(-1))).length <= slots,
  },
  {
    name: 'intent-before-signal',
    holds: (glance) =>
      everyNode(glance, (states, signal) => !signal || !states.includes(TARGET_STATES.pending)),
  },
  {
    name: 'no-signal-for-what-is-done',
    holds: (glance) =>
      everyNode(
        glance,
        (states, signal) => !isOpen(signal) || !states.includes(TARGET_STATES.done),
      ),
  },
  {
    name: 'started-once',
    holds: ({ listed, signals }) =>
      [...signals.keys()].every((name) => startsOf(listed, name) <= 1),
  },
  {
    name: 'nothing-reverted',
    holds: ({ shards }) => shards.every(takesNothingBack),
  },
  {
    name: 'states-match-signals',
    atRest: true,
    holds: (glance) => everyNode(glance, (states, signal) => states.join() === endOf(signal)),
  },
];
