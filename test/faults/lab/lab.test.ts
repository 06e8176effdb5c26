/** Tests some of the lab's trials, which a seed chooses, and tests that the lab detects violations. */
import { expect, test } from 'vitest';
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import type { StatusShard } from '../../../src/api/refit/status-shard.ts';
import { shardsOfSizes } from '../../../src/dialects/autopilot/plan/status-shards/spread.ts';
import type { RecordSharding } from '../../../src/engine/contract/features.ts';
import type { Instruction } from '../../../src/engine/contract/signal.ts';
import type { Call, Caller } from '../../../src/kube/client.ts';
import { WHOLE } from '../../support/whole.ts';
import { pick, seededRandom } from '../random.ts';
import { throwDice } from './dice.ts';
import { isFine, play, describe as tell } from './mishaps.ts';
import { callTrials, SCENE, SHARDS, SWEEPS, type Trial, tryOut } from './sweeps.ts';

const SEED = Number(process.env['REFIT_SEED'] ?? 1);
/** The number of trials of each sweep. `npm run lab` runs all trials. */
const TRIALS = WHOLE ? 16 : 5;
const MIXTURES = WHOLE ? 6 : 2;

function some(trials: readonly Trial[]): Trial[] {
  const random = seededRandom(SEED);
  return Array.from({ length: TRIALS }, () => pick(random, trials));
}

test.each(SWEEPS)(`${TRIALS} faults: $name`, async (sweep) => {
  const trials = some(await sweep.trials(SEED));
  const ends: string[] = [];
  for (const trial of trials) {
    const { end, wrong } = await tryOut(trial, SEED);
    expect(wrong).toBe('');
    ends.push(end);
  }
  expect(ends.filter((end) => end === 'not reached').length).toBeLessThan(TRIALS / 5);
});

test.each(Array.from({ length: MIXTURES }, (_, index) => SEED + index))(
  'mixture %i',
  async (seed) => {
    const { scene, mishaps } = await throwDice(seed);
    const { verdict } = await play(scene, seed, mishaps);
    expect(isFine(verdict) ? '' : [...mishaps.map(tell), JSON.stringify(verdict)].join('\n')).toBe(
      '',
    );
  },
);

test('a plan that goes on within its failure budget never ends as Completed, and names who failed', async () => {
  const scene = { ...SCENE, payload: 'dead', payloadOf: ['w1'], maxFailures: 1 } as const;
  const { verdict } = await play(scene, SEED, []);
  expect(verdict).toMatchObject({
    end: 'ApplyFailed',
    reason: 'DoneWithFailures: 3 of 4 targets done; failed: w1',
    violations: [],
  });
});

test('an onlooker who allows fewer workers at once than the plan sees too many', async () => {
  const { verdict } = await play({ ...SCENE, allowed: 1 }, SEED, []);
  expect(verdict.violations).toEqual(['concurrent-workers']);
});

/** Removes the resourceVersion from every replacing write, so that the write overwrites newer changes. */
function careless(caller: Caller): Caller {
  const without = (call: Call): Call => {
    const { body } = call;
    const { metadata } = (body ?? {}) as { metadata?: { resourceVersion?: string } };
    if (call.method !== 'PUT' || !metadata) return call;
    const { resourceVersion: _, ...rest } = metadata;
    return { ...call, body: { ...(body as object), metadata: rest } };
  };
  return {
    ...caller,
    json: async <T>(call: Call): Promise<T> => await caller.json<T>(without(call)),
  };
}

/** Plants a mistake: if one target of a status shard is done, all targets of the shard are reported as done. */
function hasty(instruction: Instruction): Instruction {
  if (instruction.kind !== 'replace') return instruction;
  const { settled = [], pending, ...shard } = instruction.object as StatusShard;
  if (settled.length === 0) return instruction;
  const done = { state: 'SignalCompleted', since: shard.since, targets: pending };
  const object: StatusShard = { ...shard, settled: [...settled, done], pending: [] };
  return { ...instruction, object };
}

test('status shards that call more done than is are found out', async () => {
  const shards = shardsOfSizes({ plan: 1, shard: 3, failures: 1 });
  const spread: RecordSharding<Plan>['spread'] = (...asked) => {
    const { writes, ...rest } = shards.spread(...asked);
    return { ...rest, writes: writes.map(hasty) };
  };
  const { verdict } = await play(
    { ...SHARDS, concurrent: 1, shards: { ...shards, spread } },
    SEED,
    [],
  );
  expect(verdict.violations).toContain('k0supdate of w3 is not done, and told as SignalCompleted');
});

test('a leader that writes whatever others wrote since is found out', async () => {
  const scene = {
    ...SCENE,
    tamper: (actor: string, caller: Caller) => (actor === 'controller' ? careless(caller) : caller),
  };
  let wrong = '';
  for (const trial of await callTrials('', SCENE, SEED)) {
    if (trial.what === 'old or late data' && wrong === '')
      wrong = (await tryOut({ ...trial, scene }, SEED)).wrong;
  }
  expect(wrong).not.toBe('');
});
