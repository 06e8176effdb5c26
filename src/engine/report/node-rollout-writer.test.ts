/**
 * Tests NodeRollouts: what they show of a plan from its start to its end, how rarely they are written, and that nothing
 * depends on them.
 */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { type TablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { Delivery } from '../../notify/receivers.ts';
import { assess } from '../assess/assess.ts';
import { placeOf } from '../contract/node-rollout-place.ts';
import { readPlan } from '../explain/plan-reading.ts';
import type { Wait } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { gather } from '../snapshot/gather.ts';
import { viewsOf } from '../snapshot/world.ts';
import { type Outside, type Shown, statusOf } from './node-rollout-status.ts';
import { KEPT_MS, MOST_KEPT, tooOld } from './node-rollout-sweep.ts';
import { nodeRolloutWriter } from './node-rollout-writer.ts';
import type { Turn } from './turn.ts';

const NAME = 'table-plan';
const PLAN = { metadata: { name: 'plan', uid: 'plan-uid', generation: 4 } };

function rolloutOf(
  states: readonly Parameters<typeof buildTarget>[1][],
  more: Partial<Rollout> = {},
) {
  return buildRollout(
    [
      buildStage(
        'worker',
        states.map((state, index) => buildTarget(`w${index + 1}`, state)),
      ),
    ],
    more,
  );
}

const planOf = (spec: Rollout): TablePlan => ({ ...PLAN, spec });

function turnOf(rollout: Rollout, now = T0): Turn {
  const dialect = { ...tableDialect, resolve: () => rollout };
  const views = viewsOf(
    dialect.watched.map(({ resource }) => [resource, new MemoryApi().view(resource)]),
  );
  const snapshot = gather(dialect, planOf(rollout), knowledgeOf(views).world, now);
  return { plan: PLAN, assessment: assess(snapshot, buildPolicy(), now) };
}

const held = (code: Wait['reason']['code'], since = later(-10_000)): Wait => ({
  gate: 'not-paused',
  reason: because(code, 'why'),
  ends: 'the plan is resumed',
  since,
});

function shownIn({ plan, assessment }: Turn, waits: readonly Wait[], outside: Outside = {}): Shown {
  return {
    reading: readPlan(assessment, { waits, generation: plan.metadata.generation }),
    outside,
  };
}

function statusAfter(turn: Turn, waits: readonly Wait[], previous?: NodeRollout) {
  return statusOf(shownIn(turn, waits), previous, turn.assessment.now);
}

function conditions({ conditions = [] }: ReturnType<typeof statusOf>): string[] {
  return conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
}

const FAILED = because('TargetFailed', 'w2: 404');

test.each<[string, Rollout, readonly Wait[], string, string, string[]]>([
  [
    'its plan runs',
    rolloutOf(['done', 'intended', 'pending']),
    [],
    'running 1/3 33',
    '-',
    [
      'Completed=False InFlight',
      'Degraded=False NothingFailed',
      'Progressing=True InFlight',
      'Waiting=False NothingWaits',
    ],
  ],
  [
    'its plan waits',
    rolloutOf(['done', 'pending']),
    [held('Paused')],
    'running 1/2 50',
    'Paused',
    [
      'Completed=False InFlight',
      'Degraded=False NothingFailed',
      'Progressing=True InFlight',
      'Waiting=True Paused',
    ],
  ],
  [
    'a wait that has just begun',
    rolloutOf(['done', 'pending']),
    [held('Paused', later(-9_000))],
    'running 1/2 50',
    '-',
    [
      'Completed=False InFlight',
      'Degraded=False NothingFailed',
      'Progressing=True InFlight',
      'Waiting=False NothingWaits',
    ],
  ],
  [
    'its plan is done',
    rolloutOf(['done', 'done'], { phase: 'done' }),
    [],
    'done 2/2 100',
    '-',
    [
      'Completed=True Completed',
      'Degraded=False NothingFailed',
      'Progressing=False Completed',
      'Waiting=False NothingWaits',
    ],
  ],
  [
    'its plan failed',
    rolloutOf(['done', 'failed'], { phase: 'failed', reason: FAILED }),
    [],
    'failed 1/2 50',
    '-',
    [
      'Completed=False TargetFailed',
      'Degraded=True TargetFailed',
      'Progressing=False TargetFailed',
      'Waiting=False NothingWaits',
    ],
  ],
])('the status of a NodeRollout if %s', (_name, rollout, waits, words, waiting, expected) => {
  const status = statusAfter(turnOf(rollout), waits);
  expect(`${status.phase} ${status.progress} ${status.percent}`).toBe(words);
  expect(status.waiting?.reason ?? '-').toBe(waiting);
  expect(conditions(status)).toEqual(expected);
});

test('the reason of a failure stays in the history when a new leader does not know it', () => {
  const reason = because('HealthCheckFailing', 'w1: too many errors', {
    policy: 'p',
    check: 'errors',
  });
  const first = statusAfter(turnOf(rolloutOf(['failed', 'pending'], { reason })), []);
  const shown = [{ node: 'w1', reason: 'HealthCheckFailing', message: 'too many errors' }];
  expect(first.history?.[0]?.failures).toEqual(shown);
  const previous = { spec: { plan: { uid: '' } }, metadata: {}, status: first } as NodeRollout;
  const other = rolloutOf(['failed', 'failed'], { reason: because('TargetFailed', 'w2: 404') });
  expect(statusAfter(turnOf(other), [], previous).history?.[0]?.failures).toEqual([
    ...shown,
    { node: 'w2', reason: 'TargetFailed', message: '404' },
  ]);
});

test('an edit after the end adds no run to the history, and changes no run of it', () => {
  const ended = rolloutOf(['done', 'done'], { phase: 'done', id: 'a' });
  const first = statusAfter(turnOf(ended), []);
  const previous = { spec: { plan: { uid: '' } }, metadata: {}, status: first } as NodeRollout;
  for (const id of ['a', 'b']) {
    const edited = { ...ended, id, edit: 'it names another version now' };
    const status = statusAfter(turnOf(edited), [], previous);
    expect(status.phase).toBe('edited');
    expect(status.history).toEqual(first.history);
  }
  const unseen = { ...ended, edit: 'it names another version now' };
  expect(statusAfter(turnOf(unseen), []).history).toEqual([]);
});

test('a later run of a plan starts when the leader first sees it, even if its targets have the times of the earlier run', () => {
  const first = statusAfter(turnOf(rolloutOf(['done', 'done'], { phase: 'done', id: 'a' })), []);
  const [run] = first.history ?? [];
  if (run === undefined) throw new Error('the history has no run');
  const earlier = { ...run, planUid: 'plan-uid', started: later(-60_000), ended: run.started };
  const known = { ...first, history: [earlier] };
  const previous = { spec: { plan: { uid: 'plan-uid' } }, metadata: {}, status: known };
  const second = turnOf(rolloutOf(['done', 'pending'], { phase: 'running', id: 'b' }));
  const { history } = statusAfter(second, [], previous as NodeRollout);
  expect(history?.map(({ id, started }) => `${id} ${started}`)).toEqual([
    `b ${later(0)}`,
    `a ${earlier.started}`,
  ]);
});

const fileOf = (version: string, sha256: string) => ({
  'linux-amd64': { url: `https://example.com/${version}`, sha256 },
});

function downloading(version: string, sha256: string, phase: Rollout['phase']): Rollout {
  const targets = [buildTarget('w1', phase === 'running' ? 'pending' : 'done')];
  const stage = buildStage('worker', targets, { version, payloads: fileOf(version, sha256) });
  return buildRollout([stage], { phase });
}

function historyAfter(...rollouts: readonly Rollout[]) {
  let known: NodeRollout | undefined;
  for (const rollout of rollouts) {
    const status = statusAfter(turnOf(rollout), [], known);
    known = {
      metadata: { name: NAME, namespace: 'ns' },
      spec: { plan: { apiVersion: 'v1', kind: 'TablePlan', name: 'plan', uid: 'plan-uid' } },
      status,
    };
  }
  return known?.status?.history?.map(({ version, downloads = [] }) => ({
    version,
    downloads: downloads.map((each) => `${each.version} ${each.sha256}`),
  }));
}

test('an edit of a running plan adds to the downloads of its run, and corrects them', () => {
  const wrong = downloading('v1.36.5', 'a'.repeat(64), 'running');
  const corrected = downloading('v1.36.5', 'b'.repeat(64), 'running');
  const other = downloading('v1.36.6', 'c'.repeat(64), 'running');
  expect(historyAfter(wrong, corrected, other, other)).toEqual([
    {
      version: 'v1.36.6',
      downloads: [`v1.36.6 ${'c'.repeat(64)}`, `v1.36.5 ${'b'.repeat(64)}`],
    },
  ]);
});

test('an edit of an ended plan changes nothing in the history of its run', () => {
  const done = downloading('v1.36.5', 'a'.repeat(64), 'done');
  const edited = downloading('v1.36.6', 'c'.repeat(64), 'done');
  expect(historyAfter(done, edited)).toEqual([
    { version: 'v1.36.5', downloads: [`v1.36.5 ${'a'.repeat(64)}`] },
  ]);
});

test('the condition Notified is there while the policy has receivers, and says which one takes nothing', () => {
  const turn = turnOf(rolloutOf(['done', 'pending']));
  const message = 'receiver chat of UpgradePolicy careful: it answered 403 Forbidden';
  const after = (delivery: Delivery | undefined, previous?: NodeRollout) =>
    statusOf(shownIn(turn, [], { delivery }), previous, turn.assessment.now);
  const notified = ({ conditions = [] }: ReturnType<typeof statusOf>) =>
    conditions.filter(({ type }) => type === 'Notified');

  const bad = after({ isGood: false, message });
  expect(notified(bad)).toMatchObject([
    { status: 'False', reason: 'ReceiverUnreachable', message },
  ]);
  const plan = { apiVersion: 'a/v1', kind: 'Plan', name: 'plan', uid: PLAN.metadata.uid };
  const known: NodeRollout = { metadata: { name: NAME }, spec: { plan }, status: bad };
  expect(notified(after({ isGood: true, message: 'fine' }, known))).toMatchObject([
    { status: 'True', reason: 'ReceiversAnswer', message: 'fine' },
  ]);
  expect(notified(after(undefined, known))).toEqual([]);
});

test('the condition Silenced is there while a plan has needed silences', () => {
  const turn = turnOf(rolloutOf(['done', 'pending']));
  const silenced = (silencing?: { readonly isGood: boolean; readonly message: string }) =>
    statusOf(shownIn(turn, [], { silencing }), undefined, turn.assessment.now).conditions?.filter(
      ({ type }) => type === 'Silenced',
    );
  expect(silenced({ isGood: false, message: 'no answer' })).toMatchObject([
    { status: 'False', reason: 'AlertmanagerUnreachable', message: 'no answer' },
  ]);
  expect(silenced({ isGood: true, message: 'fine' })).toMatchObject([
    { status: 'True', reason: 'AlertsSilenced', message: 'fine' },
  ]);
  expect(silenced()).toEqual([]);
});

test('silences are shown while their nodes are in progress, and neither a renewal nor a new leader causes a write', async () => {
  const { clock, writer, show, read, writes } = scene();
  const rollout = rolloutOf(['intended', 'pending']);
  const rule = { silence: 'nodes', server: 'am:9093', lastsMs: 300_000 };
  const untried = { ...rule, node: 'w1', made: undefined, problem: undefined };
  const made = { ...untried, made: { id: 's1', startsAt: later(0) }, problem: '' };
  await show(rollout, [], { silences: [made] });
  const shown = [
    {
      node: 'w1',
      silence: 'nodes',
      server: 'am:9093',
      id: 's1',
      since: later(0),
      durationSeconds: 300,
    },
  ];
  expect(read().status?.silences).toEqual(shown);
  const { length } = writes();
  for (let round = 0; round < 10; round++) {
    await clock.advance(100_000);
    await show(rollout, [], { silences: [made] });
  }
  writer.begin();
  await show(rollout, [], { silences: [untried] });
  expect(writes()).toHaveLength(length);
  expect(read().status?.silences).toEqual(shown);
  await clock.advance(20_000);
  await show(rolloutOf(['done', 'intended']), [], { silences: [{ ...made, node: 'w2' }] });
  expect(read().status?.silences).toMatchObject([{ node: 'w2' }]);
  writer.gone('plan');
  await writer.flush();
  expect(read().status?.silences).toBeUndefined();
});

test('the size of a NodeRollout is bounded at 15,000 targets that all failed with a long message', () => {
  const message = 'x'.repeat(10_000);
  const states = Array.from({ length: 15_000 }, () => 'failed' as const);
  const rollout = rolloutOf(states, { phase: 'failed', reason: because('TargetFailed', message) });
  let known: NodeRollout | undefined;
  for (let run = 0; run < 20; run++) {
    const status = statusAfter(turnOf({ ...rollout, id: `run-${run}` }), [], known);
    const spec = {
      plan: { apiVersion: 'v1', kind: 'Plan', name: 'plan', uid: rollout.source.uid },
    };
    known = { metadata: { name: NAME }, spec, status };
  }
  expect(known?.status?.history?.map(({ id }) => id)).toEqual(
    Array.from({ length: 10 }, (_, index) => `run-${19 - index}`),
  );
  expect(known?.status?.counts?.failed).toBe(15_000);
  expect(JSON.stringify(known).length).toBeLessThan(100_000);
});

function scene() {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const lines: string[] = [];
  const dialect = { ...tableDialect, nodeRollouts: { namespace: 'ns' } };
  let plans = [PLAN];
  // The in-memory API server stores objects by name only, without the namespace.
  const parts = { dialect, client: api.client, clock, log: buildLog(lines, 'info') };
  const writer = nodeRolloutWriter({ ...parts, plans: () => plans });
  const show = async (rollout: Rollout, waits: readonly Wait[] = [], outside: Outside = {}) => {
    const turn = turnOf(rollout, clock.now());
    const again = writer.show(turn, shownIn(turn, waits).reading, outside);
    await writer.flush();
    return again;
  };
  const read = (): NodeRollout => api.read(nodeRollouts, NAME);
  const remove = (): void => {
    plans = [];
  };
  const writes = (): string[] => api.calls.filter((call) => !/^(get|list) /.test(call));
  return { api, clock, lines, writer, show, read, remove, writes };
}

test('a NodeRollout is created once, and written if the phase changes or twenty seconds have passed', async () => {
  const { clock, show, read, writes } = scene();
  await show(rolloutOf(['intended', 'pending', 'pending']));
  expect(writes()).toEqual([`create noderollouts/${NAME}`, `patch noderollouts/${NAME}/status`]);
  await show(rolloutOf(['intended', 'pending', 'pending']));
  expect(writes()).toHaveLength(2);
  expect(await show(rolloutOf(['done', 'intended', 'pending']))).toBe(20_000);
  expect([writes().length, read().status?.progress]).toEqual([2, '0/3']);
  await clock.advance(20_000);
  await show(rolloutOf(['done', 'intended', 'pending']));
  expect([writes().length, read().status?.progress]).toEqual([3, '1/3']);
  await show(rolloutOf(['done', 'done', 'done'], { phase: 'done' }));
  expect([writes().length, read().status?.progress]).toEqual([4, '3/3']);
});

test('another leader goes on with the history of the NodeRollout that it reads', async () => {
  const { api, clock, writer, show, read } = scene();
  await show(rolloutOf(['intended'], { id: 'first' }));
  const started = read().status?.history?.[0]?.started;
  writer.begin();
  await clock.advance(60_000);
  await show(rolloutOf(['done'], { id: 'first', phase: 'done' }));
  expect(read().status?.history).toMatchObject([{ id: 'first', phase: 'done', started }]);
  await show(rolloutOf(['intended'], { id: 'second' }));
  expect(read().status?.history?.map(({ id, ended }) => [id, ended !== undefined])).toEqual([
    ['second', false],
    ['first', true],
  ]);
  expect(api.calls.filter((call) => call.startsWith('create'))).toHaveLength(1);
});

test('a NodeRollout survives its plan, and a new leader finds out that the plan is gone', async () => {
  const { clock, writer, show, read, remove } = scene();
  await show(rolloutOf(['intended', 'pending']));
  writer.begin();
  remove();
  writer.gone('plan');
  await writer.flush();
  const { status } = read();
  expect([status?.phase, status?.history?.[0]?.phase]).toEqual(['deleted', 'deleted']);
  expect(status?.planDeleted).toBe(later(clock.now() - T0));
});

test('nodes that moved shortly before the plan was deleted are recorded', async () => {
  const { writer, show, read, remove } = scene();
  await show(rolloutOf(['intended', 'pending']));
  await show(rolloutOf(['done', 'intended']));
  expect(read().status?.progress).toBe('0/2');
  remove();
  writer.gone('plan');
  await writer.flush();
  const { phase, progress, history = [] } = read().status ?? {};
  expect([phase, progress, history[0]?.counts.done]).toEqual(['deleted', '1/2', 1]);
});

test('a leader without the right to write NodeRollouts tries rarely and says so once', async () => {
  const { api, clock, lines, show } = scene();
  const refuse = (): void =>
    api.before('create', () => {
      throw refusal(403, 'Forbidden');
    });
  refuse();
  await show(rolloutOf(['intended']));
  const { length } = api.calls;
  await show(rolloutOf(['done'], { phase: 'done' }));
  expect(api.calls).toHaveLength(length);
  await clock.advance(600_000);
  refuse();
  await show(rolloutOf(['done'], { phase: 'done' }));
  expect(api.calls.length).toBeGreaterThan(length);
  expect(lines.filter((line) => line.includes('NodeRollouts are not written'))).toHaveLength(1);
});

test('NodeRollouts of deleted plans are kept for 30 days, at most 100 in a namespace', () => {
  const gone = (name: string, namespace: string, ageMs: number): NodeRollout => ({
    metadata: { name, namespace },
    spec: { plan: { apiVersion: 'v1', kind: 'Plan', name } },
    status: { planDeleted: later(-ageMs) },
  });
  const many = Array.from({ length: MOST_KEPT + 1 }, (_, index) =>
    gone(`n${index}`, 'many', index * 1000),
  );
  const left = [gone('old', 'few', KEPT_MS), gone('young', 'few', KEPT_MS - 1000), ...many];
  expect(tooOld(left, T0, false).map(({ metadata: { name } }) => name)).toEqual([
    'old',
    `n${MOST_KEPT}`,
  ]);
});

test('a plan with the longest name has a NodeRollout with a valid name', () => {
  const dialect = { ...tableDialect, nodeRollouts: { namespace: 'ns' } };
  const places = ['a', 'b'].map((end) =>
    placeOf(dialect, { metadata: { name: 'x'.repeat(252) + end } }),
  );
  expect(places.map((place) => place?.name.length)).toEqual([253, 253]);
  expect(places[0]?.name).not.toBe(places[1]?.name);
  expect(placeOf(tableDialect, PLAN)).toBeUndefined();
});

test.each([
  [
    'a warning if a quota refuses them',
    'noderollouts "p" is forbidden: exceeded quota: few',
    'warn',
  ],
  ['no warning if the right is missing', 'noderollouts is forbidden', 'info'],
])('the log has %s', async (_, message, level) => {
  const { api, lines, show } = scene();
  api.before('create', () => {
    throw refusal(403, 'Forbidden', message);
  });
  await show(rolloutOf(['intended']));
  const line = lines.find((each) => each.includes('NodeRollouts are not written'));
  expect(line).toContain(level);
});
