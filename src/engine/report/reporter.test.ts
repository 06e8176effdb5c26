/** Tests what a leader reports about its turns: in the log, as Events, in metrics, and to the parts that show and send it. */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { nodes } from '../../kube/resources.ts';
import type { Receiver } from '../../notify/receivers.ts';
import { createMetrics, noMetrics } from '../../runtime/metrics.ts';
import { assess } from '../assess/assess.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Signalling } from '../model/decision.ts';
import { because, type ReportedEvent } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { viewsOf } from '../snapshot/world.ts';
import { LONG_MS } from './notifications.ts';
import type { FollowedPlan } from './notifier.ts';
import { createReporter, type ReporterParts } from './reporter.ts';
import { traceIdOf } from './spans.ts';
import type { Turn } from './turn.ts';

const PLAN: TablePlan = buildTablePlan({ workers: ['w1'] });
const WAITS_MS = { show: 7000, follow: 5000 };

function rolloutOf(
  states: Readonly<Record<string, RecordedState>>,
  more: Partial<Rollout> = {},
): Rollout {
  const targets = Object.entries(states).map(([name, state]) => buildTarget(name, state));
  return buildRollout([buildStage('worker', targets, { version: 'v2' })], more);
}

interface Given {
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly parts?: SnapshotChanges;
  readonly now?: number;
}

function turnOf(rollout: Rollout, { facts, policy, parts, now = T0 }: Given = {}): Turn {
  const snapshot = withParts(buildSnapshot(rollout, facts), parts);
  return { plan: PLAN, assessment: assess(snapshot, buildPolicy(policy), now) };
}

/** Returns the reporter of a leader that knows the Nodes w1 and w2, and everything that it has reported. */
function scene(
  dialect: Dialect<TablePlan> = tableDialect,
  more: Partial<Omit<ReporterParts, 'dialect'>> = {},
) {
  const api = new MemoryApi();
  for (const name of ['w1', 'w2']) api.put(nodes, buildNode(name));
  api.put(dialect.plans, PLAN);
  const view = api.view(nodes);
  view.catchUp();
  const events: string[] = [];
  const lines: string[] = [];
  const reporter = createReporter({
    dialect,
    client: api.client,
    ...knowledgeOf(viewsOf([[nodes, view]])),
    log: buildLog(lines, 'info'),
    metrics: noMetrics,
    recordEvent: ({ metadata: { name } }, { type, reason }) =>
      events.push(`${name} ${type} ${reason.code}: ${reason.message}`),
    ...more,
  });
  const logged = (message: string): unknown => {
    const line = lines.find((each) => each.includes(`"msg":"${message}"`));
    if (line === undefined) return undefined;
    const { time: _time, ...rest } = JSON.parse(line) as Record<string, unknown>;
    return rest;
  };
  return { api, events, logged, reporter };
}

const NEW = rolloutOf({ w1: 'pending', w2: 'pending' }, { phase: 'new' });
const RUNNING = rolloutOf({ w1: 'intended', w2: 'pending' });
const ENDED = rolloutOf({ w1: 'done', w2: 'done' }, { phase: 'done' });
const SUCCEEDED: Given = {
  facts: {
    w1: {
      observation: {
        kind: 'succeeded',
        attempt: later(0),
        since: later(0),
        report: { spent: { Restart: 8000 } },
      },
    },
  },
};

test('a record is reported as Events of the plan and of its targets, and the end is logged', () => {
  const { events, logged, reporter } = scene();
  const before = rolloutOf({ w1: 'intended', w2: 'done' });
  reporter.recorded(turnOf(before, SUCCEEDED), ENDED);
  expect(events).toEqual([
    'plan Normal Completed: all 2 targets are done',
    'w1 Normal Completed: Upgraded to v2 in 8 s',
  ]);
  expect(logged('plan ended')).toEqual({
    level: 'info',
    msg: 'plan ended',
    plan: 'plan',
    phase: 'done',
  });
});

test('the log warns of a bad end, and says nothing of a plan that goes on or had ended before', () => {
  const failed = scene();
  failed.reporter.recorded(turnOf(RUNNING), { ...RUNNING, phase: 'failed' });
  expect(failed.logged('plan ended')).toMatchObject({ level: 'warn', phase: 'failed' });
  const open = scene();
  open.reporter.recorded(turnOf(NEW), RUNNING);
  open.reporter.recorded(turnOf(ENDED), ENDED);
  open.reporter.recorded(turnOf(ENDED), RUNNING);
  expect(open.logged('plan ended')).toBeUndefined();
});

test('with traces, the Events at the start and the end of a run name the trace', () => {
  const followed: Rollout[] = [];
  const tracer: ReporterParts['tracer'] = {
    follow: (_turn, rollout) => {
      followed.push(rollout);
      return undefined;
    },
    forget: () => undefined,
  };
  const { events, reporter } = scene(tableDialect, { tracer });
  const begun = { ...NEW, phase: 'running' } as const;
  const trace = `; trace ${traceIdOf(begun)}`;
  const reason = because('TargetFailed', 'w1: 404');
  reporter.recorded(turnOf(NEW), begun);
  reporter.recorded(turnOf(begun), { ...begun, reason });
  reporter.recorded(turnOf({ ...begun, reason }), { ...begun, reason, phase: 'failed' });
  expect(events).toEqual([
    `plan Normal Started: 2 targets in 1 stage${trace}`,
    'plan Warning TargetFailed: w1: 404',
    `plan Warning Stopped: the plan ended before all targets were done: 0 of 2 targets done; not started: w1, w2${trace}`,
  ]);
  expect(followed.map(({ phase }) => phase)).toEqual(['running', 'running', 'failed']);
});

test.each([true, false])('the steps refer to spans only if traces are sent: %s', (isTraced) => {
  const spans: unknown[] = [];
  const metrics = createMetrics();
  const tracer = { follow: () => undefined, forget: () => undefined };
  const { reporter } = scene(tableDialect, {
    metrics: { ...metrics, stepDone: (...[, , , span]) => spans.push(span) },
    ...(isTraced ? { tracer } : {}),
  });
  reporter.recorded(turnOf(RUNNING, SUCCEEDED), rolloutOf({ w1: 'done', w2: 'pending' }));
  expect(spans.map((span) => span !== undefined)).toEqual([isTraced]);
});

/** Returns the dialect with an Event of its own, which replaces those of the engine. */
function speaking(seen: (readonly string[])[]): Dialect<TablePlan> {
  const event: ReportedEvent = { type: 'Normal', reason: because('Started', 'own words') };
  const planEvents = (
    _before: TablePlan,
    { status }: TablePlan,
    { phase }: Rollout,
    ours: readonly ReportedEvent[],
  ): ReportedEvent[] => {
    seen.push([status?.phase ?? '-', phase, ...ours.map(({ reason }) => reason.code)]);
    return [event];
  };
  return { ...tableDialect, reporting: { planEvents } };
}

const SIGNAL: Signalling = {
  stage: RUNNING.stages[0] ?? buildStage('worker', []),
  target: RUNNING.stages[0]?.targets[0] ?? buildTarget('w1'),
  agent: {},
};

test('the Events of a dialect replace those of the engine about the plan and its targets', async () => {
  const seen: (readonly string[])[] = [];
  const { events, reporter } = scene(speaking(seen));
  reporter.recorded(turnOf(NEW), { ...NEW, phase: 'running' });
  reporter.recorded(turnOf(RUNNING, SUCCEEDED), rolloutOf({ w1: 'done', w2: 'pending' }));
  reporter.sent(turnOf(RUNNING), [{ signalling: SIGNAL, result: 'written' }]);
  await reporter.decided(turnOf(RUNNING));
  expect(events).toEqual(Array.from({ length: 3 }, () => 'plan Normal Started: own words'));
  expect(seen).toEqual([
    ['running', 'running', 'Started'],
    ['running', 'running'],
    ['-', 'running'],
  ]);
});

const OTHER = { reporting: { clusterOf: () => undefined } };

test('a dialect without Events of its own has those of the engine', async () => {
  const { events, reporter } = scene({ ...tableDialect, ...OTHER });
  reporter.recorded(turnOf(NEW), { ...NEW, phase: 'running' });
  await reporter.decided(turnOf(RUNNING));
  reporter.sent(turnOf(RUNNING), [{ signalling: SIGNAL, result: 'written' }]);
  expect(events).toEqual([
    'plan Normal Started: 2 targets in 1 stage',
    'w1 Normal Signalled: Upgrade to v2 started (Plan plan)',
  ]);
});

test('only a signal that was written has an Event', () => {
  const { events, reporter } = scene();
  const results = ['outdated', 'refused', 'invalid', 'written'] as const;
  reporter.sent(
    turnOf(RUNNING),
    results.map((result) => ({ signalling: SIGNAL, result })),
  );
  expect(events).toEqual(['w1 Normal Signalled: Upgrade to v2 started (Plan plan)']);
});

test('a start without a check of the versions is reported once, when the plan begins', () => {
  const { events, reporter } = scene();
  const parts = { cluster: { apiServers: [{ name: 'c1', version: 'v1.36.3' }] } };
  const begun = { ...NEW, phase: 'running' } as const;
  const unchecked = (): string[] => events.filter((event) => event.includes('VersionUnchecked'));
  reporter.recorded(turnOf(NEW, { parts }), { ...NEW, phase: 'invalid' });
  reporter.recorded(turnOf(begun, { parts }), begun);
  expect(unchecked()).toEqual([]);
  reporter.recorded(turnOf(NEW, { parts }), begun);
  expect(unchecked()).toEqual([
    'plan Warning VersionUnchecked: starts without a check of the version rules: v2 cannot be compared with other versions',
  ]);
});

test('a plan that starts again says so only if it was edited', () => {
  const { events, reporter } = scene();
  reporter.restarted(turnOf({ ...ENDED, edit: 'it names v3 now' }));
  reporter.restarted(turnOf(ENDED));
  expect(events).toEqual([
    'plan Normal RestartedAfterEdit: the plan was edited after it ended (it names v3 now), so it starts again, as edits.afterEnd of its policy says',
  ]);
});

test('a roll-back that the leader begins is a warning, and is counted', () => {
  const counted: string[] = [];
  const metrics = {
    ...noMetrics,
    rolledBack: (dialect: string, plan: string) => void counted.push(`${dialect} ${plan}`),
  };
  const { events, reporter } = scene(tableDialect, { metrics });
  reporter.rolledBack(turnOf(RUNNING), because('RollsBack', 'run run-1 is rolled back on w1'));
  expect(events).toEqual(['plan Warning RollsBack: run run-1 is rolled back on w1']);
  expect(counted).toEqual(['table plan']);
});

test('ordered attempts, refused writes and failed decisions are reported in their own words', () => {
  const { events, reporter } = scene();
  const { stage, target } = SIGNAL;
  const retry = { stage, target, attempt: 2, of: 3, dueMs: T0, isOrdered: false };
  reporter.retried(turnOf(RUNNING, { policy: { name: 'careful' } }), [retry]);
  reporter.refused(RUNNING, { stage, target }, because('TargetRefused', 'w1: no rights'));
  reporter.failed(PLAN, because('CannotDecide', 'no answer'));
  reporter.cleared(
    { ...RUNNING, reason: because('PlanGone', 'Plan plan was deleted') },
    { kind: 'clean-up', stage, target, node: 'w1', cordon: true, taint: false },
  );
  expect(events).toEqual([
    'w1 Normal Retried: Attempt 2 of 3 after a failure, as retry of UpgradePolicy careful says',
    'w1 Warning TargetRefused: w1: no rights',
    'plan Warning CannotDecide: no answer',
    'w1 Normal PlanGone: Uncordoned: Plan plan was deleted',
  ]);
});

test('a node action is logged with its node and its plan, and a drain has an Event', () => {
  const { events, logged, reporter } = scene();
  const { stage, target } = SIGNAL;
  const options = { localData: 'evict', unmanagedPods: 'evict' } as const;
  reporter.ran(turnOf(RUNNING), { kind: 'drain', stage, target, node: 'w1', options });
  expect(logged('drain started')).toEqual({
    level: 'info',
    msg: 'drain started',
    node: 'w1',
    plan: 'plan',
  });
  expect(events).toEqual(['w1 Normal Draining: Draining for Plan plan: evicting pods']);
});

test('a stalled target, a plan that differs from its end and unsilenced alerts are warnings, each once', async () => {
  const silencing = { isGood: false, message: 'no answer from am' };
  const silences = { stateOf: () => silencing, silencesOf: () => [] };
  const { events, reporter } = scene(tableDialect, { silences });
  const stalled: Given = {
    facts: {
      w1: {
        observation: {
          kind: 'working',
          step: 'Starting',
          stalled: 'ErrImagePull',
          attempt: later(0),
          since: later(0),
        },
      },
    },
  };
  const edited = { ...ENDED, edit: 'it names v3 now' };
  for (let turn = 0; turn < 2; turn++) await reporter.decided(turnOf(RUNNING, stalled));
  for (let turn = 0; turn < 2; turn++) await reporter.decided(turnOf(edited));
  expect(events).toEqual([
    'w1 Warning Stalled: w1 is at Starting: ErrImagePull',
    'plan Warning AlertmanagerUnreachable: no answer from am',
    'plan Warning EditedAfterEnd: the plan was edited after it ended (it names v3 now); it will not run: delete it and apply it again',
  ]);
});

const CHAT: Receiver = {
  name: 'chat',
  type: 'Slack',
  events: ['Started'],
  address: { url: 'http://x' },
};
const PLACED: Dialect<TablePlan> = { ...tableDialect, nodeRollouts: { namespace: 'ns' } };
const LONG_WAIT: Given = {
  policy: {
    name: 'careful',
    notify: [CHAT],
    problems: [because('PolicyUnreadable', 'unreadable')],
  },
};

/** Returns the parts that show and send, and what they were given. */
function shownParts() {
  const followed: [string, FollowedPlan][] = [];
  const shown: unknown[] = [];
  const forgotten: string[] = [];
  const delivery = { isGood: true, message: 'fine' };
  const silencing = { isGood: true, message: 'fine' };
  const silence = {
    node: 'w1',
    silence: 'nodes',
    server: 'am',
    lastsMs: 1000,
    made: undefined,
    problem: '',
  };
  const parts = {
    nodeRollouts: {
      show: (...[, , outside]: readonly unknown[]) => {
        shown.push(outside);
        return WAITS_MS.show;
      },
      gone: (key: string) => void forgotten.push(`NodeRollout ${key}`),
    },
    notifier: {
      follow: (key: string, told: FollowedPlan) => void followed.push([key, told]),
      forget: (key: string) => void forgotten.push(`notifications ${key}`),
      deliveryOf: (key: string) => (key === 'table/plan' ? delivery : undefined),
    },
    silences: {
      stateOf: (key: string) => (key === 'table/plan' ? silencing : undefined),
      silencesOf: (key: string) => (key === 'table/plan' ? [silence] : []),
    },
    tracer: {
      follow: () => WAITS_MS.follow,
      forget: (key: string) => void forgotten.push(`trace ${key}`),
    },
  };
  return {
    parts,
    followed,
    shown,
    forgotten,
    outside: { delivery, silencing, silences: [silence] },
  };
}

test('the NodeRollout shows whether receivers accept messages, and which alerts are silenced', async () => {
  const { parts, shown, outside } = shownParts();
  const { reporter } = scene(PLACED, parts);
  await reporter.decided(turnOf(RUNNING));
  expect(shown).toEqual([outside]);
});

test('the earliest of the times at which there is more to report counts', async () => {
  const { parts } = shownParts();
  const { nodeRollouts, notifier, tracer } = parts;
  const wait = turnOf(NEW, { ...LONG_WAIT, now: T0 + LONG_MS });
  const msWith = async (some: Partial<Omit<ReporterParts, 'dialect'>>) =>
    await scene(PLACED, some).reporter.decided(wait);
  expect(await msWith({ nodeRollouts, notifier, tracer })).toBe(WAITS_MS.follow);
  expect(await msWith({ nodeRollouts, notifier })).toBe(WAITS_MS.show);
  expect(await msWith({ notifier })).toBe(10_000);
  expect(await msWith({})).toBeUndefined();
});

test('the notifier follows the plan with its policy and receivers, and looks again only if there are receivers', async () => {
  const { parts, followed } = shownParts();
  const { notifier } = parts;
  const { reporter } = scene(PLACED, { notifier });
  const now = T0 + LONG_MS;
  expect(await reporter.decided(turnOf(NEW, { ...LONG_WAIT, now }))).toBe(10_000);
  const { problems = [] } = LONG_WAIT.policy ?? {};
  expect(await reporter.decided(turnOf(NEW, { policy: { problems }, now }))).toBeUndefined();
  expect(
    followed.map(([key, { policy, receivers, place, standing }]) => [
      key,
      policy,
      receivers,
      place.namespace,
      standing.plan,
    ]),
  ).toEqual([
    ['table/plan', 'careful', [CHAT], 'ns', 'table/plan'],
    ['table/plan', '', [], 'ns', 'table/plan'],
  ]);
});

test('a plan without a NodeRollout is not followed by the notifier', async () => {
  const { parts, followed } = shownParts();
  const { reporter } = scene(tableDialect, { notifier: parts.notifier });
  expect(await reporter.decided(turnOf(NEW, { ...LONG_WAIT, now: T0 + LONG_MS }))).toBeUndefined();
  expect(followed).toEqual([]);
});

test('a deleted plan is forgotten by every part, and its metrics are removed', async () => {
  const { parts, forgotten } = shownParts();
  const metrics = createMetrics();
  const { events, reporter } = scene(PLACED, { ...parts, metrics });
  const edited = turnOf({ ...ENDED, edit: 'it names v3 now' });
  await reporter.decided(edited);
  const count = async (): Promise<number> =>
    [...(await metrics.expose()).body.matchAll(/^refit_plans\{/gm)].length;
  expect(await count()).toBeGreaterThan(0);
  reporter.gone('plan');
  expect(await count()).toBe(0);
  expect(forgotten).toEqual(['NodeRollout plan', 'notifications table/plan', 'trace plan']);
  await reporter.decided(edited);
  expect(events).toHaveLength(2);
});

test('the conditions of a plan are written only if its status has no field for them', async () => {
  const writesWith = async (statusRecord: Dialect<TablePlan>['statusRecord']) => {
    const { statusRecord: _record, ...rest } = tableDialect;
    const dialect = statusRecord === undefined ? rest : { ...rest, statusRecord };
    const { api, reporter } = scene(dialect);
    const plan = api.read(dialect.plans, 'plan');
    await reporter.decided({ ...turnOf(RUNNING), plan });
    return api.calls;
  };
  expect(await writesWith({ hasConditions: false })).toEqual(['replace plans/plan']);
  expect(await writesWith({ hasConditions: true })).toEqual([]);
  expect(await writesWith(undefined)).toEqual([]);
});

test('a run that failed and cannot be rolled back is a warning', async () => {
  const { events, reporter } = scene();
  const failed = turnOf(
    rolloutOf({ w1: 'failed', w2: 'pending' }, { phase: 'failed', rollsBack: 'uid/id0' }),
    { policy: { name: 'safe', rollsBackOnFailure: true }, now: T0 + MINUTE },
  );
  await reporter.decided(failed);
  expect(events).toEqual([
    'plan Warning RollBackRefused: onFailure: RollBack of UpgradePolicy safe acts as Stop: this run itself rolls an earlier run back',
  ]);
});
