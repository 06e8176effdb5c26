/** Proves how long the status of an UpdaterSet lists a change that no updater covers. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../../test/support/builders/memory-api.ts';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import { FakeClock } from '../../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../../test/support/clock/times.ts';
import { type UpdaterSet, updaterSets } from '../../../../api/refit/updater-set.ts';
import type { KubeClient } from '../../../../kube/client.ts';
import { forgetUnasked, tellRefused } from './refused-changes.ts';

const ABORT = new AbortController().signal;
const MINUTE = 60_000;

class Scene {
  readonly api = new MemoryApi();
  readonly clock = new FakeClock(T0);
  writes = 0;

  constructor() {
    this.api.put(updaterSets, buildUpdaterSet('all', [buildUpdater('one')]));
  }

  get set(): UpdaterSet {
    return this.api.read(updaterSets, 'all');
  }

  get told(): string[] {
    return (this.set.status?.uncovered ?? []).map(({ object }) => object);
  }

  get covered(): string | undefined {
    return this.set.status?.conditions?.find(({ type }) => type === 'Covered')?.status;
  }

  async refuse(object: string, why?: string): Promise<void> {
    await tellRefused(this.#parts(), this.set, object, why ?? 'nobody covers files');
  }

  async accept(object: string): Promise<void> {
    await tellRefused(this.#parts(), this.set, object);
  }

  async discover(): Promise<void> {
    await forgetUnasked(this.#parts());
  }

  #parts() {
    const { api, clock } = this;
    const patch = async (
      _resource: unknown,
      name: string,
      { metadata, status }: Pick<UpdaterSet, 'status' | 'metadata'>,
      options: unknown,
    ) => {
      this.writes += 1;
      expect(metadata).toEqual({ resourceVersion: this.set.metadata.resourceVersion });
      expect(options).toEqual({ type: 'merge', subresource: 'status', abort: ABORT });
      api.change(updaterSets, name, (set) => ({ ...set, ...(status && { status }) }));
      return await Promise.resolve(this.set);
    };
    return { management: { ...api.client, patch } as unknown as KubeClient, clock, abort: ABORT };
  }
}

test('a refusal that Cluster API no longer asks for is forgotten after half an hour, without another call', async () => {
  const scene = new Scene();
  await scene.refuse('Machine default/m1');
  await scene.clock.advance(20 * MINUTE);
  await scene.discover();
  expect([scene.told, scene.covered]).toEqual([['Machine default/m1'], 'False']);
  await scene.clock.advance(10 * MINUTE);
  await scene.discover();
  expect([scene.told, scene.covered]).toEqual([[], 'True']);
});

test('one that it asks for again and again stays', async () => {
  const scene = new Scene();
  for (let minutes = 0; minutes < 100; minutes += 17) {
    await scene.refuse('Machine default/m1');
    await scene.clock.advance(17 * MINUTE);
    await scene.discover();
    expect(scene.told).toEqual(['Machine default/m1']);
  }
});

test('the status is not written with every call', async () => {
  const scene = new Scene();
  for (let calls = 0; calls < 10; calls++) {
    await scene.refuse('Machine default/m1');
    await scene.discover();
    await scene.clock.advance(10_000);
  }
  expect(scene.writes).toBe(1);
});

test('each object has one entry, which the next refusal replaces and an acceptance removes', async () => {
  const scene = new Scene();
  await scene.refuse('Machine default/m1');
  await scene.refuse('Machine default/m2');
  await scene.refuse('Machine default/m1', 'nobody covers keys');
  expect(scene.told).toEqual(['Machine default/m2', 'Machine default/m1']);
  expect(scene.set.status?.conditions).toMatchObject([
    { type: 'Covered', message: 'Machine default/m1: nobody covers keys' },
  ]);
  await scene.accept('Machine default/m1');
  expect([scene.told, scene.covered]).toEqual([['Machine default/m2'], 'False']);
  await scene.accept('Machine default/m2');
  expect([scene.told, scene.covered]).toEqual([[], 'True']);
});

test('the newest twenty are kept, each with a short message', async () => {
  const scene = new Scene();
  for (let count = 1; count <= 21; count++)
    await scene.refuse(`Machine default/m${count}`, 'x'.repeat(2000));
  expect(scene.told).toHaveLength(20);
  expect(scene.told.at(0)).toBe('Machine default/m2');
  expect(scene.told.at(-1)).toBe('Machine default/m21');
  expect(scene.set.status?.uncovered?.map(({ message }) => message.length)).toEqual(
    Array.from({ length: 20 }, () => 1000),
  );
});
