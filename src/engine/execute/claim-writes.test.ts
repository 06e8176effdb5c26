/**
 * Tests two leaders in different processes with outdated caches that share one limit: no more nodes than the limit are
 * in progress, and both plans are completed.
 */
import { expect, test } from 'vitest';
import { pick, seededRandom } from '../../../test/faults/random.ts';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildReconciler } from '../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  claimingDialect,
  type TablePlan,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later } from '../../../test/support/clock/times.ts';
import { WHOLE } from '../../../test/support/whole.ts';
import { annotated, type Node, nodes } from '../../kube/resources.ts';
import { claimOn, withClaim } from '../../signal/at-work.ts';
import type { Observation } from '../model/facts.ts';
import type { RolloutPhase, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const OWN = { patient: ['n1', 'n2'], yielding: ['n3', 'n4'] };
const NAMES = Object.values(OWN).flat();

const DIALECTS = { patient: claimingDialect('patient'), yielding: claimingDialect('yielding') };
const policyFor = () => buildPolicy({ maxUnavailable: { nodes: 1 } });

function scene() {
  const api = new MemoryApi();
  for (const name of NAMES) api.put(nodes, buildNode(name));
  const leaders = (['patient', 'yielding'] as const).map((name) => {
    const dialect = DIALECTS[name];
    const { metadata, ...plan } = buildTablePlan({ workers: OWN[name] });
    api.put(dialect.plans, { ...plan, metadata: { ...metadata, uid: `${name}-uid` } });
    const { reconcile, catchUp } = buildReconciler(dialect, api, { policyFor });
    return { dialect, reconcile, catchUp, running: false };
  });
  const read = (): Node[] => NAMES.map((name) => api.read(nodes, name));
  const atWork = (): Node[] =>
    read().filter(({ metadata }) => JSON.stringify(metadata).includes('sent'));
  const isDone = (): boolean =>
    leaders.every(
      ({ dialect }) => api.read<TablePlan>(dialect.plans, 'plan').status?.phase === 'done',
    );
  return { api, leaders, read, atWork, isDone };
}

const SEEDS = Array.from({ length: WHOLE ? 200 : 50 }, (_, seed) => seed);

test.each(SEEDS)(
  'leaders with the limit of one Node never have two at work and come to their end, whatever happens in between: seed %i',
  async (seed) => {
    const random = seededRandom(seed);
    const { api, leaders, read, atWork, isDone } = scene();
    for (let step = 0; step < 5_000 && !isDone(); step++) {
      const leader = pick(random, leaders);
      const what = random();
      if (what < 0.3) leader.catchUp();
      else if (what < 0.6 && !leader.running) {
        leader.running = true;
        void leader.reconcile('plan').finally(() => {
          leader.running = false;
        });
      } else if (what > 0.95) {
        const [node] = atWork();
        if (node) api.put(nodes, withAnswer(node, succeeded()));
      }
      for (let turns = random() * 10; turns > 0; turns--) await Promise.resolve();
      expect(atWork().length).toBeLessThan(2);
    }
    expect(isDone()).toBe(true);
    for (const { catchUp, reconcile } of leaders) {
      catchUp();
      await reconcile('plan');
    }
    expect(read().map(claimOn)).toEqual(NAMES.map(() => undefined));
  },
);

/**
 * Returns the only leader in the scene, whose dialect has the name `patient`, and functions that read from the API
 * server.
 */
function leaderOf(
  stages: Parameters<typeof buildRollout>[0],
  phase: RolloutPhase,
  dialect = DIALECTS.patient,
  more: Partial<RolloutPolicy> = {},
) {
  const api = new MemoryApi();
  for (const name of NAMES) api.put(nodes, buildNode(name));
  const { metadata } = buildTablePlan({});
  api.put(dialect.plans, { metadata, spec: buildRollout(stages, { phase }) });
  const { look } = buildReconciler(dialect, api, {
    policyFor: () => ({ ...policyFor(), ...more }),
  });
  const claimed = () => NAMES.filter((name) => claimOn(api.read(nodes, name)) !== undefined);
  const isSent = () => JSON.stringify(api.read(nodes, 'n1').metadata).includes('sent');
  return { api, look, claimed, isSent };
}

test('an intent that has no claim gets it before its signal', async () => {
  const { look, claimed, isSent } = leaderOf(
    [buildStage('worker', [buildTarget('n1', 'intended', { since: later(-60_000) })])],
    'running',
  );
  await look();
  expect([claimed(), isSent()]).toEqual([['n1'], false]);
  await look();
  expect([claimed(), isSent()]).toEqual([['n1'], true]);
});

test('a Node that is done in one stage and starts in the next keeps its claim', async () => {
  const stageOf = (id: string): Stage => ({
    ...buildStage('worker', []),
    id,
    targets: [buildTarget('n1', 'pending', { key: `${id}/n1` })],
  });
  const at = (id: string) => `example.com/${id}`;
  const dialect: typeof DIALECTS.patient = {
    ...DIALECTS.patient,
    signal: {
      read: (world, _rollout, { id }, { name }) =>
        JSON.parse(
          world.get(nodes, name)?.metadata.annotations?.[at(id)] ?? '{"kind":"none"}',
        ) as Observation,
      touches: (world, rollout, stage, target, plan) =>
        DIALECTS.patient.signal.touches(world, rollout, stage, target, plan),
      send(world, _rollout, { stage: { id }, target: { name, since } }) {
        const sent = JSON.stringify({ kind: 'sent', attempt: since, since });
        const node = world.get(nodes, name);
        return (
          node && { kind: 'replace', resource: nodes, object: annotated(node, { [at(id)]: sent }) }
        );
      },
    },
  };
  const { api, look, claimed } = leaderOf([stageOf('a'), stageOf('b')], 'new', dialect);
  for (let looks = 0; looks < 3; looks++) await look();
  api.change(nodes, 'n1', (node) => annotated(node, { [at('a')]: JSON.stringify(succeeded()) }));
  await look();
  expect(api.read(nodes, 'n1').metadata.annotations).toHaveProperty([at('b')]);
  expect(claimed()).toEqual(['n1']);
});

const GONE = 'patient//plan/gone-uid';

test('a claim that is left over is dropped, once more after a conflict, and whatever is refused elsewhere', async () => {
  const { api, look, claimed } = leaderOf([buildStage('worker', [])], 'new');
  for (const name of ['n1', 'n2']) api.change(nodes, name, (node) => withClaim(node, GONE));
  api.change(nodes, 'n3', (node) => withClaim(node, 'yielding//plan/gone-uid'));
  let conflicts = 1;
  api.before('replace nodes/n1', () => {
    if (conflicts-- > 0) api.put(nodes, api.read(nodes, 'n1'));
  });
  expect(await look()).toMatchObject({ requeueAfterMs: 1000 });
  expect(claimed()).toEqual(['n1', 'n3']);
  api.change(nodes, 'n2', (node) => withClaim(node, GONE));
  api.before('replace nodes/n1', () => {
    throw refusal(403, 'Forbidden');
  });
  expect(await look()).toMatchObject({ requeueAfterMs: 1000 });
  expect(claimed()).toEqual(['n1', 'n3']);
  api.before('replace nodes/n1', () => {
    throw refusal(403, 'Forbidden');
  });
  // Nothing else is left to do.
  expect(await look()).toMatchObject({ requeueAfterMs: 60_000 });
});

test('a claim that is refused holds up its own target alone, and is not asked for with each decision', async () => {
  const targets = [
    buildTarget('n2', 'intended', { since: later(0) }),
    buildTarget('n1', 'pending'),
  ];
  const { api, look, isSent, claimed } = leaderOf(
    [buildStage('worker', targets, { maxInFlight: 2 })],
    'running',
    undefined,
    {
      maxUnavailable: { nodes: 2 },
    },
  );
  const refuse = (): void =>
    api.before('replace nodes/n2', () => {
      refuse();
      throw refusal(403, 'Forbidden');
    });
  refuse();
  for (let looks = 0; looks < 4; looks++) await look();
  expect([claimed(), isSent()]).toEqual([['n1'], true]);
  const asked = () => api.calls.filter((call) => call.startsWith('replace')).length;
  const before = asked();
  for (let looks = 0; looks < 4; looks++) await look();
  expect(asked()).toBe(before);
});

const PATIENT = 'patient//plan/plan-uid';

test.each<[string, readonly string[], Observation]>([
  ['works on', ['n1'], { kind: 'working', step: 'Restart', attempt: later(0), since: later(0) }],
  [
    'has ended',
    [],
    { kind: 'failed', attempt: later(0), since: later(0), message: 'the binary does not start' },
  ],
])('a target that is recorded as late and %s: claims %j', async (_what, left, answer) => {
  for (const phase of ['running', 'failed'] as const) {
    const { api, look, claimed } = leaderOf(
      [buildStage('worker', [buildTarget('n1', 'failed')])],
      phase,
    );
    api.change(nodes, 'n1', (node) => withAnswer(withClaim(node, PATIENT), answer));
    for (let looks = 0; looks < 2; looks++) await look();
    expect(claimed()).toEqual(left);
  }
});

test('a plan that is paused before its signal, or is over, leaves the Node to others', async () => {
  const paused = leaderOf(
    [buildStage('worker', [buildTarget('n1', 'intended')])],
    'running',
    undefined,
    {
      paused: true,
    },
  );
  const over = leaderOf([buildStage('worker', [buildTarget('n1', 'intended')])], 'failed');
  for (const { api, look, claimed, isSent } of [paused, over]) {
    api.change(nodes, 'n1', (node) => withClaim(node, PATIENT));
    for (let looks = 0; looks < 3; looks++) await look();
    expect([claimed(), isSent()]).toEqual([[], false]);
  }
});

test('a later target of the plan counts as at work once another plan has its Node', async () => {
  const targets = ['n1', 'n2'].map((name) =>
    buildTarget(name, 'intended', { since: later(-60_000) }),
  );
  const { api, look, isSent } = leaderOf(
    [buildStage('worker', targets, { maxInFlight: 2 })],
    'running',
  );
  api.change(nodes, 'n2', (node) => withClaim(node, 'yielding//plan/other-uid'));
  for (let looks = 0; looks < 3; looks++) await look();
  expect(isSent()).toBe(false);
});
