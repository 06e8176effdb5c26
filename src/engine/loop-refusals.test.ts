/** Proves that a Node which the API server refuses to change does not block the other Nodes of its plan. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { failed, NONE, sent, succeeded } from '../../test/support/builders/observations.ts';
import { buildReconciler } from '../../test/support/builders/reconcilers.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  cancellable,
  type TablePlan,
  tableDialect,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../test/support/clock/times.ts';
import { withPendingTaint } from '../drain/cordon-marks.ts';
import type { KubeClient } from '../kube/client.ts';
import { annotated, type KubeObject, nodes } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { settle } from './assess/advance.ts';
import type { Signal } from './contract/signal.ts';
import type { World } from './contract/world.ts';
import { carryOut, type Effects } from './execute/writes.ts';
import { explain } from './explain/explain.ts';
import { ABORT_ANNOTATION } from './model/controls.ts';
import type { Observation } from './model/facts.ts';
import type { Stage, Target } from './model/rollout.ts';
import type { Reporter } from './report/reporter.ts';
import { OwnWrites } from './snapshot/world.ts';

const FORBIDDEN = refusal(403, 'Forbidden');
/** The error of a real API server whose webhook cannot be called. */
const NO_WEBHOOK = new StatusError({
  kind: 'Status',
  code: 500,
  reason: 'InternalError',
  message:
    'Internal error occurred: failed calling webhook "nodes.example.com": connection refused',
});

/** Builds a scene with the Node `w1`, whose changes are refused, and the Node `w2`. */
function rig(
  answer: Observation,
  annotations = {},
  dialect = cancellable(NONE),
  answered = FORBIDDEN,
  keptOf = (object: KubeObject) => object,
) {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const told: string[] = [];
  for (const name of ['w1', 'w2']) api.put(nodes, withAnswer(buildNode(name), answer));
  const stage = buildStage('worker', [
    buildTarget('w1', 'intended'),
    buildTarget('w2', 'intended'),
  ]);
  const { metadata, ...plan } = buildTablePlan({});
  api.put(dialect.plans, {
    ...plan,
    metadata: { ...metadata, annotations },
    status: buildRollout([stage]),
  });
  const refuse = (): void =>
    api.before('replace nodes/w1', () => {
      refuse();
      throw answered;
    });
  refuse();
  const reporter: Partial<Reporter> = {
    recorded: () => undefined,
    sent: () => undefined,
    ran: () => undefined,
    decided: async ({ assessment }) => {
      const { waits } = explain(settle(assessment));
      told.push(...waits.map(({ gate, reason }) => `${gate}: ${reason.code}`));
      return await Promise.resolve(undefined);
    },
    refused: (_rollout, _at, { message }) => told.push(message),
    failed: (_plan, { code, message }) => told.push(`${code}: ${message}`),
  };
  const client: KubeClient = {
    ...api.client,
    replace: async (resource, object, options) =>
      await api.client.replace(resource, keptOf(object) as never, options),
  };
  const { plans, look } = buildReconciler(dialect, api, {
    clock,
    client,
    reporter: reporter as Reporter,
  });
  const tries = (name: string): number =>
    api.calls.filter((call) => call === `replace nodes/${name}`).length;
  const states = (): unknown[] => {
    plans.catchUp();
    const [found] = plans.list();
    return (found?.status?.stages ?? []).flatMap(({ targets }) =>
      targets.map(({ state }) => state),
    );
  };
  return { api, look, tries, told, clock, states };
}

const REFUSED = 'w1: the API server refuses to change its object: Forbidden by the test';

test('a signal that is refused is tried again after a growing pause; the others get theirs', async () => {
  const { look, tries, told, clock } = rig(NONE);
  expect(await look()).toMatchObject({ requeueAfterMs: 2_000 });
  expect([tries('w1'), tries('w2')]).toEqual([1, 1]);
  expect(told).toEqual([REFUSED, 'write: TargetRefused', 'signalled: Signalled']);
  await look();
  expect(tries('w1')).toBe(1);
  await clock.advance(2_000);
  expect(await look()).toMatchObject({ requeueAfterMs: 4_000 });
  expect([tries('w1'), tries('w2')]).toEqual([2, 1]);
  expect(told.filter((each) => each === REFUSED)).toHaveLength(1);
});

test('a webhook that does not answer holds up its own node, whose wait says so', async () => {
  const { look, tries, told, clock } = rig(NONE, {}, cancellable(NONE), NO_WEBHOOK);
  const refused = `w1: the API server refuses to change its object: ${NO_WEBHOOK.message}`;
  expect(await look()).toMatchObject({ requeueAfterMs: 2_000 });
  expect(told).toEqual([refused, 'write: TargetRefused', 'signalled: Signalled']);
  await clock.advance(2_000);
  expect(await look()).toMatchObject({ requeueAfterMs: 4_000 });
  expect([tries('w1'), tries('w2')]).toEqual([2, 1]);
});

test('a signal that the server accepts and does not keep is no signal: that is said, and tried again after a pause', async () => {
  const withoutAny = ({
    metadata: { annotations: _lost, ...metadata },
    ...object
  }: KubeObject) => ({
    ...object,
    metadata,
  });
  const { look, tries, told, clock } = rig(NONE, {}, cancellable(NONE), FORBIDDEN, withoutAny);
  await look();
  const lost =
    'the annotation example.com/answer is not there after the write; a webhook or admission policy removes it';
  expect(told).toContain(`w2: the API server refuses to change its object: ${lost}`);
  expect(told.slice(-2)).toEqual(['write: TargetRefused', 'write: TargetRefused']);
  await look();
  expect(tries('w2')).toBe(1);
  await clock.advance(2_000);
  expect(await look()).toMatchObject({ requeueAfterMs: 4_000 });
  expect(tries('w2')).toBe(2);
});

test('a cordon that the server accepts and does not keep is tried again after a pause, and that is said', async () => {
  const asking: Observation = {
    kind: 'working',
    step: 'Cordoning',
    waitsFor: 'drain',
    attempt: later(0),
    since: later(0),
  };
  const drainDelegation = {
    always: true,
    nodeOf: (_stage: Stage, { name }: Target, world: World) => world.get(nodes, name),
  };
  const keptOf = (object: KubeObject): KubeObject => ({ ...object, spec: {} }) as KubeObject;
  const { look, tries, told, clock } = rig(
    asking,
    {},
    { ...tableDialect, drainDelegation },
    FORBIDDEN,
    keptOf,
  );
  await look();
  const lost =
    'spec.unschedulable is not there after the write; a webhook or admission policy removes it';
  expect(tries('w2')).toBe(1);
  expect(told).toContain(`w2: the API server refuses to change its object: ${lost}`);
  await look();
  expect(tries('w2')).toBe(1);
  await clock.advance(2_000);
  await look();
  expect(tries('w2')).toBe(2);
});

test('a taint that the server accepts and does not keep is an error that names the taint', async () => {
  const api = new MemoryApi();
  const node = api.put(nodes, withPendingTaint(buildNode('w1'), 'Plan.uid'));
  const client = {
    replace: async () => await Promise.resolve(buildNode('w1')),
  } as unknown as KubeClient;
  const effects = { client, ownWrites: new OwnWrites() } as unknown as Effects;
  const writing = carryOut(effects, { kind: 'replace', resource: nodes, object: node });
  await expect(writing).rejects.toThrow(
    'the taint upgrade.refit.dev/pending is not there after the write',
  );
});

test('a node action that is refused does not stop the others', async () => {
  const { look, tries, told } = rig(sent(), { [ABORT_ANNOTATION]: 'true' });
  await look();
  expect([tries('w1'), tries('w2')]).toEqual([1, 1]);
  expect(told).toContain(REFUSED);
});

test.each([
  ['a target that cannot be finished waits', succeeded(), ['intended', 'done'], FORBIDDEN],
  ['one that failed is recorded as failed', failed('why'), ['failed', 'failed'], FORBIDDEN],
  ['one whose webhook does not answer waits', succeeded(), ['intended', 'done'], NO_WEBHOOK],
])(
  'the API server refuses to change one node: %s; the other node is recorded',
  async (_name, answer, expected, answered) => {
    const beside: Signal<TablePlan>['finish'] = (world, _rollout, _stage, { name }) => {
      const object = world.get(nodes, name);
      return (
        object && {
          kind: 'replace',
          resource: nodes,
          object: annotated(object, { 'example.com/done': 'true' }),
        }
      );
    };
    const signal = { ...tableDialect.signal, finish: beside, remember: beside };
    const { look, tries, told, clock, states } = rig(
      answer,
      {},
      { ...tableDialect, signal },
      answered,
    );
    await look();
    await look();
    expect([states(), tries('w1')]).toEqual([expected, 1]);
    expect(told).toContain(`w1: the API server refuses to change its object: ${answered.message}`);
    await clock.advance(2_000);
    await look();
    expect(tries('w1')).toBe(expected[0] === 'intended' ? 2 : 1);
  },
);

test('a refused record is reported in the plan, and a server in trouble is not', async () => {
  const { api, look, told, states } = rig(succeeded());
  const answers = [
    new StatusError({ kind: 'Status', code: 503, message: 'etcd has no leader' }),
    NO_WEBHOOK,
  ];
  for (const answer of answers) {
    api.before('replace plans/plan', () => {
      throw answer;
    });
    await expect(look()).rejects.toBe(answer);
  }
  expect(states()).toEqual(['intended', 'intended']);
  expect(told).toEqual([
    `RecordRefused: the API server refuses to record the next step: ${NO_WEBHOOK.message}`,
  ]);
});
