/**
 * Tests what counts as a heartbeat of a kubelet: a report since the restart, whether it comes from the watch or from a
 * request to the API server, and even if the clock was set to another time.
 */
import { expect, test } from 'vitest';
import { after, journalAt, NEW, running } from '../../../test/support/builders/agent-situations.ts';
import type { KubeObject, Node } from '../../kube/resources.ts';
import { type Clock, rfc3339, systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import type { ServiceFacts } from './host.ts';
import { kubeletHeartbeat } from './kubelet-heartbeat.ts';

const RESTARTED = Date.parse('2026-11-20T08:00:00.700Z');
/** The service needed two seconds to end, and its next process needed half a second to answer. */
const SOAKING = journalAt('soaking', {
  fresh: after,
  restartedAt: RESTARTED - 2_000,
  since: RESTARTED + 500,
});
const NEVER = new AbortController().signal;
const SILENT = { staleMs: 0 };
const CONTROL_NODE: KubeObject = { metadata: { name: 'n' } };

/**
 * Returns a Node whose kubelet reported this status `afterMs` milliseconds after the restart. Without `afterMs`, the
 * condition has no heartbeat time.
 */
function told(status: 'True' | 'False' | 'Unknown', afterMs?: number): Node {
  const heard = afterMs === undefined ? {} : { lastHeartbeatTime: rfc3339(RESTARTED + afterMs) };
  return { metadata: { name: 'n' }, status: { conditions: [{ type: 'Ready', status, ...heard }] } };
}

/** A Node whose condition has no heartbeat time, as the API server writes it. */
const TOLD_AT_NO_TIME: Node = {
  metadata: { name: 'n' },
  status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: null }] },
};

/**
 * A host, and the state of its node in the API server. The host's clock shows the agent's time, unless a test sets the
 * clock.
 */
class Place {
  newest: Node | undefined;
  has: Node | undefined;
  isAnswering = true;
  asked = 0;
  now = RESTARTED + 3_000;
  setBy = 0;
  /** Steady milliseconds. */
  startedAt = RESTARTED;
  readonly heartbeat: ReturnType<typeof kubeletHeartbeat>;

  constructor(newest?: Node, has = newest) {
    this.newest = newest;
    this.has = has;
    const clock: Clock = { ...systemClock, now: () => this.now + this.setBy };
    const readNode = async (): Promise<Node | undefined> => {
      this.asked++;
      return await (this.isAnswering
        ? Promise.resolve(this.has)
        : Promise.reject(new Error('no answer')));
    };
    const ageOf = async (): Promise<number> => await Promise.resolve(this.now - this.startedAt);
    this.heartbeat = kubeletHeartbeat({
      maintenance: { readNode },
      ageOf,
      object: this,
      clock,
      log: silentLogger,
    });
  }

  async check(journal = SOAKING, host: ServiceFacts = running(NEW, after)): Promise<object> {
    return await this.heartbeat(journal, host, () => this.now, NEVER);
  }
}

test.each<[string, Node | undefined, object, number]>([
  ['Ready, and told since', told('True', 1_500), { isReady: true }, 0],
  ['not Ready, and told since', told('False', 1_500), { isReady: false }, 0],
  ['Ready, of the same second, as no finer time is told', told('True', 100), { isReady: true }, 0],
  [
    'a Ready condition from the second before the restart does not count as a heartbeat',
    told('True', -800),
    SILENT,
    1,
  ],
  ['Ready, as the last report of the kubelet before', told('True', -1_500), SILENT, 1],
  ['not Ready, of before', told('False', -60_000), SILENT, 1],
  ['what Kubernetes makes of a node that it hears no more', told('Unknown', -40_000), SILENT, 1],
  ['Ready, by somebody who does not tell when', told('True'), { isReady: true }, 0],
  ['Ready, with a time that is null', TOLD_AT_NO_TIME, { isReady: true }, 0],
  ['not Ready, by somebody who does not tell when', told('False'), { isReady: false }, 0],
  ['nothing about Ready', { metadata: { name: 'n' } }, {}, 1],
  ['no node', undefined, {}, 1],
])(
  'whether the condition of a Node is a heartbeat of the new kubelet: %s',
  async (_what, node, facts, asked) => {
    const place = new Place(node);
    expect(await place.check()).toEqual(facts);
    expect(place.asked).toBe(asked);
  },
);

test.each([
  ['v1.36.3+k0s', 100, { isReady: true }],
  ['v1.35.9+k0s', 100, SILENT],
  ['v1.35.9+k0s', 1_500, { isReady: true }],
])(
  'in the second of the start the kubelet before is told by its version: %s after %d ms',
  async (kubelet, afterMs, facts) => {
    const node = told('True', afterMs);
    const place = new Place({
      ...node,
      status: { ...node.status, nodeInfo: { kubeletVersion: kubelet } },
    });
    if (SOAKING.phase !== 'soaking') throw new Error('another phase');
    const { signal } = SOAKING.work;
    const command = { ...signal.command, version: 'v1.36.3+k0s.2' };
    const work = { ...SOAKING.work, from: 'v1.35.9+k0s.0', signal: { ...signal, command } };
    expect(await place.check({ ...SOAKING, work })).toEqual(facts);
  },
);

test('the API server is asked for the heartbeat if the watch is late', async () => {
  expect(await new Place(told('True', -60_000), told('True', 1_500)).check()).toEqual({
    isReady: true,
  });
});

test('the node of a controller counts, though its signals are elsewhere', async () => {
  expect(await new Place(CONTROL_NODE, told('True', -60_000)).check()).toEqual(SILENT);
  expect(await new Place(CONTROL_NODE, told('True', 1_500)).check()).toEqual({ isReady: true });
  expect(await new Place(CONTROL_NODE, undefined).check()).toEqual({});
});

test('the API server is not asked for a heartbeat before the new process is watched', async () => {
  const place = new Place(told('True', -60_000));
  expect(await place.check(journalAt('restarted', { restartedAt: RESTARTED }))).toEqual({});
  expect(place.asked).toBe(0);
});

test.each([
  ['before the restart was ordered', -60_000],
  ['after the first answer', 60_000],
  ['nobody knows when', Number.NaN],
])(
  'a process that was started %s is no measure: what was told since the order counts',
  async (_when, offMs) => {
    const place = new Place(told('True', -1_500));
    place.startedAt += offMs;
    expect(await place.check()).toEqual({ isReady: true });
    place.has = told('True', -3_500);
    place.newest = place.has;
    expect(await place.check()).toEqual(SILENT);
  },
);

test('a restart that the journal does not date says nothing against what stands there', async () => {
  expect(await new Place(told('True', -60_000)).check(journalAt('soaking'))).toEqual({
    isReady: true,
  });
});

test('a heartbeat is stale since the first stale answer, without a break', async () => {
  const place = new Place(told('True', -60_000));
  expect(await place.check()).toEqual({ staleMs: 0 });
  place.now += 30_000;
  expect(await place.check()).toEqual({ staleMs: 30_000 });
  place.isAnswering = false;
  expect(await place.check()).toEqual({ staleMs: 0 });
  place.isAnswering = true;
  place.now += 5_000;
  expect(await place.check()).toEqual({ staleMs: 0 });
  place.now += 1_000;
  expect(await place.check()).toEqual({ staleMs: 1_000 });
  place.newest = told('True', 30_000);
  expect(await place.check()).toEqual({ isReady: true });
  place.newest = told('True', -60_000);
  expect(await place.check()).toEqual({ staleMs: 0 });
});

test('an API server that does not answer does not matter where the watch has the heartbeat', async () => {
  const place = new Place(told('True', 1_500));
  place.isAnswering = false;
  expect(await place.check()).toEqual({ isReady: true });
});

test.each([
  ['back', -3_600_000],
  ['ahead', 3_600_000],
])(
  'a clock that was set %s since the restart was set for the kubelet, too',
  async (_where, setBy) => {
    const place = new Place(told('True', setBy + 1_500));
    place.setBy = setBy;
    expect(await place.check()).toEqual({ isReady: true });
    place.has = told('True', setBy - 1_500);
    place.newest = place.has;
    expect(await place.check()).toEqual(SILENT);
  },
);

test('while the service does not answer, the API server is asked whether it can', async () => {
  const place = new Place(told('True', 1_500));
  expect(await place.check(SOAKING, {})).toEqual({ isReady: true });
  expect(place.asked).toBe(1);
  place.isAnswering = false;
  expect(await place.check(SOAKING, {})).toEqual(SILENT);
  expect(await place.check()).toEqual({ isReady: true });
});

test('a check of the heartbeat that is told to stop gets no answer', async () => {
  const place = new Place(told('True', -60_000));
  place.isAnswering = false;
  const gone = AbortSignal.abort(new Error('over'));
  await expect(place.heartbeat(SOAKING, {}, () => place.now, gone)).rejects.toThrow('over');
});
