/**
 * Tests when notifications are sent to receivers: how often, after failures, and after the leader was killed at any
 * instruction.
 */
import { beforeEach, expect, test } from 'vitest';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Message, NotifiedEvent, PartlyTaken, Receiver } from '../../notify/receivers.ts';
import type { PlanReading } from '../explain/plan-reading.ts';
import { standingOf } from './notifications.ts';
import { createNotifier, GIVE_UP_MS, type Notifier, PACE_MS } from './notifier.ts';

const EVENTS: readonly NotifiedEvent[] = ['Started', 'Failed', 'Done'];
const CHAT: Receiver = {
  name: 'chat',
  type: 'Slack',
  events: EVENTS,
  address: { url: 'http://x' },
};
const SECOND: Receiver = { ...CHAT, name: 'second', events: ['Failed'] };

let clock: FakeClock;
let api: MemoryApi;
let log: string[];
/** The present error of each receiver, by its name; undefined if the receiver accepts messages. */
let problems: Record<string, string | undefined>;
let events: string[];
let outcomes: string[];
let ids: string[];
/** True if the leader has no permission to write NodeRollouts. */
let isForbidden: boolean;

beforeEach(() => {
  clock = new FakeClock();
  api = new MemoryApi();
  log = [];
  problems = {};
  events = [];
  outcomes = [];
  ids = [];
  isForbidden = false;
  for (const name of ['a', 'b']) addRollout(name);
});

function addRollout(name: string): void {
  const rollout: NodeRollout = {
    metadata: { name, uid: name },
    spec: { plan: { apiVersion: 'v1', kind: 'Plan', name } },
  };
  api.put(nodeRollouts, rollout);
}

function forbidding(): KubeClient {
  const refuse = async (): Promise<never> => await Promise.reject(refusal(403, 'Forbidden'));
  return { ...api.client, patch: refuse };
}

function leader(deliver?: (message: Message) => Promise<PartlyTaken | undefined>): Notifier {
  return createNotifier({
    client: isForbidden ? forbidding() : api.client,
    clock,
    log: buildLog([], 'error'),
    metrics: { notified: (receiver, outcome) => outcomes.push(`${receiver} ${outcome}`) },
    deliver: async ({ name }, message) => {
      const texts = message.notes.map((note) => note.message.replace(/:.*/, ` ${note.event}`));
      log.push(`${name} ${problems[name] ?? 'took'} ${texts.join(', ')}`);
      ids.push(message.id);
      return deliver ? await deliver(message) : problems[name];
    },
    recordEvent: (_plan, { reason }) => events.push(reason.message),
  });
}

interface State {
  readonly failed?: number;
  readonly phase?: 'running' | 'done';
  readonly receivers?: readonly Receiver[];
}

function follow(
  notifier: Notifier,
  name: string,
  { failed = 0, phase = 'running', ...more }: State,
): void {
  const reading = {
    now: clock.now(),
    plan: { source: { uid: name } },
    end: { phase },
    isOver: phase === 'done',
    run: {
      id: 'r',
      name: 'r',
      recorded: phase,
      hasBegun: () => true,
      span: () => ({ first: '', last: '' }),
    },
    versions: ['v2'],
    counts: { total: 9, done: 0, failed, inProgress: 0, pending: 0, skipped: 0 },
    waits: [],
    findings: { failures: [] },
    waves: () => [],
    work: () => 'upgrade',
  } as unknown as PlanReading;
  notifier.follow(`toy/${name}`, {
    plan: { metadata: { name } },
    place: { namespace: 'ns', name, subject: { name } },
    policy: 'p',
    receivers: more.receivers ?? [CHAT],
    standing: standingOf(name, reading),
  });
}

/** Runs one term of leadership. */
async function term(
  act: (notifier: Notifier) => Promise<void>,
  notifier = leader(),
): Promise<void> {
  const stop = new AbortController();
  const running = notifier.run(stop.signal);
  await act(notifier);
  stop.abort();
  await running;
}

const recorded = (name: string) => api.read(nodeRollouts, name).status?.notifications;

test('the first message comes at once, and what happens within a minute comes together', async () => {
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(100);
    expect(log).toEqual(['chat took a Started']);
    follow(notifier, 'a', { failed: 1 });
    follow(notifier, 'b', {});
    follow(notifier, 'a', { failed: 2 });
    await clock.advance(PACE_MS - 1000);
    expect(log).toHaveLength(1);
    await clock.advance(2000);
    expect(log.slice(1)).toEqual(['chat took a Failed, a Failed, b Started']);
    await clock.advance(10 * PACE_MS);
    expect(log).toHaveLength(2);
  });
  expect(recorded('a')?.queue).toEqual([]);
  expect(outcomes).toEqual(['p/chat sent', 'p/chat sent']);
});

test('a message is not late by as much as the clock was set back', async () => {
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(100);
    clock.setBack(24 * 3_600_000);
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(2 * PACE_MS);
  });
  expect(log).toEqual(['chat took a Started', 'chat took a Failed']);
});

test('a message whose plan has no receivers any more is not sent', async () => {
  await term(async (notifier) => {
    follow(notifier, 'b', {});
    await clock.advance(100);
    follow(notifier, 'a', {});
    await clock.advance(100);
    // The policy stops naming receivers for this plan while the message about the plan is being recorded.
    const { promise, resolve } = Promise.withResolvers<undefined>();
    api.before('patch noderollouts/a', () => {
      follow(notifier, 'a', { receivers: [] });
      follow(notifier, 'b', { failed: 1 });
      resolve(undefined);
    });
    await clock.advance(PACE_MS);
    await promise;
    await clock.advance(2 * PACE_MS);
  });
  expect(log).toEqual(['chat took b Started', 'chat took b Failed']);
});

test('a receiver is told the events that it asks for', async () => {
  await term(async (notifier) => {
    follow(notifier, 'a', { receivers: [CHAT, SECOND] });
    await clock.advance(100);
    follow(notifier, 'a', { failed: 1, receivers: [CHAT, SECOND] });
    await clock.advance(100);
  });
  expect(log).toEqual(['chat took a Started', 'second took a Failed']);
});

test('a receiver without an answer holds no other one', async () => {
  const never = Promise.withResolvers<undefined>();
  const notifier = leader(async ({ notes }) =>
    notes.some(({ event }) => event === 'Started') ? await never.promise : undefined,
  );
  await term(async () => {
    follow(notifier, 'a', { receivers: [CHAT, SECOND] });
    await clock.advance(100);
    follow(notifier, 'a', { failed: 1, receivers: [CHAT, SECOND] });
    await clock.advance(2 * PACE_MS);
    expect(log).toEqual(['chat took a Started', 'second took a Failed']);
    never.resolve(undefined);
  }, notifier);
});

test('a failed message is sent again as it was, with pauses that grow, and given up after 6 hours', async () => {
  problems['chat'] = 'it answered 500';
  const heard: boolean[] = [];
  await term(async (notifier) => {
    notifier.onChange(() => heard.push(notifier.deliveryOf('toy/a')?.isGood ?? false));
    follow(notifier, 'a', {});
    await clock.advance(100);
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(PACE_MS);
    expect(log).toEqual(Array.from({ length: 2 }, () => 'chat it answered 500 a Started'));
    expect(new Set(ids).size).toBe(1);
    await clock.advance(PACE_MS);
    expect(log).toHaveLength(2);
    expect(events).toEqual([
      'receiver chat of UpgradePolicy p has not accepted a message yet: it answered 500',
    ]);
    expect(notifier.deliveryOf('toy/a')).toEqual({
      isGood: false,
      message: 'receiver chat of UpgradePolicy p: it answered 500',
    });
    await clock.advance(GIVE_UP_MS + 3_600_000);
    expect(recorded('a')?.queue).toEqual([]);
    expect(events).toContain(
      'receiver chat of UpgradePolicy p did not accept a message for 6h, and Refit dropped it: it answered 500',
    );
    problems['chat'] = undefined;
    follow(notifier, 'a', { phase: 'done' });
    await clock.advance(3_600_000);
    expect(log.at(-1)).toBe('chat took a Done');
  });
  expect(heard).toEqual([false, true]);
  expect(outcomes.filter((each) => each.endsWith('dropped'))).toHaveLength(2);
});

test('a message that reaches only a part of the people is not sent again, and an Event says so once', async () => {
  let partly = 'it refused 1 of 2 recipients';
  const notifier = leader(
    async () => await Promise.resolve(partly === '' ? undefined : { partly }),
  );
  await term(async () => {
    follow(notifier, 'a', {});
    await clock.advance(100);
    const message = `receiver chat of UpgradePolicy p: ${partly}`;
    expect(notifier.deliveryOf('toy/a')).toEqual({ isGood: false, message });
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(PACE_MS + 100);
    expect(events).toEqual([
      `receiver chat of UpgradePolicy p accepted a message for some recipients only: ${partly}`,
    ]);
    partly = '';
    follow(notifier, 'a', { failed: 2 });
    await clock.advance(PACE_MS + 100);
    expect(notifier.deliveryOf('toy/a')).toMatchObject({ isGood: true });
  }, notifier);
  expect(log).toEqual(['chat took a Started', 'chat took a Failed', 'chat took a Failed']);
  expect(outcomes).toEqual(['p/chat sent', 'p/chat sent', 'p/chat sent']);
});

test('the next leader sends what this one did not, once, and not within the same minute', async () => {
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(100);
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(100);
  });
  await term(async (notifier) => {
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(PACE_MS - 1000);
    expect(log).toEqual(['chat took a Started']);
    await clock.advance(2000);
    expect(log.slice(1)).toEqual(['chat took a Failed']);
  });
});

test('after a crash between message and record the message is sent again with the same id', async () => {
  let copy: NodeRollout | undefined;
  const dying = leader(async () => {
    copy ??= api.read(nodeRollouts, 'a');
    return await Promise.resolve(undefined);
  });
  await term(async () => {
    follow(dying, 'a', {});
    await clock.advance(100);
  }, dying);
  // The record is restored to its state at the time when the message was sent.
  if (copy) api.put(nodeRollouts, copy);
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(PACE_MS);
  });
  expect(log).toEqual(['chat took a Started', 'chat took a Started']);
  expect(new Set(ids).size).toBe(1);
});

test('nothing is sent that is not recorded, unless the record is impossible', async () => {
  isForbidden = true;
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(20_000);
    expect(log).toEqual([]);
    await clock.advance(60_000);
    expect(log).toEqual(['chat took a Started']);
  });
});

test('a plan that is deleted is told to its end, and a receiver that the policy names no more is not', async () => {
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(100);
    follow(notifier, 'a', { failed: 1 });
    notifier.forget('toy/a');
    await clock.advance(2 * PACE_MS);
    expect(log).toEqual(['chat took a Started', 'chat took a Failed']);
    problems['second'] = 'it answered 404';
    follow(notifier, 'b', { receivers: [SECOND] });
    await clock.advance(100);
    follow(notifier, 'b', { failed: 1, receivers: [SECOND] });
    await clock.advance(100);
    expect(log.at(-1)).toBe('second it answered 404 b Failed');
    follow(notifier, 'b', { failed: 1 });
    await clock.advance(9 * PACE_MS);
  });
  expect(log).toHaveLength(3);
  expect(recorded('b')?.queue).toEqual([]);
});

/** Shows the run in the NodeRollout of the plan as the writer of NodeRollouts does. */
function show(name: string, isNotified: boolean): void {
  const shown = api.read(nodeRollouts, name);
  const conditions = isNotified
    ? [
        {
          type: 'Notified',
          status: 'True' as const,
          reason: 'ReceiversAnswer',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ]
    : [];
  const counts = { total: 9, done: 0, failed: 0, inProgress: 0, pending: 0, skipped: 0 };
  const history = [
    { id: 'r', planUid: name, started: '2026-01-01T00:00:00Z', phase: 'running', counts },
  ];
  api.put(nodeRollouts, { ...shown, status: { ...shown.status, conditions, history } });
}

const NONE: State = { receivers: [] };

test.each<[string, State, State, string[]]>([
  ['a plan that has ended', { phase: 'done' }, { phase: 'done' }, []],
  ['a running plan', {}, { failed: 1 }, ['chat took a Failed']],
  ['a plan with failures', { failed: 1 }, { failed: 1, phase: 'done' }, ['chat took a Done']],
])(
  'receivers that a policy gets for %s are told only what happens from then on',
  async (_name, now, later, told) => {
    await term(async (notifier) => {
      follow(notifier, 'a', { ...now, ...NONE });
      await clock.advance(100);
      follow(notifier, 'a', now);
      await clock.advance(PACE_MS);
      expect(log).toEqual([]);
      follow(notifier, 'a', later);
      await clock.advance(PACE_MS);
    });
    expect(log).toEqual(told);
  },
);

test('receivers that a policy gets between two leaders are told only what happens from then on', async () => {
  show('a', false);
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(PACE_MS);
    expect(log).toEqual([]);
    follow(notifier, 'a', { phase: 'done' });
    await clock.advance(PACE_MS);
  });
  expect(log).toEqual(['chat took a Done']);
});

test('receivers that a policy had before a leader died are told what this leader did not tell', async () => {
  show('a', true);
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(PACE_MS);
  });
  expect(log).toEqual(['chat took a Started']);
});

test('receivers that a policy loses and gets again are not told what happened in between', async () => {
  problems['chat'] = 'it answered 500';
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(100);
    follow(notifier, 'a', NONE);
    follow(notifier, 'a', { failed: 1, ...NONE });
    await clock.advance(PACE_MS);
  });
  problems['chat'] = undefined;
  log = [];
  show('a', false);
  await term(async (notifier) => {
    follow(notifier, 'a', { failed: 1 });
    await clock.advance(5 * PACE_MS);
    expect(log).toEqual([]);
    follow(notifier, 'a', { failed: 2 });
    await clock.advance(5 * PACE_MS);
  });
  expect(log).toEqual(['chat took a Failed']);
});

test('a new run of a plan whose earlier run had no receivers is told from its start', async () => {
  const shown = api.read(nodeRollouts, 'a');
  show('a', false);
  const { history = [] } = api.read(nodeRollouts, 'a').status ?? {};
  const older = history.map((run) => ({ ...run, id: 'earlier' }));
  api.put(nodeRollouts, { ...shown, status: { conditions: [], history: older } });
  await term(async (notifier) => {
    follow(notifier, 'a', {});
    await clock.advance(PACE_MS);
  });
  expect(log).toEqual(['chat took a Started']);
});
