/** Tests when a component of the control plane counts as working, from what its Lease shows over time. */
import { expect, test } from 'vitest';
import { buildLog } from '../../test/support/builders/logs.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { T0 } from '../../test/support/clock/times.ts';
import type { KubeClient, RequestOptions } from '../kube/client.ts';
import type { KubeObject, Lease, Resource } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { rfc3339 } from '../util/clock.ts';
import { defined } from '../util/json.ts';
import { aborted } from '../util/waits.ts';
import { type ComponentMonitor, createComponentMonitor } from './component-monitor.ts';

const MANAGER = 'kube-controller-manager';

class Scene implements AsyncDisposable {
  readonly clock = new FakeClock(T0);
  readonly lines: string[] = [];
  readonly monitor: ComponentMonitor;
  /** `slow`: the API server answers no request until the client gives up. */
  lease: Lease['spec'] | 'none' | 'empty' | 'forbidden' | 'broken' | 'slow' = 'none';
  reads = 0;
  changes = 0;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor() {
    const get = async (
      _kind: Resource,
      name: string,
      { namespace, abort }: RequestOptions = {},
    ): Promise<KubeObject> => {
      this.reads++;
      const { lease } = this;
      if (lease === 'slow' && abort !== undefined) {
        await aborted(abort);
        throw new Error('given up');
      }
      if (lease === 'broken') throw new Error('no route');
      if (lease === 'forbidden') throw statusError(403);
      if (lease === 'none' || name !== MANAGER || namespace !== 'kube-system')
        throw statusError(404);
      if (lease === 'empty') return { metadata: { name } };
      return await Promise.resolve({ metadata: { name }, spec: lease } as KubeObject);
    };
    const client = { get } as unknown as Pick<KubeClient, 'get'>;
    const log = buildLog(this.lines, 'warn');
    this.monitor = createComponentMonitor({ client, clock: this.clock, log });
    this.monitor.onChange(() => this.changes++);
    this.#running = this.monitor.run(this.#stop.signal);
  }

  /** The holder renews the Lease by a clock that differs from the clock of this process. */
  renew(skewMs = 0, holderIdentity = 'c1'): void {
    const renewTime = rfc3339(this.clock.now() + skewMs);
    this.lease = { holderIdentity, renewTime, leaseDurationSeconds: 15 };
  }

  async wait(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  get state(): string | undefined {
    const known = this.monitor.known();
    if (known === 'unasked') return known;
    return known.problem ?? known.states.map(({ name, state }) => `${name} ${state}`).join();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

function statusError(code: number): StatusError {
  return new StatusError({
    kind: 'Status',
    code,
    reason: code === 403 ? 'Forbidden' : 'NotFound',
    message: '',
  });
}

test('the Leases are read only while a plan needs them', async () => {
  await using scene = new Scene();
  await scene.wait(10_000);
  expect([scene.reads, scene.state]).toEqual([0, 'unasked']);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(scene.state).toBe('');
  scene.monitor.follow('p', false);
  const { reads } = scene;
  await scene.wait(10_000);
  expect([scene.reads, scene.state]).toEqual([reads, 'unasked']);
});

test('a component whose Lease was renewed a moment ago works at once', async () => {
  await using scene = new Scene();
  scene.renew(-3000);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(scene.state).toBe(`${MANAGER} working`);
});

test.each([
  [10_000, 'working'],
  [10_001, 'unclear'],
])('a component whose Lease was renewed %i ms ago is %s at first', async (ms, state) => {
  await using scene = new Scene();
  scene.renew(-ms);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(scene.state).toBe(`${MANAGER} ${state}`);
});

test('a Lease that was never held shows no sign of life', async () => {
  await using scene = new Scene();
  scene.lease = 'empty';
  scene.monitor.follow('p', true);
  await scene.wait(30_000);
  expect(scene.state).toBe(`${MANAGER} unclear`);
  await scene.wait(2000);
  expect(scene.state).toBe(`${MANAGER} stopped`);
});

test.each<[string, number | undefined, number]>([
  ['the duration that the Lease states', 60, 75_000],
  ['15 s if the Lease states no duration', undefined, 30_000],
])('a component may be silent for a grace and %s', async (_what, leaseDurationSeconds, most) => {
  await using scene = new Scene();
  const renewTime = rfc3339(scene.clock.now());
  scene.lease = defined({ holderIdentity: 'c1', renewTime, leaseDurationSeconds });
  scene.monitor.follow('p', true);
  await scene.wait(most);
  expect(scene.state).toBe(`${MANAGER} working`);
  await scene.wait(2000);
  expect(scene.state).toBe(`${MANAGER} stopped`);
});

test('only a change of the state of a component is told', async () => {
  await using scene = new Scene();
  scene.monitor.follow('p', true);
  for (let left = 10; left > 0; left--) {
    scene.renew();
    await scene.wait(2000);
  }
  expect(scene.changes).toBe(2);
  expect(scene.state).toBe(`${MANAGER} working`);
});

test('the time in which no plan needed the Leases does not count as silence', async () => {
  await using scene = new Scene();
  scene.renew();
  scene.monitor.follow('p', true);
  await scene.wait(20_000);
  scene.monitor.follow('p', false);
  await scene.wait(60_000);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(scene.state).toBe(`${MANAGER} unclear`);
});

test('a component with another clock works once its Lease is renewed', async () => {
  await using scene = new Scene();
  scene.renew(-3_600_000);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(scene.state).toBe(`${MANAGER} unclear`);
  await scene.wait(1000);
  scene.renew(-3_600_000);
  await scene.wait(2000);
  expect(scene.state).toBe(`${MANAGER} working`);
});

test.each<[string, number]>([
  ['that worked', 0],
  ['that had stopped before', -3_600_000],
])(
  'a component %s has stopped when nobody renews its Lease for its duration and a grace',
  async (_name, skewMs) => {
    await using scene = new Scene();
    scene.renew(skewMs);
    scene.monitor.follow('p', true);
    await scene.wait(30_000);
    expect(scene.state).not.toContain('stopped');
    await scene.wait(2000);
    expect(scene.state).toBe(`${MANAGER} stopped`);
    expect(scene.changes).toBe(2);
    scene.renew(skewMs);
    await scene.wait(2000);
    expect(scene.state).toBe(`${MANAGER} working`);
  },
);

test('a Lease that its holder gave up is no sign of life, although it changed', async () => {
  await using scene = new Scene();
  scene.renew();
  scene.monitor.follow('p', true);
  await scene.wait(0);
  scene.renew(1, '');
  await scene.wait(34_000);
  expect(scene.state).toBe(`${MANAGER} stopped`);
});

test('a Lease that was deleted says that no such component runs', async () => {
  await using scene = new Scene();
  scene.renew(-3_600_000);
  scene.monitor.follow('p', true);
  await scene.wait(40_000);
  const { lease } = scene;
  scene.lease = 'none';
  await scene.wait(2000);
  expect(scene.state).toBe('');
  scene.lease = lease;
  await scene.wait(2000);
  expect(scene.state).toBe(`${MANAGER} unclear`);
});

test('without the right to read the Leases nothing is known, and the missing right is logged once', async () => {
  await using scene = new Scene();
  scene.lease = 'forbidden';
  scene.monitor.follow('p', true);
  await scene.wait(10_000);
  const problem =
    'the controller may not read the Leases kube-controller-manager and kube-scheduler in kube-system (the Role refit-components of deploy/rbac.yaml grants this right)';
  expect(scene.monitor.known()).toEqual({ states: [], problem, isForbidden: true });
  const message =
    'cannot see whether the controller manager and the scheduler work, so upgrades do not wait for them';
  expect(scene.lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ msg: message, problem }),
  ]);
});

test('each new reason why the Leases cannot be read is logged', async () => {
  await using scene = new Scene();
  scene.lease = 'forbidden';
  scene.monitor.follow('p', true);
  await scene.wait(4000);
  scene.lease = 'broken';
  await scene.wait(4000);
  expect(scene.state).toBe('no route');
  expect(scene.lines).toHaveLength(2);
});

test('a request that ends because no plan needs it is not logged as a problem', async () => {
  await using scene = new Scene();
  scene.lease = 'slow';
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(scene.reads).toBe(2);
  scene.monitor.follow('p', false);
  await scene.wait(4000);
  expect([scene.reads, scene.state, scene.lines]).toEqual([2, 'unasked', []]);
});

test('the time during which the API server does not answer does not count as silence', async () => {
  await using scene = new Scene();
  scene.renew();
  scene.monitor.follow('p', true);
  await scene.wait(0);
  scene.lease = 'broken';
  await scene.wait(120_000);
  scene.renew(-3_600_000);
  await scene.wait(2000);
  expect(scene.state).toBe(`${MANAGER} unclear`);
});

test.each([
  ['broken', false, 'so upgrades wait until their Leases can be read'],
  ['forbidden', true, 'so upgrades do not wait for them'],
] as const)(
  'Leases that are %s say what that means for upgrades',
  async (lease, isForbidden, effect) => {
    await using scene = new Scene();
    scene.lease = lease;
    scene.monitor.follow('p', true);
    await scene.wait(0);
    expect(scene.monitor.known()).toMatchObject({ states: [], isForbidden });
    expect(scene.lines.join()).toContain(effect);
  },
);

function renewedAtIn({ monitor }: Scene): number | undefined {
  const known = monitor.known();
  return known === 'unasked' ? undefined : known.states[0]?.renewedAt;
}

test('a Lease that is read for the first time was renewed when it says', async () => {
  await using scene = new Scene();
  const now = scene.clock.now();
  scene.renew(-4000);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  expect(renewedAtIn(scene)).toBe(now - 4000);
});

test('a Lease that is read again after an outage was renewed when it says', async () => {
  await using scene = new Scene();
  scene.renew();
  scene.monitor.follow('p', true);
  await scene.wait(0);
  scene.lease = 'broken';
  await scene.wait(10_000);
  const now = scene.clock.now();
  scene.renew(-4000);
  await scene.wait(2000);
  expect(renewedAtIn(scene)).toBe(now - 4000);
});

test('a Lease that changes while it is watched was renewed when the change was seen', async () => {
  await using scene = new Scene();
  scene.renew(-20_000);
  scene.monitor.follow('p', true);
  await scene.wait(0);
  const now = scene.clock.now();
  scene.renew(-4000);
  await scene.wait(2000);
  expect(renewedAtIn(scene)).toBeGreaterThanOrEqual(now);
});
