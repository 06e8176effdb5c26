/** Simulates a drain in which many kinds of faults happen. One seed gives one trial. */
import { drainNode } from '../../src/drain/drain-node.ts';
import { DEFAULT_DRAIN } from '../../src/drain/pods.ts';
import type { Pod } from '../../src/kube/resources.ts';
import { TransportError } from '../../src/kube/status-error.ts';
import { silentLogger } from '../../src/util/log.ts';
import { type Asked, PodApi, refuse, refuseByBudget } from '../support/builders/pod-api.ts';
import { buildPod, type PodTraits } from '../support/builders/pods.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';
import { pick, seededRandom } from './random.ts';

export interface Outcome {
  /** Descriptions of the forbidden events that happened. */
  readonly violations: string[];
  /** How often each fault happened, by its name. */
  readonly faults: ReadonlyMap<string, number>;
  readonly asked: number;
}

type Fault = 'lost' | 'applied but lost' | 'conflict' | 'error' | 'overload' | 'timeout' | 'gone';
export const FAULTS: readonly Fault[] = [
  'lost',
  'applied but lost',
  'conflict',
  'error',
  'overload',
  'timeout',
  'gone',
];
export const WATCH_FAULTS = ['watch reset', 'watch expired'] as const;

/** The apps whose pods are under a budget. `SPARE` pods of each app may be missing at a time. */
const APPS = ['web', 'db'];
const SPARE = 1;
/** The number of seconds of the trial in which faults happen. After them no fault happens, and the drain must end. */
const STORM = 60;
const CALM = 600;

export class DrainWorld {
  readonly #random: () => number;
  readonly #api = new PodApi();
  readonly #clock = new FakeClock();
  readonly #violations: string[] = [];
  readonly #faults = new Map<string, number>();
  /** Uids of evicted pods. The successor of an evicted pod does not become healthy at once. */
  readonly #evicted = new Set<string>();
  readonly #missing = new Map<string, number>(APPS.map((app) => [app, 0]));
  readonly #staying = new Set<string>();
  readonly #stop = new AbortController();
  #calm = false;
  #over = false;
  #born = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  async run(): Promise<Outcome> {
    for (let i = 0; i < 12; i++) this.#bear();
    this.#api.daemonSets.add('ds');
    this.#api.onEvict = (asked) => this.#answer(asked);
    const done = this.#drain().finally(() => {
      this.#over = true;
    });
    for (let second = 0; second < STORM + CALM && !this.#over; second++) {
      this.#calm = second >= STORM;
      await this.#pass();
    }
    if (!this.#over) this.#violations.push('the drain has not come to its end');
    this.#stop.abort(new Error('over'));
    await done.catch(() => undefined);
    this.#judgeEnd();
    return {
      violations: this.#violations,
      faults: this.#faults,
      asked: this.#api.evictions.length,
    };
  }

  async #drain(): Promise<void> {
    const parts = {
      client: this.#api.client,
      clock: this.#clock,
      random: this.#random,
      log: silentLogger,
    };
    await drainNode('n1', DEFAULT_DRAIN, { ...parts, abort: this.#stop.signal });
  }

  /** One second: new pods arrive, watches break, pods end, successors become healthy. */
  async #pass(): Promise<void> {
    await this.#clock.advance(1_000);
    if (this.#over) return;
    // Adds pods before it removes any. Otherwise a new pod could arrive after the last pod is removed, which means
    // after the end of the drain.
    if (!this.#calm && this.#random() < 0.05) this.#bear();
    if (!this.#calm && this.#random() < 0.05) this.#breakWatches();
    for (const pod of this.#api.on('n1'))
      if (pod.metadata.deletionTimestamp !== undefined && this.#random() < 0.3)
        this.#api.remove(keyOf(pod));
    for (const app of APPS)
      if (this.#random() < 0.4) this.#missing.set(app, Math.max(0, this.#lacking(app) - 1));
  }

  #bear(): void {
    const name = `pod-${++this.#born}`;
    const kinds: PodTraits[] = [
      // Each of these pods has a workload of its own. Otherwise the drain would take a pod for the successor of an
      // evicted pod.
      ...APPS.map((app) => ({ labels: { app }, controller: `ReplicaSet/${name}` })),
      { controller: null },
      { controller: 'DaemonSet/ds' },
      { phase: 'Succeeded' },
      { node: 'n2' },
    ];
    const traits = pick(this.#random, kinds);
    if (
      traits.controller === 'DaemonSet/ds' ||
      traits.phase !== undefined ||
      traits.node !== undefined
    )
      this.#staying.add(`default/${name}`);
    this.#api.put(buildPod(name, traits));
  }

  #answer({ pod: key, uid = '' }: Asked): void {
    if (this.#staying.has(key)) this.#violations.push(`${key} is to stay`);
    const pod = this.#api.on('n1').find((each) => each.metadata.uid === uid);
    const fault = !this.#calm && this.#random() < 0.4 ? pick(this.#random, FAULTS) : undefined;
    if (fault) this.#count(fault);
    if (fault && fault !== 'applied but lost') throw errorOf(fault);
    if (!pod) throw errorOf('gone');
    this.#evict(pod, uid);
    if (fault) throw errorOf(fault);
  }

  #evict(pod: Pod, uid: string): void {
    const app = pod.metadata.labels?.['app'];
    if (pod.metadata.deletionTimestamp !== undefined) return;
    if (app !== undefined && this.#lacking(app) >= SPARE) throw refuseByBudget(app);
    if (app !== undefined) this.#missing.set(app, this.#lacking(app) + 1);
    if (this.#evicted.has(uid)) this.#violations.push(`${keyOf(pod)} was evicted twice`);
    this.#evicted.add(uid);
    this.#api.end(keyOf(pod));
  }

  #lacking(app: string): number {
    return this.#missing.get(app) ?? 0;
  }

  #breakWatches(): void {
    const fault = pick(this.#random, WATCH_FAULTS);
    this.#count(fault);
    this.#api.breakWatches(
      fault === 'watch reset'
        ? new TransportError('reset')
        : refuse({ code: 410, reason: 'Expired' }),
    );
  }

  #judgeEnd(): void {
    const left = this.#api.on('n1').map(keyOf);
    for (const key of left)
      if (!this.#staying.has(key)) this.#violations.push(`${key} is still there`);
    if (this.#api.watching > 0 || this.#clock.pending > 0)
      this.#violations.push('something still runs');
  }

  #count(fault: string): void {
    this.#faults.set(fault, (this.#faults.get(fault) ?? 0) + 1);
  }
}

function keyOf({ metadata }: Pod): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function errorOf(fault: Fault): Error {
  switch (fault) {
    case 'lost':
    case 'applied but lost':
      return new TransportError('reset');
    case 'conflict':
      return refuse({ code: 409, reason: 'Conflict' });
    case 'error':
      return refuse({ code: 500, reason: 'InternalError' });
    case 'overload':
      return refuse({ code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } });
    case 'timeout':
      return refuse({ code: 504, reason: 'Timeout' });
    case 'gone':
      return refuse({ code: 404, reason: 'NotFound' });
  }
}
