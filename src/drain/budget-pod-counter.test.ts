/** Tests when the pods of PodDisruptionBudgets are counted, and which numbers are known after failures. */
import { expect, test } from 'vitest';
import { buildLog } from '../../test/support/builders/logs.ts';
import { buildBudget, buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { ListAllOptions } from '../kube/client.ts';
import type { KubeList, KubeObject, Pod, Resource } from '../kube/resources.ts';
import { type BudgetPodCounter, createBudgetPodCounter } from './budget-pod-counter.ts';

type Answer = ReadonlyMap<string, number> | Error | 'none';
const MINUTE = 60_000;

class Scene implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  readonly counter: BudgetPodCounter;
  answer: Answer = new Map([['n1', 1]]);
  attempts = 0;
  changes = 0;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor() {
    const listAll = async <T extends KubeObject>(
      { plural }: Resource<T>,
      { transform = (object) => object }: ListAllOptions<T> = {},
    ): Promise<KubeList<T>> => {
      const objects = plural === 'pods' ? await this.#podsNow() : [buildBudget('web', {})];
      return { metadata: {}, items: objects.map((object) => transform(object as never)) };
    };
    const log = buildLog(this.lines, 'warn');
    this.counter = createBudgetPodCounter({ client: { listAll }, clock: this.clock, log });
    this.counter.onChange(() => this.changes++);
    this.#running = this.counter.run(this.#stop.signal);
  }

  async #podsNow(): Promise<Pod[]> {
    this.attempts++;
    const { answer } = this;
    // Ignores the abort signal, like a request that hangs.
    if (answer === 'none') return await Promise.withResolvers<never>().promise;
    if (answer instanceof Error) throw answer;
    return [...answer].flatMap(([node, count]) =>
      Array.from({ length: count }, (_, index) =>
        buildPod(`${node}-${index}`, { node, labels: { app: 'web' } }),
      ),
    );
  }

  async wait(ms = 0): Promise<void> {
    await this.clock.advance(ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

test('nothing is counted before a plan needs it', async () => {
  await using scene = new Scene();
  scene.counter.follow('p', false);
  await scene.wait(5 * MINUTE);
  expect([scene.attempts, scene.counter.known()]).toEqual([0, 'unasked']);
});

test('the first numbers wake the plans, and each minute new ones replace them', async () => {
  await using scene = new Scene();
  scene.counter.follow('p', true);
  await scene.wait();
  expect(scene.counter.known()).toEqual({ byNode: new Map([['n1', 1]]) });
  scene.answer = new Map([['n1', 7]]);
  // Each turn of the plan calls `follow` again.
  for (let turns = 0; turns < 100; turns++) scene.counter.follow('p', true);
  await scene.wait(MINUTE - 1);
  expect(scene.attempts).toBe(1);
  await scene.wait(1);
  expect(scene.counter.known()).toEqual({ byNode: new Map([['n1', 7]]) });
  expect([scene.attempts, scene.changes]).toEqual([2, 1]);
});

test('a failed attempt keeps the former numbers, and its problem is logged once', async () => {
  await using scene = new Scene();
  scene.counter.follow('p', true);
  await scene.wait();
  scene.answer = new Error('pods is forbidden');
  await scene.wait(3 * MINUTE);
  expect(scene.counter.known()).toEqual({
    byNode: new Map([['n1', 1]]),
    problem: 'pods is forbidden',
  });
  expect(scene.lines.filter((line) => line.includes('pods is forbidden'))).toHaveLength(1);
  scene.answer = new Map();
  await scene.wait(MINUTE);
  expect(scene.counter.known()).toEqual({ byNode: new Map() });
});

test('without a first answer the wait of the plans ends all the same', async () => {
  await using scene = new Scene();
  scene.answer = 'none';
  scene.counter.follow('p', true);
  await scene.wait(MINUTE - 1);
  expect(scene.counter.known()).toBe('unasked');
  await scene.wait(1);
  expect(scene.counter.known()).toEqual({
    problem: 'there was no complete answer within 60 s',
  });
  expect(scene.changes).toBe(1);
});

test('the numbers are forgotten when the last plan needs them no more', async () => {
  await using scene = new Scene();
  scene.counter.follow('p', true);
  scene.counter.follow('q', true);
  await scene.wait();
  scene.counter.follow('p', false);
  expect(scene.counter.known()).not.toBe('unasked');
  scene.counter.forget('q');
  expect(scene.counter.known()).toBe('unasked');
  await scene.wait(5 * MINUTE);
  expect([scene.attempts, scene.clock.pending]).toEqual([1, 0]);
});

test('an answer that comes after the end is not used', async () => {
  await using scene = new Scene();
  scene.counter.follow('p', true);
  scene.counter.forget('p');
  await scene.wait();
  expect([scene.counter.known(), scene.changes]).toEqual(['unasked', 0]);
  scene.counter.follow('p', true);
  await scene.wait();
  expect(scene.counter.known()).toEqual({ byNode: new Map([['n1', 1]]) });
});
