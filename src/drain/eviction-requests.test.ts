/** Shows how a drain evicts pods by EvictionRequests, when it evicts them itself, and that it leaves no request behind. */
import { afterEach, describe, expect, test } from 'vitest';
import { EvictionRequestApi, faultsOf } from '../../test/support/builders/eviction-request-api.ts';
import { REQUEST_ROWS } from '../../test/support/builders/eviction-request-rows.ts';
import { buildLog } from '../../test/support/builders/logs.ts';
import { PodApi, refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { TransportError } from '../kube/status-error.ts';
import { printable } from '../util/printable.ts';
import { type DrainProgress, drainNode } from './drain-node.ts';
import { type EvictionRequest, judgeRequest, requestFor } from './eviction-request-objects.ts';
import { DrainHandedOverError } from './eviction-requests.ts';
import { DEFAULT_DRAIN, type DrainOptions } from './pods.ts';

class Rig {
  readonly api = new PodApi();
  readonly lifecycle = new EvictionRequestApi();
  readonly clock = new FakeClock();
  readonly stop = new AbortController();
  readonly progress: DrainProgress[] = [];
  readonly log: string[] = [];
  done: Promise<string> = Promise.resolve('not begun');

  constructor(...pods: readonly string[]) {
    for (const [index, name] of pods.entries())
      this.api.put(
        buildPod(name, { uid: `0c5dc5a9-8d5e-4b3f-9a5e-${String(index).padStart(12, '0')}` }),
      );
    rigs.push(this);
  }

  async begin(options: Partial<DrainOptions> = {}): Promise<this> {
    const { clock, progress } = this;
    const onChange = (state: DrainProgress): void => void progress.push(state);
    const client = this.lifecycle.over(this.api.client);
    const abort = this.stop.signal;
    const parts = {
      client,
      clock,
      random: () => 0.99,
      log: buildLog(this.log, 'warn'),
      abort,
      onChange,
    };
    const all = { ...DEFAULT_DRAIN, evictionRequests: true, ...options };
    this.done = drainNode('n1', all, parts).then(
      () => 'drained',
      (error: Error) => error.message,
    );
    await clock.advance(0);
    return this;
  }

  evicted(): string[] {
    return this.api.evictions.map(({ pod }) => pod.replace('default/', ''));
  }

  /** Returns all warnings of the log. */
  warnings(): string {
    return this.log.join('\n');
  }

  /** Returns the responder for which the drain waits. Checks that no eviction is refused at the same time. */
  waitingFor(): string | undefined {
    expect(this.progress.at(-1)?.blockedBy).toBeUndefined();
    return this.progress.at(-1)?.waitingFor;
  }

  /** Stores an Eviction as the controllers write it: the responder is active and has reported its progress. */
  respond(pod: string, responder: string, report: object = {}): void {
    this.lifecycle.change(pod, { observedGeneration: 1 });
    const target = [...this.lifecycle.requests.values()].find(
      ({ spec }) => spec.target.pod?.name === pod,
    )?.spec.target;
    const before = this.lifecycle.evictions;
    this.lifecycle.evictions = [
      ...before.filter(({ spec }) => spec.target.pod?.name !== pod),
      {
        metadata: { name: `pod-1-${pod}`, namespace: 'default' },
        spec: { target: target ?? {} },
        status: {
          targetResponders: [
            { name: responder, state: 'Active' },
            { name: 'imperative-eviction.k8s.io/evictor', state: 'Inactive' },
          ],
          responders: [{ name: responder, ...report }],
        },
      },
    ];
  }
}

const rigs: Rig[] = [];

afterEach(async () => {
  for (const { api, clock, stop, done } of rigs.splice(0)) {
    stop.abort(new Error('the test is over'));
    await done;
    expect({ watching: api.watching, timers: clock.pending }).toEqual({ watching: 0, timers: 0 });
  }
});

describe('where the API server serves EvictionRequests', () => {
  test('each pod gets one, no pod is evicted otherwise, and none is left at the end', async () => {
    const rig = await new Rig('a', 'b').begin();
    expect(rig.lifecycle.requested()).toEqual(['a', 'b']);
    rig.respond('a', 'imperative-eviction.k8s.io/evictor');
    rig.respond('b', 'imperative-eviction.k8s.io/evictor');
    rig.api.remove('default/a');
    await rig.clock.advance(60_000);
    expect(rig.lifecycle.requested()).toEqual(['b']);
    rig.api.remove('default/b');
    expect(await rig.clock.runUntil(rig.done)).toBe('drained');
    expect(rig.lifecycle.requested()).toEqual([]);
    expect(rig.evicted()).toEqual([]);
  });

  test('a pod that terminates keeps its request until it is gone', async () => {
    const rig = await new Rig('a').begin();
    rig.api.end('default/a');
    await rig.clock.advance(60_000);
    expect(rig.lifecycle.requested()).toEqual(['a']);
    rig.api.remove('default/a');
    expect(await rig.clock.runUntil(rig.done)).toBe('drained');
    expect(rig.lifecycle.requested()).toEqual([]);
  });

  test('people read who evicts which pods, and what it reports', async () => {
    const rig = await new Rig('a', 'b', 'c').begin();
    rig.respond('a', 'acme.example/move');
    rig.respond('b', 'acme.example/move');
    rig.respond('c', 'imperative-eviction.k8s.io/evictor', {
      heartbeatTime: '2026-01-01T00:00:05Z',
      expectedCompletionTime: '2026-01-01T00:00:41Z',
      message: 'the budget does not allow it',
    });
    await rig.clock.advance(5_000);
    expect(rig.waitingFor()).toBe(
      'responder acme.example/move evicts default/a, default/b (it has not reported yet); ' +
        'responder imperative-eviction.k8s.io/evictor evicts default/c (done by 2026-01-01T00:01Z): the budget does not allow it',
    );
    await rig.clock.advance(30 * 60_000);
    expect(rig.evicted()).toEqual([]);
    expect(rig.waitingFor()).toContain(
      'evicts default/c (it reported last at 2026-01-01T00:00:05Z, done by 2026-01-01T00:01Z): the budget',
    );
  });

  test('a heartbeat alone changes nothing that people read', async () => {
    const rig = await new Rig('a').begin();
    for (const [index, heartbeatTime] of ['00:05', '00:10', '00:15'].entries()) {
      rig.respond('a', 'acme.example/move', { heartbeatTime: `2026-01-01T00:${heartbeatTime}Z` });
      await rig.clock.advance(5_000);
      const told = rig.progress.filter(({ waitingFor }) => waitingFor !== undefined);
      expect(told, `after heartbeat ${index}`).toHaveLength(1);
    }
  });

  test('an expected end that moves by seconds changes nothing that people read', async () => {
    const rig = await new Rig('a').begin();
    for (const [index, seconds] of ['31', '44', '59'].entries()) {
      rig.respond('a', 'acme.example/move', {
        expectedCompletionTime: `2026-01-01T00:10:${seconds}Z`,
      });
      await rig.clock.advance(5_000);
      const told = rig.progress.filter(({ waitingFor }) => waitingFor !== undefined);
      expect(told, `after estimate ${index}`).toHaveLength(1);
      expect(rig.waitingFor()).toContain('done by 2026-01-01T00:11Z');
    }
  });

  test('what others have written is shown without control characters and not at full length', async () => {
    const rig = await new Rig('a', 'b').begin();
    const wild = `\u001b[2J\n${'x'.repeat(10_000)}`;
    rig.respond('a', wild, { message: wild, expectedCompletionTime: wild });
    await rig.clock.advance(5_000);
    expect(rig.waitingFor()).toBe(printable(rig.waitingFor() ?? ''));
    expect(rig.waitingFor()?.length).toBeLessThan(1_100);
    const failed = { type: 'Failed', status: 'True' as const, reason: 'Bad', message: wild };
    rig.lifecycle.change('b', { observedGeneration: 1, conditions: [failed] });
    const [request] = [...rig.lifecycle.requests.values()].filter(
      ({ spec }) => spec.target.pod?.name === 'b',
    );
    const verdict = judgeRequest(request, [], 0);
    expect(verdict).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(/^it failed: Bad, \uFFFD\[2J x{200,300}…$/u),
    });
  });

  test('a request that an earlier leader made counts as its own', async () => {
    const rig = new Rig('a');
    const [pod] = rig.api.on('n1');
    if (!pod) throw new Error('the rig has a pod');
    const own = requestFor(pod, 'n1');
    rig.lifecycle.requests.set(`default/${own.metadata.name}`, own);
    await rig.begin();
    expect(rig.lifecycle.requested()).toEqual(['a']);
    rig.api.remove('default/a');
    expect(await rig.clock.runUntil(rig.done)).toBe('drained');
    expect(rig.lifecycle.requested()).toEqual([]);
  });

  test('a request that somebody deletes is made again', async () => {
    const rig = await new Rig('a').begin();
    rig.lifecycle.requests.clear();
    await rig.clock.advance(5_000);
    expect(rig.lifecycle.requested()).toEqual(['a']);
  });

  test('an answer that is missing is asked for again', async () => {
    const rig = new Rig('a');
    rig.lifecycle.onCreate = () => {
      throw new TransportError('no answer');
    };
    await rig.begin();
    rig.lifecycle.onCreate = () => undefined;
    await rig.clock.advance(5_000);
    expect(rig.lifecycle.requested()).toEqual(['a']);
    expect(rig.evicted()).toEqual([]);
  });

  test('a grace period of the policy, which a request cannot hold, makes the drain evict plainly', async () => {
    const rig = await new Rig('a').begin({ gracePeriodSeconds: 7 });
    expect(rig.evicted()).toEqual(['a']);
    expect(rig.lifecycle.calls).toEqual([]);
  });
});

describe('the drain evicts a pod itself', () => {
  test('where the API server does not serve the kind', async () => {
    const rig = new Rig('a', 'b');
    rig.lifecycle.isServed = false;
    await rig.begin();
    expect(rig.evicted()).toEqual(['a', 'b']);
    expect(rig.lifecycle.calls).toEqual(['raw /apis/lifecycle.k8s.io/v1alpha1']);
  });

  test('without the option, and asks for nothing', async () => {
    const rig = await new Rig('a').begin({ evictionRequests: false });
    expect(rig.evicted()).toEqual(['a']);
    expect(rig.lifecycle.calls).toEqual([]);
  });

  test.each([
    ['without the right', 403, 'Forbidden'],
    ['if the object is refused', 422, 'Invalid'],
    ['if the kind is gone since', 404, 'NotFound'],
  ])('%s', async (_, code, reason) => {
    const rig = new Rig('a', 'b');
    rig.lifecycle.onCreate = () => {
      throw refuse({ code, reason });
    };
    await rig.begin();
    expect(rig.evicted().toSorted()).toEqual(['a', 'b']);
  });

  test('only for the pod whose request is refused', async () => {
    const rig = new Rig('a', 'b');
    rig.lifecycle.onCreate = ({ spec }) => {
      if (spec.target.pod?.name === 'a') throw refuse({ code: 422, reason: 'Invalid' });
    };
    await rig.begin();
    expect(rig.evicted()).toEqual(['a']);
    expect(rig.lifecycle.requested()).toEqual(['b']);
  });

  test('after 30 seconds in which no controller saw a request, for all pods of the node', async () => {
    const rig = await new Rig('a', 'b').begin();
    await rig.clock.advance(25_000);
    expect(rig.waitingFor()).toBe(
      'the EvictionRequest of default/a, default/b has not been seen by the controller of Kubernetes yet',
    );
    expect(rig.evicted()).toEqual([]);
    await rig.clock.advance(5_000);
    expect(rig.evicted()).toEqual(['a', 'b']);
    expect(rig.lifecycle.requested()).toEqual([]);
    rig.api.put(buildPod('late', { uid: '0c5dc5a9-8d5e-4b3f-9a5e-0000000000ff' }));
    await rig.clock.advance(0);
    expect(rig.evicted()).toEqual(['a', 'b', 'late']);
  });

  test('after 30 seconds in which no responder was active, only for that pod', async () => {
    const rig = await new Rig('a', 'b').begin();
    rig.respond('a', 'acme.example/move');
    rig.lifecycle.change('b', { observedGeneration: 1 });
    await rig.clock.advance(30_000);
    expect(rig.evicted()).toEqual(['b']);
    expect(rig.lifecycle.requested()).toEqual(['a']);
  });

  test('if its request failed', async () => {
    const rig = await new Rig('a', 'b').begin();
    rig.respond('b', 'acme.example/move');
    const failed = {
      type: 'Failed',
      status: 'True' as const,
      reason: 'EvictionInvalid',
      message: 'no',
    };
    rig.lifecycle.change('a', { observedGeneration: 1, conditions: [failed] });
    await rig.clock.advance(5_000);
    expect(rig.evicted()).toEqual(['a']);
    expect(rig.lifecycle.requested()).toEqual(['b']);
  });

  test('if the requests cannot be listed', async () => {
    const rig = await new Rig('a').begin();
    rig.lifecycle.onList = () => {
      throw refuse({ code: 403, reason: 'Forbidden' });
    };
    await rig.clock.advance(5_000);
    expect(rig.evicted()).toEqual(['a']);
  });
});

describe('without a right', () => {
  const forbidden = (): never => {
    throw refuse({ code: 403, reason: 'Forbidden', message: 'evictions is forbidden' });
  };
  const HINT = '`refit install rights eviction-requests` prints this right';

  test('to list Evictions, the drain waits and names the remedy', async () => {
    const rig = await new Rig('a').begin();
    rig.respond('a', 'acme.example/move');
    rig.lifecycle.onListEvictions = forbidden;
    await rig.clock.advance(60_000);
    expect(rig.evicted()).toEqual([]);
    expect(rig.waitingFor()).toContain('evictions is forbidden');
    expect(rig.waitingFor()).toContain(HINT);
  });

  test('to list requests, the drain evicts the pods itself, and the log names the remedy', async () => {
    const rig = await new Rig('a').begin();
    rig.lifecycle.onList = forbidden;
    await rig.clock.advance(5_000);
    expect(rig.evicted()).toEqual(['a']);
    expect(rig.warnings()).toContain(HINT);
  });

  test.each([401, 403])('to ask for the kinds (%i), the first request shows it', async (code) => {
    const rig = new Rig('a');
    rig.lifecycle.discovery = { status: code, body: '{}' };
    await rig.begin();
    expect(rig.lifecycle.requested()).toEqual(['a']);
    expect(rig.evicted()).toEqual([]);
  });
});

describe('a request that is being made', () => {
  /** Lets the API server answer the creates of these pods only when the returned function is called. */
  function holdCreates(rig: Rig, ...pods: readonly string[]): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    rig.lifecycle.beforeCreate = async ({ spec }) => {
      if (pods.includes(spec.target.pod?.name ?? '')) await promise;
    };
    return resolve;
  }

  test('is withdrawn after the answer if the pod is no longer on the node', async () => {
    const rig = new Rig('a', 'b');
    const answer = holdCreates(rig, 'a');
    await rig.begin();
    rig.api.remove('default/a');
    await rig.clock.advance(0);
    answer();
    await rig.clock.advance(0);
    expect(rig.lifecycle.requested()).toEqual(['b']);
  });

  test('is withdrawn before the drain evicts the pod itself', async () => {
    const rig = new Rig('a', 'b');
    const answer = holdCreates(rig, 'a');
    rig.lifecycle.onCreate = ({ spec }) => {
      if (spec.target.pod?.name === 'b') throw refuse({ code: 404, reason: 'NotFound' });
    };
    await rig.begin();
    expect(rig.evicted()).toEqual(['b']);
    answer();
    await rig.clock.advance(0);
    expect(rig.evicted()).toEqual(['b', 'a']);
    expect(rig.lifecycle.requested()).toEqual([]);
  });

  test('is not sent if the pod was dropped while the request waited for its turn', async () => {
    const names = Array.from({ length: 17 }, (_, index) => `p${index}`);
    const rig = new Rig(...names);
    const answer = holdCreates(rig, ...names);
    await rig.begin();
    rig.api.remove('default/p16');
    await rig.clock.advance(0);
    answer();
    await rig.clock.advance(0);
    expect(rig.lifecycle.calls.filter((call) => call.startsWith('create'))).toHaveLength(16);
    expect(rig.lifecycle.requested()).toEqual(names.slice(0, 16).toSorted());
  });
});

describe('a drain that ends early', () => {
  test('withdraws its requests, although it was aborted', async () => {
    const rig = await new Rig('a', 'b').begin();
    rig.stop.abort(new Error('the target was skipped'));
    expect(await rig.done).toBe('the target was skipped');
    expect(rig.lifecycle.requested()).toEqual([]);
  });

  test('withdraws them although it was aborted before the answer came', async () => {
    const rig = new Rig('a');
    rig.lifecycle.onCreate = (request: EvictionRequest) => {
      rig.lifecycle.requests.set(`default/${request.metadata.name}`, request);
      rig.stop.abort(new Error('the target was skipped'));
      throw new TransportError('no answer');
    };
    await rig.begin();
    expect(await rig.done).toBe('the target was skipped');
    expect(rig.lifecycle.requested()).toEqual([]);
  });

  test('withdraws them although the create succeeds only after the abort', async () => {
    const rig = new Rig('a');
    rig.lifecycle.answersLate = true;
    await rig.begin();
    rig.stop.abort(new Error('the target was skipped'));
    expect(await rig.done).toBe('the target was skipped');
    const name = 'default/refit-drain-0c5dc5a9-8d5e-4b3f-9a5e-000000000000';
    expect(rig.lifecycle.calls.slice(-2)).toEqual([`create ${name}`, `delete ${name}`]);
    expect(rig.lifecycle.requested()).toEqual([]);
  });

  test('leaves them to the next leader if it was handed over', async () => {
    const rig = await new Rig('a').begin();
    rig.stop.abort(new DrainHandedOverError('the next leader goes on'));
    await rig.done;
    expect(rig.lifecycle.requested()).toEqual(['a']);
  });

  test('ends 10 seconds later although no deletion of many is answered', async () => {
    const rig = await new Rig(...Array.from({ length: 40 }, (_, index) => `p${index}`)).begin();
    rig.lifecycle.beforeDelete = async () => await new Promise(() => undefined);
    rig.stop.abort(new Error('the target was skipped'));
    const begun = rig.clock.monotonic();
    expect(await rig.clock.runUntil(rig.done)).toBe('the target was skipped');
    expect(rig.clock.monotonic() - begun).toBe(10_000);
    expect(rig.lifecycle.requested()).toHaveLength(40);
  });

  test('ends also if a request cannot be deleted', async () => {
    const rig = await new Rig('a').begin();
    rig.lifecycle.onDelete = () => {
      throw new TransportError('no answer');
    };
    rig.stop.abort(new Error('the target was skipped'));
    expect(await rig.done).toBe('the target was skipped');
  });
});

test('a request whose Eviction cannot be read counts as accepted', () => {
  const made = { ...requestFor(buildPod('a'), 'n1'), status: { observedGeneration: 1 } };
  expect(judgeRequest(made, { problem: 'no answer' }, 0).kind).toBe('active');
  expect(judgeRequest({ ...made, spec: { ...made.spec, intent: 'Withdrawn' } }, [], 0).kind).toBe(
    'failed',
  );
  const deleted = { ...made.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  expect(judgeRequest({ ...made, metadata: deleted }, [], 0).kind).toBe('idle');
});

test.each(REQUEST_ROWS)(
  'the double of the API server judges a request %s',
  (_, request, faults) => {
    expect(faultsOf(request)).toEqual(faults);
  },
);
