/**
 * Tests the procedure of an agent with leaders, policies and bad builds. Files and processes are real, and the object
 * is in memory.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadJournal, saveJournal } from '../../src/agent/state/journal-file.ts';
import type { Node } from '../../src/kube/resources.ts';
import { encodeAgentPolicy, encodeReport } from '../../src/signal/annotations.ts';
import { SIGNAL_DATA_ANNOTATION, SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { SkewedClock } from '../support/clock/skewed-clock.ts';
import { Fuse } from './fuse.ts';
import { Builds, NEW, OLD, Place } from './in-process.ts';
import { MemoryStore, viewOf } from './memory-object.ts';

/** A clock with short pauses, because the agent checks only every five seconds who cordons. */
const hurried = new SkewedClock(systemClock, { pauses: 1 / 50 });

let builds: Builds;
let places = 0;
beforeAll(async () => {
  builds = await Builds.start();
});
afterAll(async () => await builds[Symbol.asyncDispose]());

const startPlace = async (): Promise<Place> => await Place.start(`node${++places}`, builds);
const leftovers = async ({ host }: Place): Promise<string[]> =>
  (await readdir(join(host.directory, 'bin'))).filter(
    (name) => name !== 'k0s' && name !== 'k0s.previous',
  );
const requestsOf = ({ host }: Place): unknown[] =>
  builds.server.requests.filter(({ node }) => node === host.name);

describe('a leader that cordons', () => {
  test('is waited for, before the update and after it', async () => {
    await using place = await startPlace();
    const { store, node, host } = place;
    node.cordoner = 'leader';
    place.startAgent();
    place.send('/good');
    await place.until(() => expect(store.statuses.at(-1)).toBe('Cordoning'));
    const { pid } = host;
    store.advance('Cordoning', { touched: 'by somebody' });
    node.isCordoned = true;
    store.advance('ApplyingUpdate');
    await place.until(() => expect(store.statuses.at(-1)).toBe('UnCordoning'));
    expect(host.pid).not.toBe(pid);
    node.isCordoned = false;
    store.advance('Completed');
    await place.ended();
    expect(store.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(node).toMatchObject({ drains: 0, wasTouchedUncordoned: false });
    expect(await host.version()).toBe(NEW);
    expect(await leftovers(place)).toEqual([]);
  });

  test('while it is unknown who cordons the node, the agent asks again until this is known', async () => {
    await using place = await startPlace();
    const { store, node } = place;
    node.cordoner = 'unknown';
    place.startAgent(new Fuse(Infinity), { clock: hurried });
    place.send('/good');
    await place.until(() => expect(node.asked).toBeGreaterThan(2));
    expect(store.statuses.at(-1)).toBe('Cordoning');
    node.cordoner = 'self';
    await place.ended();
    expect(store.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(node).toMatchObject({ drains: 1, isCordoned: false });
  });

  test('by policy is not even asked about', async () => {
    await using place = await startPlace();
    const { store, node } = place;
    store.change({ annotations: encodeAgentPolicy({ cordoning: 'leader', soakMs: 0 }) });
    place.startAgent();
    place.send('/good');
    await place.until(() => expect(store.statuses.at(-1)).toBe('Cordoning'));
    store.advance('ApplyingUpdate');
    await place.until(() => expect(store.statuses.at(-1)).toBe('UnCordoning'));
    store.advance('Completed');
    await place.ended();
    expect(node).toMatchObject({ asked: 0, drains: 0 });
  });

  test('that takes the signal back ends a drain, keeps its reason, and our cordon goes', async () => {
    await using place = await startPlace();
    const { store, node, host } = place;
    const reason = 'drain took longer than 1 h';
    node.onDrain = async (abort) => {
      store.advance('Failed', encodeReport({ created: 'c', reason }));
      await new Promise((_resolve, reject) => {
        if (abort.aborted) reject(abort.reason as Error);
        abort.addEventListener('abort', () => reject(abort.reason as Error));
      });
    };
    const { pid } = host;
    place.startAgent();
    place.send('/good');
    await place.ended();
    expect(store.statuses).toEqual(['Downloading', 'Cordoning', 'Failed']);
    expect(place.report).toMatchObject({ reason });
    expect(node.isCordoned).toBe(false);
    expect(await leftovers(place)).toEqual([]);
    expect(host.pid).toBe(pid);
  });

  test('that takes the signal back ends a download', async () => {
    await using place = await startPlace();
    place.startAgent();
    place.send('/slow');
    await place.until(() =>
      expect(requestsOf(place)).toMatchObject([{ bytesSent: expect.any(Number) }]),
    );
    place.store.advance('Failed');
    await place.ended();
    expect(place.store.statuses).toEqual(['Downloading', 'Failed']);
    expect(requestsOf(place)).toMatchObject([{ complete: false }]);
    expect(await leftovers(place)).toEqual([]);
  });
});

describe('a cordon of ours', () => {
  test('an update to the running version removes a cordon that an earlier update left behind', async () => {
    await using place = await startPlace();
    const { store, node, host } = place;
    node.isCordoned = true;
    const { pid } = host;
    place.startAgent();
    place.send('/old');
    await place.ended();
    expect(store.statuses).toEqual(['UnCordoning', 'Completed']);
    expect(node.isCordoned).toBe(false);
    expect(host.pid).toBe(pid);
  });

  test('an update that is rolled back leaves no cordon of the agent on the node', async () => {
    await using place = await startPlace();
    place.startAgent();
    place.send('/wrong');
    await place.ended();
    expect(place.report).toMatchObject({
      rolledBack: true,
      reason: expect.stringContaining('.wrong'),
    });
    expect(place.node).toMatchObject({ isCordoned: false, drains: 1 });
  });

  test('that cannot be removed does not keep a failure from being told, and goes later', async () => {
    await using place = await startPlace();
    const { node, store } = place;
    node.holdsFast = 'no answer';
    place.startAgent();
    place.send('/wrong');
    await place.until(() => expect(store.statuses.at(-1)).toBe('Failed'));
    expect(node.isCordoned).toBe(true);
    node.holdsFast = undefined;
    await place.ended();
    expect(node.isCordoned).toBe(false);
  });

  test('that cannot be removed keeps an update from being told as done', async () => {
    await using place = await startPlace();
    const { node, store } = place;
    node.holdsFast = 'no answer';
    place.startAgent();
    place.send('/good');
    await place.until(() => expect(node.refusals).toBeGreaterThan(1));
    expect(store.statuses.at(-1)).toBe('UnCordoning');
    node.holdsFast = undefined;
    await place.ended();
    expect(store.statuses).toEqual([...SIGNAL_STATUSES]);
  });

  test('is not left behind where the node cannot be emptied', async () => {
    await using place = await startPlace();
    const { node, store } = place;
    node.onDrain = async () => await Promise.reject(new Error('pod web/a has local data'));
    place.startAgent();
    place.send('/good');
    await place.ended();
    expect(store.statuses).toEqual(['Downloading', 'Cordoning', 'Failed']);
    expect(place.report).toMatchObject({ reason: 'pod web/a has local data' });
    expect(node.isCordoned).toBe(false);
    expect(await leftovers(place)).toEqual([]);
  });
});

describe('a build that is', () => {
  const rolledBack = async (place: Place, reason: RegExp): Promise<void> => {
    await place.ended();
    expect(place.store.statuses).toEqual([
      'Downloading',
      'Cordoning',
      'ApplyingUpdate',
      'Restart',
      'Failed',
    ]);
    expect(place.report).toMatchObject({ rolledBack: true, reason: expect.stringMatching(reason) });
    expect(await place.host.version()).toBe(OLD);
    expect(place.node.isCordoned).toBe(false);
  };

  test('a build that works at first and then crashes is rolled back, and the reason counts its starts', async () => {
    await using place = await startPlace();
    place.startAgent();
    place.send('/crashes-later');
    await rolledBack(
      place,
      /^crash loop: the process of .* ended .* after its first answer; started at least 2 times in \d+ m?s$/,
    );
  });

  test('well at first and then hangs is rolled back', async () => {
    await using place = await startPlace();
    place.store.change({ annotations: encodeAgentPolicy({ soakMs: 24 * 3_600_000 }) });
    const clock = new SkewedClock(systemClock);
    place.startAgent(new Fuse(Infinity), { clock });
    place.send('/hangs-later');
    await place.until(async () => expect(await place.journal()).toContain('"soaking"'));
    // The test advances the clock only during the soak. The start of a process takes as much time as the machine needs.
    await place.until(async () => {
      const isSoaking = (await place.journal()).includes('"soaking"');
      if (isSoaking) clock.skip(1_000);
      expect(isSoaking).toBe(false);
    });
    await rolledBack(place, /^the new process stopped answering$/);
  });

  test('well at first is taken for good where the policy asks for no soak', async () => {
    await using place = await startPlace();
    place.store.change({ annotations: encodeAgentPolicy({ soakMs: 0 }) });
    place.startAgent();
    place.send('/crashes-later');
    await place.ended();
    expect(place.store.statuses).toEqual([...SIGNAL_STATUSES]);
  });

  test('a forced update to the running version completes only with a new process', async () => {
    await using place = await startPlace();
    place.startAgent();
    place.send('/old', { forceupdate: true });
    await place.ended();
    expect(place.store.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(place.host.starts).toBe(2);
    expect(place.node.drains).toBe(1);
  });
});

describe('the node', () => {
  const condition = (status: string, heard = {}): { status: object } => ({
    status: { conditions: [{ type: 'Ready', status, ...heard }] },
  });
  const longAgo = { lastHeartbeatTime: '2026-01-01T00:00:00Z' };
  const now = (): object => ({ lastHeartbeatTime: rfc3339(Date.now()) });
  const unheard = {
    rolledBack: true,
    reason: expect.stringContaining('no kubelet heartbeat within'),
  };

  test('the new version is rolled back if its node is not Ready in time', async () => {
    await using place = await startPlace();
    place.store.change(condition('True'));
    place.store.change({ annotations: encodeAgentPolicy({ readyTimeoutMs: 500 }) });
    // Changes the condition at once, so that the agent observes no Node that is Ready after the restart.
    const stopWatching = place.store.watch(() => {
      if (place.store.statuses.at(-1) !== 'Restart') return;
      stopWatching();
      place.store.change(condition('False'));
    });
    place.startAgent();
    place.send('/good');
    await place.ended();
    expect(place.report).toMatchObject({
      rolledBack: true,
      reason: expect.stringMatching(/node not Ready within \d+ m?s of/),
    });
    expect(await place.host.version()).toBe(OLD);
  });

  test('that is Ready late is waited for', async () => {
    await using place = await startPlace();
    place.store.change(condition('False'));
    place.startAgent();
    place.send('/good');
    await place.until(async () => expect(await place.journal()).toContain('"soaking"'));
    expect(place.store.statuses.at(-1)).toBe('Restart');
    place.store.change(condition('True'));
    await place.ended();
    expect(place.store.statuses).toEqual([...SIGNAL_STATUSES]);
  });

  test.each([
    [
      'on it',
      (place: Place, node: Node): void => place.store.change({ status: node.status ?? {} }),
    ],
    [
      'not on it',
      (place: Place, node: Node): void => {
        place.node.read = () => node;
      },
    ],
  ])(
    'whose kubelet never comes back has its new version rolled back, signals %s',
    async (_where, tell) => {
      await using place = await startPlace();
      tell(place, { metadata: { name: 'n' }, ...condition('True', longAgo) });
      place.store.change({ annotations: encodeAgentPolicy({ readyTimeoutMs: 500 }) });
      place.startAgent();
      place.send('/good');
      await place.ended();
      expect(place.store.statuses).toEqual([
        'Downloading',
        'Cordoning',
        'ApplyingUpdate',
        'Restart',
        'Failed',
      ]);
      expect(place.report).toMatchObject(unheard);
      expect(await place.host.version()).toBe(OLD);
      expect(place.node.isCordoned).toBe(false);
    },
  );

  test('whose kubelet comes back late is waited for, by an agent that is started anew as well', async () => {
    await using place = await startPlace();
    place.store.change(condition('True', longAgo));
    const first = new Fuse(Infinity);
    place.startAgent(first);
    place.send('/good');
    await place.until(async () => expect(await place.journal()).toContain('"soaking"'));
    first.dead.abort();
    place.startAgent();
    let looks = 0;
    place.node.read = () => {
      looks++;
      return place.store.object;
    };
    await place.until(() => expect(looks).toBeGreaterThan(1));
    expect(place.store.statuses.at(-1)).toBe('Restart');
    place.store.change(condition('True', now()));
    await place.ended();
    expect(place.store.statuses).toEqual([...SIGNAL_STATUSES]);
  });
});

describe('an object that', () => {
  test('another client that changes the object before each write costs one more write and nothing else', async () => {
    await using place = await startPlace();
    const { store, host } = place;
    let overtaken = 0;
    let isSecond = false;
    store.beforeWrite = () => {
      isSecond = !isSecond;
      if (isSecond) store.change({ annotations: { overtaken: String(++overtaken) } });
    };
    place.startAgent();
    place.send('/good');
    await place.ended();
    expect(store.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(overtaken).toBe(SIGNAL_STATUSES.length);
    expect(requestsOf(place)).toMatchObject([{ complete: true }]);
    expect(host.starts).toBe(2);
    expect(await host.version()).toBe(NEW);
  });

  test('an agent whose signal is overwritten with garbage cleans up and takes the next signal', async () => {
    await using place = await startPlace();
    const { store, node } = place;
    node.cordoner = 'leader';
    place.startAgent();
    place.send('/good');
    await place.until(() => expect(store.statuses.at(-1)).toBe('Cordoning'));
    store.change({ annotations: { [SIGNAL_DATA_ANNOTATION]: '{"planId":' } });
    await place.until(async () => expect(await place.journal()).toContain('"idle"'));
    expect(await leftovers(place)).toEqual([]);
    node.cordoner = 'self';
    place.send('/good');
    await place.ended();
    expect(await place.host.version()).toBe(NEW);
  });

  test('a new signal that replaces a signal in status Cordoning starts the update from the beginning', async () => {
    await using place = await startPlace();
    const { store, node } = place;
    node.cordoner = 'leader';
    place.startAgent();
    place.send('/wrong');
    await place.until(() => expect(store.statuses.at(-1)).toBe('Cordoning'));
    node.cordoner = 'self';
    place.send('/good');
    await place.ended();
    expect(store.statuses).toEqual(['Downloading', 'Cordoning', ...SIGNAL_STATUSES]);
    expect(await place.host.version()).toBe(NEW);
  });
});

test('two agents of one host follow two objects, each with a journal of its own', async () => {
  await using place = await startPlace();
  const own = new MemoryStore();
  const journal = join(builds.directory, 'second.json');
  place.startAgent(new Fuse(Infinity), { accepts: ['k0supdate'] });
  place.startAgent(new Fuse(Infinity), {
    object: viewOf(own),
    accepts: ['airgapupdate'],
    loadJournal: async () => await loadJournal(journal),
    saveJournal: async (next) => await saveJournal(journal, next),
  });
  const { server } = builds;
  const command = {
    id: 0,
    version: NEW,
    sha256: server.sha256('/bundle.tar'),
    url: `${server.url}/bundle.tar`,
  };
  own.send({ planId: 'p', created: 'c', command: { ...command, kind: 'airgapupdate' } });
  place.send('/good');
  await place.ended();
  await place.until(() => expect(own.statuses).toEqual(['Downloading', 'Completed']));
  expect(await readdir(place.images)).toEqual(['bundle.tar']);
  expect(place.store.statuses).toEqual([...SIGNAL_STATUSES]);
  own.send({ planId: 'p', created: 'd', command: { ...command, kind: 'k0supdate' } });
  await place.until(() => expect(own.statuses.at(-1)).toBe('FailedDownload'));
});
