/**
 * Tests that the copy of an informer stays correct through everything that can happen to a watch.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  bookmark,
  errorEvent,
  event,
  initialEnd,
  list,
  object,
  refusal,
  type ScriptedClient,
  type Scripts,
  scriptedClient,
} from '../../../test/faults/scripted-client.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../../util/log.ts';
import { type KubeObject, nodes } from '../resources.ts';
import { TransportError } from '../status-error.ts';
import { createInformer, type Informer, type InformerOptions } from './informer.ts';

interface Rig extends ScriptedClient {
  readonly informer: Informer;
  readonly clock: FakeClock;
  /**
   * The calls of a handler in order, as `+name/uid`, `~name/uid:version` and `-name/uid`.
   */
  readonly told: string[];
}

function start(scripts: Scripts, options: InformerOptions<KubeObject> = {}): Rig {
  const clock = new FakeClock();
  const scripted = scriptedClient(scripts);
  const informer = createInformer(scripted.client, nodes, { clock, random: () => 0.5, ...options });
  const told: string[] = [];
  informer.addHandler({
    added: ({ metadata: { name, uid } }) => told.push(`+${name}/${uid}`),
    updated: ({ metadata: { name, uid, resourceVersion } }) =>
      told.push(`~${name}/${uid}:${resourceVersion}`),
    deleted: ({ metadata: { name, uid } }) => told.push(`-${name}/${uid}`),
  });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return { ...scripted, informer, clock, told };
}

const versions = ({ asked }: Rig): (string | undefined)[] =>
  asked.map(({ verb, resourceVersion, sendInitialEvents }) => {
    if (verb === 'list') return 'list';
    return sendInitialEvents ? 'stream' : resourceVersion;
  });

test('one stream gives the list and the changes', async () => {
  const rig = start({
    watches: [
      [
        event('ADDED', 'a', 'u1', 1),
        event('ADDED', 'b', 'u2', 2),
        initialEnd(5),
        event('MODIFIED', 'a', 'u1', 6),
        event('DELETED', 'b', 'u2', 7),
        event('ADDED', 'c', 'u3', 8),
        bookmark(9),
        'nothing',
      ],
    ],
  });
  expect(rig.informer.synced()).toBe(false);
  await rig.informer.whenSynced();
  await rig.clock.advance(0);
  expect(rig.told).toEqual(['+a/u1', '+b/u2', '~a/u1:6', '-b/u2', '+c/u3']);
  const listed = rig.informer.list();
  expect(listed.map(({ metadata }) => metadata.name)).toEqual(['a', 'c']);
  expect(rig.informer.list()).toBe(listed);
  expect(rig.informer.resourceVersion()).toBe('9');
  expect(rig.asked).toEqual([{ verb: 'watch', sendInitialEvents: true, timeoutSeconds: 450 }]);
});

test('nothing is told before the stream has the whole list', async () => {
  const rig = start({ watches: [[event('ADDED', 'a', 'u1', 1), new TransportError('reset')]] });
  await rig.clock.advance(0);
  expect(rig.told).toEqual([]);
  expect(rig.informer.synced()).toBe(false);
});

test.each([
  ['refuses the parameter', [[refusal(422, 'Invalid')]]],
  ['calls it a bad request', [[refusal(400, 'BadRequest')]]],
  ['does not know it', [[event('ADDED', 'a', 'u1', 1), bookmark(3), 'nothing']]],
] as [string, Scripts['watches'] & object][])(
  'a server that %s is asked for pages',
  async (_name, watches) => {
    const rig = start({ watches, lists: [list(5, object('a', 'u1', 1))] });
    await rig.clock.advance(1_000);
    expect(versions(rig)).toEqual(['stream', 'list', '5']);
    expect(rig.told).toEqual(['+a/u1']);
  },
);

test.each([
  ['a reset', [new TransportError('reset')]],
  ['a refusal', [refusal(500, 'InternalError')]],
  ['an error event', [errorEvent(500, 'InternalError')]],
  ['an early end', []],
])('after %s the watch goes on from the last version', async (_name, ending) => {
  const first = [
    event('ADDED', 'a', 'u1', 1),
    initialEnd(5),
    event('MODIFIED', 'a', 'u1', 6),
    ...ending,
  ];
  const rig = start({ watches: [first, [event('MODIFIED', 'a', 'u1', 7), 'nothing']] });
  await rig.clock.advance(1_000);
  expect(versions(rig)).toEqual(['stream', '6']);
  expect(rig.told).toEqual(['+a/u1', '~a/u1:6', '~a/u1:7']);
});

test.each([
  ['status 410', [refusal(410, 'Gone')]],
  ['reason Expired', [refusal(400, 'Expired')]],
  ['an error event with code 410', [errorEvent(410, 'Gone')]],
  ['an error event with reason Expired', [errorEvent(0, 'Expired')]],
])('%s: the list is read anew, and what vanished meanwhile is told', async (_name, ending) => {
  const first = [
    event('ADDED', 'a', 'u1', 1),
    event('ADDED', 'b', 'u2', 2),
    initialEnd(5),
    bookmark(6),
  ];
  const second = [
    event('ADDED', 'b', 'u2', 9),
    event('ADDED', 'c', 'u3', 8),
    initialEnd(20),
    'nothing' as const,
  ];
  const rig = start({ watches: [first, ending, second] });
  await rig.clock.advance(10_000);
  expect(versions(rig)).toEqual(['stream', '6', 'stream']);
  expect(rig.told).toEqual(['+a/u1', '+b/u2', '-a/u1', '~b/u2:9', '+c/u3']);
});

test('delete and recreate under one name is never an update', async () => {
  const first = [
    event('ADDED', 'a', 'u1', 1),
    initialEnd(5),
    event('MODIFIED', 'a', 'u2', 6),
    refusal(410, 'Gone'),
  ];
  const rig = start({
    watches: [first, [event('ADDED', 'a', 'u3', 9), initialEnd(20), 'nothing']],
  });
  await rig.clock.advance(1_000);
  expect(rig.told).toEqual(['+a/u1', '-a/u1', '+a/u2', '-a/u2', '+a/u3']);
});

test('a deletion of an earlier object of that name changes nothing', async () => {
  const rig = start({
    watches: [
      [event('ADDED', 'a', 'u2', 4), initialEnd(5), event('DELETED', 'a', 'u1', 6), 'nothing'],
    ],
  });
  await rig.clock.advance(0);
  expect(rig.told).toEqual(['+a/u2']);
});

test('a server that keeps failing is asked with growing pauses, and at last for the list', async () => {
  const failures = Array.from({ length: 7 }, () => [refusal(500, 'InternalError')]);
  const rig = start({ watches: [[initialEnd(5)], ...failures] });
  const times: number[] = [];
  for (let ms = 0; rig.asked.length < 9; ms += 50) {
    if (rig.asked.length > times.length) times.push(ms);
    await rig.clock.advance(50);
  }
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  expect(gaps).toEqual(gaps.toSorted((a, b) => a - b));
  expect(versions(rig)).toEqual(['stream', '5', '5', '5', '5', '5', 'stream', 'stream', 'stream']);
});

test('a server that cannot be reached is not suspected of having lost the version, unless it is away for minutes', async () => {
  const failures = Array.from({ length: 200 }, () => [new TransportError('refused')]);
  const rig = start({ watches: [[initialEnd(5)], ...failures] });
  await rig.clock.advance(140_000);
  expect(new Set(versions(rig).slice(1))).toEqual(new Set(['5']));
  await rig.clock.advance(20_000);
  expect(versions(rig).at(-1)).toBe('stream');
});

test('a server restored from a backup, which knows only lower versions, is listed again once its watch ended without an event', async () => {
  const quiet = Promise.withResolvers<void>();
  const rig = start({
    watches: [
      [event('ADDED', 'a', 'u1', 900), event('ADDED', 'b', 'u2', 901), initialEnd(950)],
      [quiet.promise, new TransportError('the watch sent nothing for 3 min')],
      [
        event('ADDED', 'a', 'u1', 300),
        initialEnd(400),
        event('MODIFIED', 'a', 'u1', 401),
        'nothing',
      ],
    ],
  });
  await rig.clock.advance(180_000);
  quiet.resolve();
  await rig.clock.advance(1_000);
  expect(versions(rig)).toEqual(['stream', '950', 'stream']);
  expect(rig.told).toEqual(['+a/u1', '+b/u2', '-b/u2', '~a/u1:300', '~a/u1:401']);
});

/**
 * Returns how often the server got a request within a minute in which it answers with these
 * failures.
 */
async function asked(...failures: readonly Error[]): Promise<number> {
  const rig = start({ watches: [[initialEnd(5)], ...failures.map((failure) => [failure])] });
  await rig.clock.advance(60_000);
  return rig.asked.length;
}

const many = (failure: () => Error, count = 200): Error[] => Array.from({ length: count }, failure);
const away = (): Error => new TransportError('refused');
const forbidden = (): Error => refusal(403, 'Forbidden');

test('a server that is away is asked often, one that says no is not', async () => {
  expect(await asked(...many(away))).toBeGreaterThan(30);
  expect(await asked(...many(() => refusal(503, 'ServiceUnavailable')))).toBeGreaterThan(30);
  expect(await asked(...many(forbidden))).toBeLessThan(15);
});

test('one that says no after it was away is starting: asked soon, but not for ever', async () => {
  const rig = start({
    watches: [[initialEnd(5)], ...[...many(away, 20), ...many(forbidden)].map((each) => [each])],
  });
  while (rig.asked.length < 22) await rig.clock.advance(50);
  const first = rig.asked.length;
  const at = rig.clock.monotonic();
  while (rig.asked.length < first + 3) await rig.clock.advance(50);
  expect(rig.clock.monotonic() - at).toBeLessThan(1_500);
  await rig.clock.advance(15_000);
  const then = rig.asked.length;
  await rig.clock.advance(60_000);
  expect(rig.asked.length - then).toBeLessThan(6);
});

test('the time a server asks for is waited', async () => {
  const busy = refusal(429, 'TooManyRequests');
  busy.status.details = { retryAfterSeconds: 20 };
  const rig = start({ watches: [[busy]] });
  await rig.clock.advance(19_000);
  expect(rig.asked).toHaveLength(1);
  await rig.clock.advance(1_000);
  expect(rig.asked).toHaveLength(2);
});

test.each<[string, unknown, number, number]>([
  ['an hour, which is too long to see nothing', 3_600, 1, 2],
  ['no number', 'x', 1, 30],
  ['more than any number', Number.POSITIVE_INFINITY, 1, 2],
])(
  'a server that asks for %s is asked again all the same, but not at once',
  async (_what, seconds, least, most) => {
    const busy = refusal(503, 'ServiceUnavailable');
    busy.status.details = { retryAfterSeconds: seconds as number };
    const rig = start({ watches: Array.from({ length: 200 }, () => [busy]) });
    await rig.clock.advance(30_000);
    expect(rig.asked.length).toBeGreaterThan(least);
    expect(rig.asked.length).toBeLessThanOrEqual(most);
  },
);

test('a handler that throws keeps neither others nor later events from being told', async () => {
  const error = vi.fn<() => void>();
  const watches = [
    [
      event('ADDED', 'a', 'u1', 1),
      initialEnd(5),
      event('MODIFIED', 'a', 'u1', 6),
      'nothing' as const,
    ],
  ];
  const clock = new FakeClock();
  const informer = createInformer(scriptedClient({ watches }).client, nodes, {
    clock,
    log: { ...silentLogger, child: () => ({ ...silentLogger, error }) },
  });
  const told: string[] = [];
  const fail = (): never => {
    throw new Error('a fault');
  };
  informer.addHandler({ added: fail, updated: fail });
  informer.addHandler({ added: () => told.push('+'), updated: () => told.push('~') });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await clock.advance(0);
  expect(told).toEqual(['+', '~']);
  expect(error).toHaveBeenCalledTimes(2);
  stop.abort();
  await running;
});

test('a handler that comes late hears of what is there, one that left hears nothing', async () => {
  const rig = start({ watches: [[event('ADDED', 'a', 'u1', 1), initialEnd(5), 'nothing']] });
  await rig.informer.whenSynced();
  const told: string[] = [];
  const leave = rig.informer.addHandler({ added: ({ metadata }) => told.push(metadata.name) });
  leave();
  expect(told).toEqual(['a']);
});

test('managed fields are dropped, all else is kept', async () => {
  const full = {
    metadata: { ...object('a', 'u1', 1).metadata, managedFields: [{ manager: 'x' }] },
    future: 1,
  };
  const rig = start({ watches: [[{ type: 'ADDED', object: full }, initialEnd(5), 'nothing']] });
  await rig.informer.whenSynced();
  expect(rig.informer.get('a')).toEqual({ ...object('a', 'u1', 1), future: 1 });
});

test('waiting for the first list can be given up', async () => {
  const rig = start({});
  const stop = new AbortController();
  const waiting = rig.informer.whenSynced(stop.signal);
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});
