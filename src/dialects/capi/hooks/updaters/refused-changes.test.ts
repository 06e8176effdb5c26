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

  async refuse(object: string): Promise<void> {
    await tellRefused(this.#parts(), this.set, object, 'nobody covers files');
  }

  async discover(): Promise<void> {
    await forgetUnasked(this.#parts());
  }

  #parts() {
    const { api, clock } = this;
    const patch = async (
      _resource: unknown,
      name: string,
      { status }: Pick<UpdaterSet, 'status'>,
    ) => {
      this.writes += 1;
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
