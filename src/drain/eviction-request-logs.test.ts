/** Shows what the log says about EvictionRequests, and which pods a drain waits for through them. */
import { afterEach, expect, test } from 'vitest';
import { EvictionRequestApi } from '../../test/support/builders/eviction-request-api.ts';
import { buildLog } from '../../test/support/builders/logs.ts';
import { PodApi, refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { Pod } from '../kube/resources.ts';
import { TransportError } from '../kube/status-error.ts';
import { DrainHandedOverError, startEvictionRequests } from './eviction-requests.ts';

const uidOf = (index: number): string =>
  `0c5dc5a9-8d5e-4b3f-9a5e-${String(index).padStart(12, '0')}`;
const A = buildPod('a', { uid: uidOf(0) });
const B = buildPod('b', { uid: uidOf(1) });
const REQUEST_OF_A = `default/refit-drain-${uidOf(0)}`;
const FAILED = { type: 'Failed', status: 'True', reason: 'Bad', message: 'no' } as const;

class Rig {
  readonly lifecycle = new EvictionRequestApi();
  readonly clock = new FakeClock();
  readonly stop = new AbortController();
  readonly log: string[] = [];
  /** For each pod whose request is decided: true if the drain must evict the pod itself. */
  readonly decided: Record<string, boolean> = {};
  changes = 0;
  readonly requests = startEvictionRequests({
    client: this.lifecycle.over(new PodApi().client),
    node: 'n1',
    clock: this.clock,
    random: () => 0.5,
    log: buildLog(this.log, 'debug'),
    abort: this.stop.signal,
    onChange: () => {
      this.changes++;
    },
  });

  constructor() {
    rigs.push(this);
  }

  async request(...pods: readonly Pod[]): Promise<void> {
    for (const pod of pods)
      void this.requests.isLeftToDrain(pod).then((isLeft) => {
        this.decided[pod.metadata.name] = isLeft;
      });
    await this.clock.advance(0);
  }

  /** Ends the requests. Resolves when nothing runs any more. */
  async end(): Promise<void> {
    await this.clock.runUntil(this.requests.end());
  }

  /** Returns the lines of the log with this message, without the time. */
  lines(msg: string): object[] {
    return this.log
      .map((line) => JSON.parse(line) as { msg: string; time?: string })
      .filter((line) => line.msg === msg)
      .map(({ time: _time, ...line }) => line);
  }
}

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) {
    await rig.end();
    expect(rig.clock.pending).toBe(0);
  }
});

test('each request that is made is logged with its pod', async () => {
  const rig = new Rig();
  await rig.request(A);
  expect(rig.lines('eviction of pod requested')).toEqual([
    { level: 'info', msg: 'eviction of pod requested', pod: 'default/a' },
  ]);
});

test('the log says once why a drain evicts pods without requests, if the kind is not served', async () => {
  const rig = new Rig();
  rig.lifecycle.isServed = false;
  await rig.request(A, B);
  const msg = 'the drain evicts pods without EvictionRequests';
  const reason = 'the API server does not serve /apis/lifecycle.k8s.io/v1alpha1';
  expect(rig.lines(msg)).toEqual([{ level: 'warn', msg, reason }]);
  expect(rig.lines('pod is evicted without EvictionRequest')).toEqual([]);
  expect(rig.decided).toEqual({ a: true, b: true });
  expect(await rig.requests.isLeftToDrain(buildPod('late'))).toBe(true);
});

test('the log says for a single pod why the drain evicts it without a request', async () => {
  const rig = new Rig();
  await rig.request(A, B);
  rig.lifecycle.change('a', { observedGeneration: 1, conditions: [FAILED] });
  const before = rig.changes;
  await rig.clock.advance(5_000);
  const msg = 'pod is evicted without EvictionRequest';
  const reason = 'it failed: Bad, no';
  expect(rig.lines(msg)).toEqual([{ level: 'info', msg, pod: 'default/a', reason }]);
  expect(rig.decided).toEqual({ a: true });
  expect(rig.changes).toBeGreaterThan(before);
});

test('the log names the problem if the API server refuses a request', async () => {
  const rig = new Rig();
  rig.lifecycle.onCreate = () => {
    throw refuse({ code: 403, reason: 'Forbidden', message: 'it is forbidden' });
  };
  await rig.request(A);
  const msg = 'pod is evicted without EvictionRequest';
  const reason =
    'EvictionRequests are refused: it is forbidden; `refit install rights eviction-requests` prints this right';
  expect(rig.lines(msg)).toEqual([{ level: 'info', msg, pod: 'default/a', reason }]);
});

test('a namespace that is gone does not make the drain give up requests for other pods', async () => {
  const rig = new Rig();
  rig.lifecycle.onCreate = ({ spec }) => {
    if (spec.target.pod?.name === 'a')
      throw refuse({ code: 404, reason: 'NotFound', details: { kind: 'namespaces' } });
  };
  await rig.request(A);
  await rig.request(B);
  expect(rig.decided).toEqual({ a: true });
  expect(rig.lifecycle.requested()).toEqual(['b']);
});

test.each([
  [29_999, 0],
  [30_000, 1],
])(
  'after %i ms without a responder, the log says %i times that nobody works on the request',
  async (ms, times) => {
    const rig = new Rig();
    await rig.request(A);
    rig.lifecycle.change('a', { observedGeneration: 1 });
    await rig.clock.advance(ms);
    const msg = 'pod is evicted without EvictionRequest';
    const reason = 'nobody has worked on the EvictionRequest for 30 s';
    expect(rig.lines(msg)).toEqual(
      Array.from({ length: times }, () => ({ level: 'info', msg, pod: 'default/a', reason })),
    );
  },
);

test('a list that fails for a moment is logged at the level debug, and listed again', async () => {
  const rig = new Rig();
  await rig.request(A);
  rig.lifecycle.onList = () => {
    throw new TransportError('no answer');
  };
  await rig.clock.advance(5_000);
  const msg = 'the EvictionRequests cannot be listed';
  expect(rig.lines(msg)).toEqual([{ level: 'debug', msg, problem: 'no answer' }]);
  rig.lifecycle.onList = () => undefined;
  rig.lifecycle.change('a', { observedGeneration: 1 });
  await rig.clock.advance(5_000);
  expect(rig.requests.waitingFor()).toBe(
    'the EvictionRequest of default/a has no active responder yet',
  );
});

test('an Eviction of another pod with the same name does not count', async () => {
  const rig = new Rig();
  await rig.request(A);
  rig.lifecycle.change('a', { observedGeneration: 1 });
  const status = { targetResponders: [{ name: 'acme.example/move', state: 'Active' }] };
  const metadata = { name: 'e', namespace: 'default' };
  rig.lifecycle.evictions = [
    { metadata, spec: { target: { pod: { name: 'a', uid: uidOf(9) } } }, status },
    { metadata, spec: { target: {} }, status },
  ];
  await rig.clock.advance(5_000);
  expect(rig.requests.waitingFor()).toContain('has no active responder yet');
});

test('nothing is told about requests before they are checked, and after they are decided', async () => {
  const rig = new Rig();
  await rig.request(A);
  expect(rig.requests.waitingFor()).toBeUndefined();
  await rig.clock.advance(5_000);
  expect(rig.requests.waitingFor()).toContain('default/a');
  rig.requests.keepOnly([], [A]);
  expect(rig.requests.waitingFor()).toBeUndefined();
  await rig.clock.advance(0);
  expect(rig.decided).toEqual({ a: false });
  expect(rig.lifecycle.requested()).toEqual(['a']);
});

test('pods that are wanted keep their requests, and the others lose them', async () => {
  const rig = new Rig();
  await rig.request(A, B);
  rig.requests.keepOnly([B], []);
  await rig.clock.advance(0);
  expect(rig.decided).toEqual({ a: false });
  expect(rig.lifecycle.requested()).toEqual(['b']);
});

test('a request that cannot be deleted is logged as a warning with its name', async () => {
  const rig = new Rig();
  await rig.request(A);
  rig.lifecycle.onDelete = () => {
    throw refuse({ code: 403, reason: 'Forbidden', message: 'it is forbidden' });
  };
  await rig.end();
  const msg = 'cannot withdraw an EvictionRequest';
  const problem = 'it is forbidden; `refit install rights eviction-requests` prints this right';
  expect(rig.lines(msg)).toEqual([{ level: 'warn', msg, request: REQUEST_OF_A, problem }]);
});

test('a request that is already gone is withdrawn without a warning', async () => {
  const rig = new Rig();
  await rig.request(A);
  rig.lifecycle.requests.clear();
  await rig.end();
  expect(rig.lines('cannot withdraw an EvictionRequest')).toEqual([]);
  expect(rig.lifecycle.calls.at(-1)).toBe(`delete ${REQUEST_OF_A}`);
});

test('a deletion that gets no answer is given up after 10 seconds, and the warning says so', async () => {
  const rig = new Rig();
  await rig.request(A);
  rig.lifecycle.beforeDelete = async () => await new Promise(() => undefined);
  await rig.end();
  const msg = 'cannot withdraw an EvictionRequest';
  const problem = 'not deleted within 10 s';
  expect(rig.lines(msg)).toEqual([{ level: 'warn', msg, request: REQUEST_OF_A, problem }]);
  expect(rig.clock.monotonic()).toBe(10_000);
});

test('a request that the API server has refused is not deleted at the end', async () => {
  const rig = new Rig();
  rig.lifecycle.onCreate = () => {
    throw refuse({ code: 422, reason: 'Invalid' });
  };
  await rig.request(A);
  await rig.end();
  expect(rig.lifecycle.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
});

test('a drain that is aborted leaves no pod to be evicted, and a later pod is not requested', async () => {
  const rig = new Rig();
  await rig.request(A);
  rig.stop.abort(new DrainHandedOverError('the next leader goes on'));
  await rig.request(B);
  expect(rig.decided).toEqual({ a: false, b: false });
  expect(rig.lifecycle.requested()).toEqual(['a']);
});

test('the reason of a handed-over drain is recognized by its name', () => {
  expect(new DrainHandedOverError('x').name).toBe('DrainHandedOverError');
});

test('no more than 16 requests are created at the same time', async () => {
  const rig = new Rig();
  let most = 0;
  let now = 0;
  rig.lifecycle.beforeCreate = async () => {
    now += 1;
    most = Math.max(most, now);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    now -= 1;
  };
  await rig.request(
    ...Array.from({ length: 40 }, (_, index) => buildPod(`p${index}`, { uid: uidOf(index) })),
  );
  expect(most).toBe(16);
  expect(rig.lifecycle.requested()).toHaveLength(40);
});
