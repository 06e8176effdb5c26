/** Tests which notifications are queued for which receivers, and what the record keeps of them. */
import { expect, test } from 'vitest';
import { buildReceiver, buildStanding } from '../../../test/support/builders/notifier-terms.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { MOST, type NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { toldOf } from './notifications.ts';
import {
  messageIdOf,
  type Outbox,
  outboxFrom,
  outboxOf,
  type Queued,
  recordOf,
  wasUnnotified,
  withBatch,
  withNews,
  without,
} from './outbox.ts';

const EMPTY: Outbox = { told: undefined, queue: [], tried: [] };
const STANDING = buildStanding('a');
const CHAT = buildReceiver('chat');
const MAIL = buildReceiver('mail', ['Failed']);

function queued(id: string, receiver: string): Queued {
  return { id, receiver, event: 'Started', message: 'x', at: later(0) };
}

test('a status without notifications has an empty outbox, and the record has what the outbox has', () => {
  expect(outboxOf()).toEqual(EMPTY);
  expect(outboxOf({})).toEqual(EMPTY);
  expect(outboxOf({ notifications: {} })).toEqual(EMPTY);
  expect(recordOf(EMPTY)).toEqual({ queue: [], tried: [] });
  const notifications = {
    told: toldOf(STANDING),
    queue: [queued('1', 'p/chat')],
    tried: [{ receiver: 'p/chat', at: later(0) }],
  };
  expect(recordOf(outboxOf({ notifications }))).toEqual(notifications);
});

test('the outbox of new receivers has told everything so far, and keeps only the times of attempts', () => {
  const tried = [{ receiver: 'p/chat', at: later(0) }];
  expect(outboxFrom(STANDING, { tried })).toEqual({ told: toldOf(STANDING), queue: [], tried });
});

const RUN = {
  id: 'run-1',
  planUid: 'a',
  started: later(0),
  phase: 'running',
  counts: { total: 3, done: 0, failed: 0, inProgress: 3, pending: 0, skipped: 0 },
} as const;
const NOTIFIED = { type: 'Notified', status: 'True' } as const;

test.each<[string, NodeRolloutStatus | undefined, boolean]>([
  ['that shows the run without receivers', { history: [RUN] }, true],
  ['that shows the run with receivers', { history: [RUN], conditions: [NOTIFIED] }, false],
  [
    'that shows another condition only',
    { history: [RUN], conditions: [{ ...NOTIFIED, type: 'Waiting' }] },
    true,
  ],
  ['that shows another run', { history: [{ ...RUN, id: 'run-0' }] }, false],
  ['that shows the run of another plan', { history: [{ ...RUN, planUid: 'b' }] }, false],
  ['that shows nothing', {}, false],
  ['that does not exist', undefined, false],
])('a NodeRollout %s proves that nobody was notified: %s', (_title, status, is) => {
  expect(wasUnnotified(status, STANDING)).toBe(is);
});

test('before a run begins, no NodeRollout shows it', () => {
  const standing = buildStanding('a', { phase: 'new' });
  expect(wasUnnotified({ history: [RUN] }, standing)).toBe(false);
});

test('each receiver gets the events that it asks for, and nothing if nothing has changed', () => {
  const started = withNews(EMPTY, STANDING, 'p', [CHAT, MAIL]);
  expect(started).toMatchObject({
    told: toldOf(STANDING),
    queue: [
      {
        receiver: 'p/chat',
        event: 'Started',
        message: 'toy/a: the upgrade to v2 has started; 3 nodes',
        at: later(0),
      },
    ],
  });
  expect(withNews(started, STANDING, 'p', [CHAT, MAIL])).toBe(started);
  const failed = withNews(started, buildStanding('a', { failed: 1 }, T0 + MINUTE), 'p', [
    CHAT,
    MAIL,
  ]);
  expect(
    failed.queue.slice(1).map(({ receiver, event, at }) => `${receiver} ${event} ${at}`),
  ).toEqual([`p/chat Failed ${later(MINUTE)}`, `p/mail Failed ${later(MINUTE)}`]);
});

test('if too much is queued, the oldest notifications are dropped', () => {
  const queue = Array.from({ length: MOST.queued }, (_, index) => queued(`${index}`, 'p/chat'));
  const { queue: after } = withNews({ ...EMPTY, queue }, STANDING, 'p', [CHAT]);
  expect(after).toHaveLength(MOST.queued);
  expect([after[0]?.id, after.at(-1)?.message]).toEqual([
    '1',
    'toy/a: the upgrade to v2 has started; 3 nodes',
  ]);
});

test('a message marks its notifications of one receiver, and the time of its attempt', () => {
  const outbox = {
    ...EMPTY,
    queue: [queued('1', 'p/chat'), queued('2', 'p/chat'), queued('1', 'p/mail')],
    tried: [
      { receiver: 'p/chat', at: later(-MINUTE) },
      { receiver: 'p/mail', at: later(-MINUTE) },
    ],
  };
  const { queue, tried } = withBatch(outbox, 'p/chat', 'message', new Set(['1']), T0);
  expect(queue.map(({ id, receiver, batch }) => `${receiver} ${id} ${batch}`)).toEqual([
    'p/chat 1 message',
    'p/chat 2 undefined',
    'p/mail 1 undefined',
  ]);
  expect(tried).toEqual([
    { receiver: 'p/mail', at: later(-MINUTE) },
    { receiver: 'p/chat', at: later(0) },
  ]);
});

test('the times of the last attempts are kept for at most twenty receivers', () => {
  const tried = Array.from({ length: MOST.tried }, (_, index) => ({
    receiver: `p/r${index}`,
    at: later(0),
  }));
  const after = withBatch({ ...EMPTY, tried }, 'p/chat', 'message', new Set(), T0);
  expect(after.tried).toHaveLength(20);
  expect([after.tried[0]?.receiver, after.tried.at(-1)?.receiver]).toEqual(['p/r1', 'p/chat']);
});

test('an outbox without notifications that are over is the same object', () => {
  const outbox = { ...EMPTY, queue: [queued('1', 'p/chat'), queued('2', 'p/chat')] };
  expect(without(outbox, () => false)).toBe(outbox);
  expect(without(outbox, ({ id }) => id === '1').queue).toEqual([queued('2', 'p/chat')]);
});

test('the id of a message depends on its receiver and its notifications, and not on their order', () => {
  const id = messageIdOf('p/chat', [{ id: '1' }, { id: '2' }]);
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(messageIdOf('p/chat', [{ id: '2' }, { id: '1' }])).toBe(id);
  const others = [
    messageIdOf('p/mail', [{ id: '1' }, { id: '2' }]),
    messageIdOf('p/chat', [{ id: '1' }, { id: '3' }]),
    messageIdOf('p/chat', [{ id: '12' }]),
  ];
  expect(new Set([id, ...others]).size).toBe(4);
});
