/** Tests what messages contain, what people hear of problems with receivers, and which notifications are dropped. */
import { expect, test } from 'vitest';
import {
  buildNotifierScene,
  buildReceiver,
} from '../../../test/support/builders/notifier-terms.ts';
import { MINUTE } from '../../../test/support/clock/times.ts';
import { GIVE_UP_MS, PACE_MS } from './notifier.ts';

const CHAT = buildReceiver('chat');
const MAIL = buildReceiver('mail');

test('a message names its policy, and lists what happened to each plan in order', async () => {
  const { clock, follow, put, sent, messages, begin } = buildNotifierScene();
  for (const name of ['a', 'b']) put(name);
  const { end } = begin();
  follow('b');
  await clock.advance(100);
  follow('b', { failed: 1 });
  await clock.advance(2000);
  follow('a');
  await clock.advance(2000);
  follow('b', { failed: 2 });
  await clock.advance(2 * PACE_MS);
  expect(sent).toEqual(['chat: toy/b Started', 'chat: toy/b Failed, toy/b Failed, toy/a Started']);
  expect(messages.map(({ policy }) => policy)).toEqual(['p', 'p']);
  expect(messages[0]?.id).toMatch(/^[0-9a-f]{32}$/);
  await end();
});

test('a message has at most twenty notes, the oldest ones, and the others follow in the next message', async () => {
  const { clock, follow, put, sent, messages, begin } = buildNotifierScene();
  const names = Array.from({ length: 21 }, (_, index) => `plan${index}`);
  for (const name of ['first', ...names]) put(name);
  const { end } = begin();
  follow('first');
  await clock.advance(2000);
  for (const name of names) follow(name);
  await clock.advance(2000);
  follow('first', { failed: 1 });
  await clock.advance(2 * PACE_MS + 100);
  expect(messages.map(({ notes }) => notes.length)).toEqual([1, 20, 2]);
  const told = messages.slice(1, 2).flatMap(({ notes }) => notes.map(({ plan }) => plan));
  expect(told).toEqual(names.slice(0, 20).map((name) => `toy/${name}`));
  expect(sent.at(-1)).toBe('chat: toy/first Failed, toy/plan20 Started');
  await end();
});

test('what happens while a failed message waits is told in a message of its own', async () => {
  const { clock, answers, follow, put, sent, messages, begin } = buildNotifierScene();
  put('a');
  put('b');
  answers['chat'] = 'it answered 500';
  const { end } = begin();
  follow('a');
  await clock.advance(100);
  follow('a', { failed: 1 });
  follow('b');
  answers['chat'] = undefined;
  await clock.advance(PACE_MS);
  expect(sent).toEqual(['chat: toy/a Started', 'chat: toy/a Started']);
  expect(new Set(messages.map(({ id }) => id)).size).toBe(1);
  await clock.advance(PACE_MS);
  expect(sent.at(-1)).toBe('chat: toy/a Failed, toy/b Started');
  await end();
});

test('the problems of several receivers are told together, and another receiver is not concerned', async () => {
  const { clock, answers, notifier, follow, put, events, logged, begin } = buildNotifierScene();
  for (const name of ['a', 'b']) put(name);
  answers['chat'] = 'it answered 500';
  answers['mail'] = 'it cannot be reached';
  const { end } = begin();
  follow('a', {}, [CHAT, MAIL, buildReceiver('quiet', ['Done'])]);
  follow('b', {}, [buildReceiver('quiet', ['Done'])]);
  await clock.advance(100);
  expect(notifier.deliveryOf('a')).toEqual({
    isGood: false,
    message:
      'receiver chat of UpgradePolicy p: it answered 500; receiver mail of UpgradePolicy p: it cannot be reached',
  });
  expect(notifier.deliveryOf('b')).toMatchObject({ isGood: true });
  expect(notifier.deliveryOf('unknown')).toBeUndefined();
  expect(events).toEqual([
    'a Warning ReceiverUnreachable: receiver chat of UpgradePolicy p has not accepted a message yet: it answered 500',
    'a Warning ReceiverUnreachable: receiver mail of UpgradePolicy p has not accepted a message yet: it cannot be reached',
  ]);
  expect(logged()).toEqual([
    'warn a receiver did not accept a message p/chat it answered 500',
    'warn a receiver did not accept a message p/mail it cannot be reached',
  ]);
  await end();
});

test('each plan of a message that failed has one Event, and only after the first failure', async () => {
  const { clock, answers, follow, put, events, begin } = buildNotifierScene();
  for (const name of ['a', 'b', 'c']) put(name);
  const { end } = begin();
  follow('c');
  await clock.advance(100);
  answers['chat'] = 'it answered 500';
  follow('a');
  follow('b');
  await clock.advance(5 * PACE_MS);
  const told =
    'ReceiverUnreachable: receiver chat of UpgradePolicy p has not accepted a message yet: it answered 500';
  expect(events).toEqual([`a Warning ${told}`, `b Warning ${told}`]);
  await end();
});

test('a message that reached some people only is told once for each problem, with the receiver', async () => {
  const { clock, answers, follow, put, events, logged, begin } = buildNotifierScene();
  put('a');
  const { end } = begin();
  for (const [failed, partly] of ['x', 'x', 'y'].entries()) {
    answers['chat'] = { partly };
    follow('a', { failed });
    await clock.advance(2 * PACE_MS);
  }
  const told = (problem: string) =>
    `a Warning ReceiverUnreachable: receiver chat of UpgradePolicy p accepted a message for some recipients only: ${problem}`;
  expect(events).toEqual([told('x'), told('y')]);
  expect(logged()).toEqual([
    'warn a receiver accepted a message for some recipients only p/chat x',
    'warn a receiver accepted a message for some recipients only p/chat y',
  ]);
  await end();
});

test('a notification is dropped once it is six hours old, and a younger one is not', async () => {
  const { clock, answers, follow, put, recorded, outcomes, begin } = buildNotifierScene();
  put('a');
  answers['chat'] = 'it answered 500';
  const { end } = begin();
  follow('a');
  await clock.advance(MINUTE);
  follow('a', { failed: 1 });
  await clock.advance(GIVE_UP_MS - MINUTE);
  const events = recorded('a')?.queue?.map(({ event }) => event);
  expect(outcomes.filter((outcome) => outcome.endsWith('dropped')).length).toBeLessThan(2);
  expect(events?.at(-1)).toBe('Failed');
  await clock.advance(20 * MINUTE);
  expect(recorded('a')?.queue?.map(({ event }) => event) ?? []).not.toContain('Started');
  await end();
});

test('when a policy names a receiver no more, only the notifications for this receiver are dropped', async () => {
  const { clock, answers, follow, put, recorded, sent, begin } = buildNotifierScene();
  put('a');
  answers['mail'] = 'it answered 500';
  answers['chat'] = 'it answered 500';
  const { end } = begin();
  follow('a', {}, [CHAT, MAIL]);
  await clock.advance(100);
  expect(recorded('a')?.queue?.map(({ receiver }) => receiver)).toEqual(['p/chat', 'p/mail']);
  answers['chat'] = undefined;
  follow('a', {}, [CHAT]);
  follow('a', { failed: 1 }, [CHAT]);
  await clock.advance(100);
  expect(recorded('a')?.queue?.map(({ receiver, event }) => `${receiver} ${event}`)).toEqual([
    'p/chat Started',
    'p/chat Failed',
  ]);
  await clock.advance(2 * PACE_MS);
  expect(sent.slice(2)).toEqual(['chat: toy/a Started', 'chat: toy/a Failed']);
  await end();
});

test('a message that the end of a term has cancelled says nothing about its receiver', async () => {
  const { clock, answers, follow, put, outcomes, events, begin } = buildNotifierScene();
  put('a');
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  answers['chat'] = promise;
  const { stop, isOver } = begin();
  follow('a');
  await clock.advance(100);
  stop();
  resolve('it cannot be reached');
  expect(await isOver()).toBe(true);
  expect([outcomes, events]).toEqual([[], []]);
});

test('a message that was taken at the end of a term counts as sent', async () => {
  const { clock, answers, follow, put, outcomes, begin } = buildNotifierScene();
  put('a');
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  answers['chat'] = promise;
  const { stop, isOver } = begin();
  follow('a');
  await clock.advance(100);
  stop();
  resolve(undefined);
  expect(await isOver()).toBe(true);
  expect(outcomes).toEqual(['p/chat sent']);
});

test('the listener hears of a change of the delivery once, and no more after it was removed', async () => {
  const { clock, answers, notifier, follow, put, begin } = buildNotifierScene();
  put('a');
  let count = 0;
  const remove = notifier.onChange(() => count++);
  const { end } = begin();
  follow('a');
  await clock.advance(100);
  expect(count).toBe(0);
  answers['chat'] = 'it answered 500';
  follow('a', { failed: 1 });
  await clock.advance(3 * PACE_MS);
  expect(count).toBe(1);
  remove();
  answers['chat'] = undefined;
  await clock.advance(5 * PACE_MS);
  expect(count).toBe(1);
  await end();
});
