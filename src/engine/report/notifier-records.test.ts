/** Tests how the notifier records notifications, what it does without a record, and what it forgets after a term. */
import { expect, test } from 'vitest';
import { type MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import {
  buildNotifierScene,
  buildReceiver,
} from '../../../test/support/builders/notifier-terms.ts';
import { settle } from '../../../test/support/clock/fake-clock.ts';
import { later, MINUTE } from '../../../test/support/clock/times.ts';
import type { KubeClient } from '../../kube/client.ts';
import { PACE_MS } from './notifier.ts';

const GOOD = { isGood: true, message: 'no receiver has refused a message' };

test('nothing is read, written or sent before a term begins or after it ends', async () => {
  const { api, clock, notifier, follow, put, sent, begin } = buildNotifierScene();
  expect(notifier.name).toBe('notifications');
  put('a');
  follow('a');
  await clock.advance(MINUTE);
  expect([api.calls, sent]).toEqual([[], []]);
  const { end } = begin();
  await clock.advance(100);
  expect(sent).toEqual(['chat: toy/a Started']);
  await end();
  api.calls.splice(0);
  follow('a', { failed: 1 });
  await clock.advance(2 * PACE_MS);
  expect([api.calls, sent]).toEqual([[], ['chat: toy/a Started']]);
  expect(clock.pending).toBe(0);
});

test('the record is in the status of the NodeRollout, and is written only if it changes', async () => {
  const options: unknown[] = [];
  const watching = (api: MemoryApi): KubeClient => {
    const { client } = api;
    return {
      ...client,
      get: async (...args: Parameters<KubeClient['get']>) => {
        options.push(args[2]);
        return await client.get(...args);
      },
      patch: async (...args: Parameters<KubeClient['patch']>) => {
        options.push(args[3]);
        return await client.patch(...args);
      },
    } as KubeClient;
  };
  const { api, clock, follow, put, recorded, begin } = buildNotifierScene(watching);
  put('a');
  const { end } = begin();
  follow('a', {}, [buildReceiver('chat', ['Done'])]);
  await clock.advance(100);
  follow('a', {}, [buildReceiver('chat', ['Done'])]);
  await clock.advance(100);
  expect(api.calls).toEqual(['get noderollouts/a', 'patch noderollouts/a/status']);
  expect(options).toEqual([
    { namespace: 'ns' },
    { type: 'merge', subresource: 'status', namespace: 'ns' },
  ]);
  expect(recorded('a')).toMatchObject({ told: { run: 'a/run-1', phase: 'running' }, queue: [] });
  await end();
  const next = begin();
  api.calls.splice(0);
  follow('a', {}, [buildReceiver('chat', ['Done'])]);
  await clock.advance(100);
  expect(api.calls).toEqual(['get noderollouts/a']);
  await next.end();
});

test('without a NodeRollout the messages are sent after half a minute, and the log warns', async () => {
  const { clock, follow, sent, logged, begin } = buildNotifierScene();
  const { end } = begin();
  follow('a');
  await clock.advance(29_999);
  expect([sent, logged()]).toEqual([[], []]);
  await clock.advance(1);
  expect(sent).toEqual(['chat: toy/a Started']);
  expect(logged()).toEqual(['warn cannot record notifications NotFound by the test']);
  await end();
});

test('while the API server fails, nothing is sent, and the log warns of the same error once a minute', async () => {
  const { api, clock, follow, put, sent, logged, begin } = buildNotifierScene();
  put('a');
  let isFailing = true;
  const fail = (): void =>
    api.before('patch', () => {
      if (!isFailing) return;
      fail();
      throw refusal(500, 'InternalError', 'etcd is slow');
    });
  fail();
  const { end } = begin();
  follow('a');
  await clock.advance(59_999);
  expect(sent).toEqual([]);
  expect(logged()).toEqual(['warn cannot record notifications etcd is slow']);
  expect(api.calls.filter((call) => call.startsWith('patch'))).toHaveLength(30);
  isFailing = false;
  await clock.advance(2000);
  expect(sent).toEqual(['chat: toy/a Started']);
  await end();
});

test('the end of a term waits for the record and for the message that are under way', async () => {
  const recording = Promise.withResolvers<void>();
  const { clock, answers, follow, put, sent, begin } = buildNotifierScene(
    (api) =>
      ({
        ...api.client,
        patch: async (...args: Parameters<KubeClient['patch']>) => {
          await recording.promise;
          return await api.client.patch(...args);
        },
      }) as KubeClient,
  );
  put('a');
  const first = begin();
  follow('a');
  await settle();
  first.stop();
  expect(await first.isOver()).toBe(false);
  recording.resolve();
  expect(await first.isOver()).toBe(true);
  expect(sent).toEqual([]);

  const sending = Promise.withResolvers<undefined>();
  answers['chat'] = sending.promise;
  const second = begin();
  follow('a');
  await clock.advance(PACE_MS);
  expect(sent).toEqual(['chat: toy/a Started']);
  second.stop();
  expect(await second.isOver()).toBe(false);
  sending.resolve(undefined);
  expect(await second.isOver()).toBe(true);
});

test('a new term knows nothing of the term before: neither plans, nor problems, nor missing receivers', async () => {
  const { clock, answers, notifier, follow, put, sent, begin } = buildNotifierScene();
  put('a');
  put('b');
  const first = begin();
  answers['chat'] = 'it answered 500';
  follow('a');
  follow('b', {}, []);
  await clock.advance(100);
  expect(notifier.deliveryOf('a')).toMatchObject({ isGood: false });
  await first.end();
  expect(notifier.deliveryOf('a')).toBeUndefined();
  answers['chat'] = undefined;
  const second = begin();
  follow('a');
  expect(notifier.deliveryOf('a')).toEqual(GOOD);
  follow('b');
  await clock.advance(PACE_MS);
  expect(sent.at(-1)).toBe('chat: toy/a Started');
  await clock.advance(PACE_MS);
  expect(sent.at(-1)).toBe('chat: toy/b Started');
  await second.end();
});

test('a deleted plan is forgotten once its last message was sent, and other plans stay', async () => {
  const { clock, notifier, follow, put, begin } = buildNotifierScene();
  put('a');
  put('b');
  const { end } = begin();
  follow('a');
  follow('b');
  await clock.advance(100);
  follow('a', { failed: 1 });
  await clock.advance(100);
  notifier.forget('a');
  notifier.forget('unknown');
  expect(notifier.deliveryOf('a')).toEqual(GOOD);
  await clock.advance(PACE_MS);
  expect(notifier.deliveryOf('a')).toBeUndefined();
  expect(notifier.deliveryOf('b')).toEqual(GOOD);
  notifier.forget('b');
  expect(notifier.deliveryOf('b')).toBeUndefined();
  await end();
});

test('a plan that was deleted while its policy had no receivers begins anew', async () => {
  const { clock, notifier, follow, put, sent, begin } = buildNotifierScene();
  put('a');
  const { end } = begin();
  follow('a', {}, []);
  notifier.forget('a');
  follow('a');
  await clock.advance(100);
  expect(sent).toEqual(['chat: toy/a Started']);
  await end();
});

test('the time of the last attempt of another leader counts, but a time in the future does not wait longer', async () => {
  const waitsFor = async (at: string): Promise<number> => {
    const { clock, follow, put, sent, begin } = buildNotifierScene();
    put('a', { notifications: { queue: [], tried: [{ receiver: 'p/chat', at }] } });
    const { end } = begin();
    follow('a');
    await clock.advance(100);
    let seconds = 0;
    for (; sent.length === 0 && seconds < 200; seconds++) await clock.advance(1000);
    await end();
    return seconds;
  };
  expect(await waitsFor(later(-20_000))).toBe(40);
  expect(await waitsFor(later(30_000))).toBe(60);
  expect(await waitsFor('never')).toBe(0);
});

test('the time of each attempt is recorded, so that the next leader keeps the pause', async () => {
  const { clock, answers, follow, put, recorded, outcomes, begin } = buildNotifierScene();
  put('a');
  answers['chat'] = 'it answered 500';
  const { end } = begin();
  follow('a');
  await clock.advance(100);
  expect(recorded('a')?.tried).toEqual([{ receiver: 'p/chat', at: later(0) }]);
  await clock.advance(PACE_MS);
  expect(recorded('a')?.tried).toEqual([{ receiver: 'p/chat', at: later(PACE_MS) }]);
  expect(outcomes).toEqual(['p/chat failed', 'p/chat failed']);
  await end();
});
