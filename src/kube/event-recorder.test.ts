/**
 * Tests that repeated Events are counted, that they are written slowly on purpose, and that a
 * failure disturbs nothing else.
 */
import { expect, test, vi } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../util/log.ts';
import type { KubeClient, PatchOptions, WriteOptions } from './client.ts';
import { type EventRecorder, eventRecorder } from './event-recorder.ts';
import type { Event, KubeObject } from './resources.ts';
import { StatusError, TransportError } from './status-error.ts';

const plan: KubeObject = {
  apiVersion: 'v1',
  kind: 'Plan',
  metadata: { name: 'autopilot', uid: 'u1', resourceVersion: '3' },
};
const note = { type: 'Warning', reason: 'Failed', message: 'it broke' } as const;

interface Rig {
  readonly recorder: EventRecorder;
  readonly clock: FakeClock;
  readonly created: Event[];
  readonly patched: { name: string; patch: unknown; options: PatchOptions }[];
  readonly warn: ReturnType<typeof vi.fn>;
}

/**
 * Returns a recorder. `fail` lists the error for each request, in order. Undefined lets the
 * request pass.
 */
function rig(fail: (Error | undefined)[] = []): Rig {
  const created: Event[] = [];
  const patched: Rig['patched'] = [];
  const answer = async (): Promise<void> => {
    const error = await Promise.resolve(fail.shift());
    if (error) throw error;
  };
  const client = {
    create: async (_resource: unknown, event: Event, _options: WriteOptions) => {
      await answer();
      created.push(structuredClone(event));
    },
    patch: async (_resource: unknown, name: string, patch: unknown, options: PatchOptions) => {
      await answer();
      patched.push({ name, patch, options });
    },
  } as unknown as KubeClient;
  const clock = new FakeClock();
  const warn = vi.fn<() => void>();
  const recorder = eventRecorder({
    client,
    component: 'refit',
    clock,
    random: () => 0.5,
    log: { ...silentLogger, warn },
  });
  return { recorder, clock, created, patched, warn };
}

const refused = (code: number): StatusError => new StatusError({ kind: 'Status', code });

test('an event names its object, its times and its reporter; cluster-scoped objects have theirs in default', async () => {
  const { recorder, created } = rig();
  recorder.record(plan, note);
  await recorder.flush();
  const at = '2026-01-01T00:00:00Z';
  expect(created).toEqual([
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'autopilot.800000000000', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'Plan', name: 'autopilot', uid: 'u1' },
      ...note,
      count: 1,
      firstTimestamp: at,
      lastTimestamp: at,
      source: { component: 'refit' },
      reportingComponent: 'refit',
    },
  ]);
});

test('the same again is counted on the same event, another message is another event', async () => {
  const { recorder, clock, created, patched } = rig();
  recorder.record(plan, note);
  await recorder.flush();
  await clock.advance(60_000);
  for (let count = 0; count < 5; count++) recorder.record(plan, note);
  recorder.record(plan, { ...note, message: 'it broke elsewhere' });
  await recorder.flush();
  expect(created.map(({ message }) => message)).toEqual(['it broke', 'it broke elsewhere']);
  const options = { namespace: 'default', type: 'merge', deadlineMs: 10_000 };
  const last = {
    name: 'autopilot.800000000000',
    patch: { count: 6, lastTimestamp: '2026-01-01T00:01:00Z' },
    options,
  };
  expect(patched.at(-1)).toMatchObject(last);
  expect(patched.length).toBeLessThanOrEqual(2);
});

test('an event that was removed from the server begins anew', async () => {
  const { recorder, created } = rig([undefined, refused(404)]);
  recorder.record(plan, note);
  await recorder.flush();
  recorder.record(plan, note);
  await recorder.flush();
  expect(created.map(({ count }) => count)).toEqual([1, 2]);
});

test('an event that was written although its answer was lost goes on counting', async () => {
  const exists = new StatusError({ kind: 'Status', code: 409, reason: 'AlreadyExists' });
  const { recorder, clock, created, patched } = rig([new TransportError('lost'), exists]);
  recorder.record(plan, note);
  await clock.runUntil(recorder.flush());
  recorder.record(plan, note);
  await clock.runUntil(recorder.flush());
  expect(created).toEqual([]);
  expect(patched).toMatchObject([{ patch: { count: 1 } }, { patch: { count: 2 } }]);
});

test.each([
  ['a refusal', [refused(403)], 0, 1],
  ['one lost answer', [new TransportError('lost')], 1, 1],
  ['a server in trouble', [refused(500), refused(429)], 1, 2],
  [
    'a server that is away for a while',
    Array.from({ length: 20 }, () => new TransportError('refused')),
    1,
    1,
  ],
  ['a server that stays in trouble', [refused(500), refused(500), refused(500)], 0, 3],
])('%s is logged and disturbs nobody', async (_name, fail, written, warnings) => {
  const { recorder, clock, created, warn } = rig(fail);
  recorder.record(plan, note);
  await clock.runUntil(recorder.flush());
  expect(created).toHaveLength(written);
  expect(warn).toHaveBeenCalledTimes(warnings);
});

test('a flood is written at the rate that a server does not mind', async () => {
  const { recorder, clock, created } = rig();
  for (let count = 0; count < 120; count++)
    recorder.record(plan, { ...note, message: `no. ${count}` });
  await clock.advance(0);
  expect(created).toHaveLength(100);
  await clock.advance(1_000);
  expect(created).toHaveLength(110);
  await clock.advance(1_000);
  expect(created).toHaveLength(120);
});

test('no text of a node or of a user reaches an Event with what steers a terminal', async () => {
  const { recorder, created } = rig();
  recorder.record(plan, { ...note, message: 'w1\u001B[2J: \u202Eno\u200B \u009Bx' });
  await recorder.flush();
  expect(created[0]?.message).toBe('w1\uFFFD[2J: \uFFFDno\uFFFD \uFFFDx');
});

test('what is too long for the server is cut', async () => {
  const { recorder, created } = rig();
  const metadata = { name: 'n'.repeat(253), namespace: 'ships', uid: 'u2' };
  recorder.record({ kind: 'Pod', metadata }, { ...note, message: 'm'.repeat(2_000) });
  await recorder.flush();
  expect(created[0]?.message).toHaveLength(1_024);
  expect(created[0]?.metadata.name.length).toBeLessThanOrEqual(253);
  expect(created[0]?.metadata.namespace).toBe('ships');
});

test('three Events for each of 1,000 nodes at once are all written, if not at once', async () => {
  const { recorder, clock, created, warn } = rig();
  const count = 3_000;
  for (let index = 0; index < count; index++)
    recorder.record(
      { ...plan, metadata: { name: `w${index % 1_000}`, uid: 'u' } },
      { ...note, message: `it broke ${index}` },
    );
  for (let waits = 0; waits < count && created.length < count; waits++) await clock.advance(1_000);
  expect(created).toHaveLength(count);
  expect(warn).not.toHaveBeenCalled();
});

test('at the end what waits is written, and what comes later is dropped', async () => {
  const { recorder, created, warn } = rig();
  recorder.record(plan, note);
  await recorder.run(AbortSignal.abort());
  expect(created).toHaveLength(1);
  recorder.record(plan, { ...note, message: 'too late' });
  await recorder.flush();
  expect(created).toHaveLength(1);
  expect(warn).toHaveBeenCalledExactlyOnceWith('event dropped', { reason: 'Failed' });
});

test('at the end a server in trouble is not waited for: the process ends', async () => {
  const { recorder, clock, created, warn } = rig(Array.from({ length: 20 }, () => refused(500)));
  for (let count = 0; count < 10; count++)
    recorder.record(plan, { ...note, message: `no. ${count}` });
  await clock.advance(0);
  let isOver = false;
  const ended = recorder.run(AbortSignal.abort()).then(() => {
    isOver = true;
  });
  await clock.advance(4_999);
  expect(isOver).toBe(false);
  await clock.advance(1);
  await ended;
  expect(created).toEqual([]);
  expect(warn).toHaveBeenLastCalledWith('event dropped', { reason: 'Failed' });
  expect(clock.pending).toBe(0);
});

test('where nothing can be written, only so much is kept', async () => {
  const { recorder, clock, warn } = rig();
  for (let count = 0; count < 5_001; count++)
    recorder.record(plan, { ...note, message: `no. ${count}` });
  expect(warn).toHaveBeenCalledExactlyOnceWith('event dropped', { reason: 'Failed' });
  await clock.runUntil(recorder.run(AbortSignal.abort()));
});
