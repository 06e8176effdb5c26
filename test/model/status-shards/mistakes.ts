/** Planted mistakes of leaders of plans with status shards, each with the invariant that it breaks. */
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { TARGET_STATES } from '../../../src/dialects/autopilot/plan/states.ts';
import { withLists } from '../../../src/dialects/autopilot/plan/status-shards/target-lists.ts';
import type { RecordSharding } from '../../../src/engine/contract/features.ts';
import { configureShards, type NamedShardConfiguration } from './configurations.ts';
import {
  type Objects,
  realShardLeader,
  type ShardLeader,
  SMALL_SHARDS,
  shardLeaderWith,
} from './shard-leader.ts';
import { PLAN } from './shards-world.ts';

export interface ShardMistake {
  readonly name: string;
  readonly configuration: NamedShardConfiguration;
  readonly leader: ShardLeader;
  readonly breaks: string;
}

/** Reverts a target in a status shard if the leader's own view shows the target in flight, as Refit once did. */
const takesBack = withShards({
  spread: (plan, record, world, now) => {
    const told = SMALL_SHARDS.spread(plan, record, world, now);
    return {
      ...told,
      writes: SMALL_SHARDS.spread(
        plan,
        { ...record, projected: withNobodyInFlight(record.projected) },
        world,
        now,
      ).writes,
    };
  },
});

function withNobodyInFlight(record: Plan): Plan {
  return withLists(record, ({ entries }) =>
    entries.map((entry) =>
      entry.state === TARGET_STATES.intended ? { ...entry, state: TARGET_STATES.pending } : entry,
    ),
  );
}

/** Trusts the content of the status shards in its own cache, without reading the shards again. */
const asksNoShard = withShards({ holding: () => [] });

/** Writes the plan first. Writes the status shards of the plan after that write is done. */
const planFirst: ShardLeader = async (view) => {
  const { first, next } = await realShardLeader(view);
  const isFirstRecord = first.some(({ object }) => object.metadata.resourceVersion === undefined);
  return next.length === 0 || isFirstRecord
    ? { first, next }
    : { first: [], next: [...next, ...first] };
};

/** Sends a signal immediately after the decision, together with the write that records the decision. */
const ahead: ShardLeader = async (view) => {
  const { first, next } = await realShardLeader(view);
  const record = next.at(-1);
  if (!record) return { first, next };
  const recorded = (objects: Objects): Objects => new Map([...objects, [PLAN, record.object]]);
  const early = await realShardLeader({
    seen: recorded(view.seen),
    current: recorded(view.current),
  });
  return { first: [...first, ...early.first], next };
};

const withoutLimit = shardLeaderWith({
  ...autopilot,
  sharding: SMALL_SHARDS,
  resolve: (...given) => {
    const rollout = autopilot.resolve(...given);
    return {
      ...rollout,
      stages: rollout.stages.map((stage) => ({ ...stage, maxInFlight: Infinity })),
    };
  },
});

/** Treats a signalled node as done. */
const tooEarly = shardLeaderWith({
  ...autopilot,
  sharding: SMALL_SHARDS,
  signal: {
    ...autopilot.signal,
    read: (...given) => {
      const seen = autopilot.signal.read(...given);
      return seen.kind === 'sent' ? { ...seen, kind: 'succeeded' } : seen;
    },
  },
});

function withShards(changed: Partial<RecordSharding<Plan>>): ShardLeader {
  return shardLeaderWith({ ...autopilot, sharding: { ...SMALL_SHARDS, ...changed } });
}

const oneByOne = configureShards('w1 w2', 1, 0);
const together = configureShards('w1 w2', 2, 0);
const failing = configureShards('w1 w2:bad', 2, 0);

export const SHARD_MISTAKES: readonly ShardMistake[] = [
  {
    name: 'the leader changes a recorded end in a status shard back to pending',
    configuration: together,
    leader: takesBack,
    breaks: 'nothing-reverted',
  },
  {
    name: 'the leader does not read the status shards again before it records an intent',
    configuration: oneByOne,
    leader: asksNoShard,
    breaks: 'started-once',
  },
  {
    name: 'the leader writes the plan before its status shards',
    configuration: oneByOne,
    leader: planFirst,
    breaks: 'started-once',
  },
  {
    name: 'the leader sends a signal before the plan records the intent',
    configuration: oneByOne,
    leader: ahead,
    breaks: 'intent-before-signal',
  },
  {
    name: 'the leader starts workers without a limit',
    configuration: oneByOne,
    leader: withoutLimit,
    breaks: 'signals-within-slots',
  },
  {
    name: 'the leader treats a signalled node as done',
    configuration: failing,
    leader: tooEarly,
    breaks: 'no-signal-for-what-is-done',
  },
  {
    name: 'the leader treats a signalled node as done',
    configuration: failing,
    leader: tooEarly,
    breaks: 'states-match-signals',
  },
];
