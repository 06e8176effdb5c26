/**
 * Proves what fits into a plan, on which targets a record depends, and that objects which were deleted or changed since
 * they were read are detected.
 */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later } from '../../../test/support/clock/times.ts';
import { type KubeObject, nodes } from '../../kube/resources.ts';
import { StatusError } from '../../kube/status-error.ts';
import { areUnchanged } from '../execute/writes.ts';
import { type Rollout, type Target, withTargets } from './rollout.ts';
import {
  entryBytes,
  exceedPlan,
  isLarge,
  mostInFlight,
  restingOn,
  roomForTargets,
} from './status-shards.ts';

const named = (count: number, length: number): { name: string }[] =>
  Array.from({ length: count }, (_, index) => ({ name: String(index).padStart(length, 'w') }));

describe('a plan holds', () => {
  test.each([
    ['as many names as anybody has', 54, 5_000],
    ['fewer of names as long as a label', 63, 4_639],
    ['fewer still of the longest', 253, 1_730],
  ])('%s', (_name, length, most) => {
    expect(exceedPlan([named(most, length)])).toBe(false);
    expect(exceedPlan([named(most - 1, length), named(2, length)])).toBe(true);
    expect(mostInFlight(named(9_000, length))).toBe(most);
  });

  test('names by their bytes in JSON, and what is in flight by the room beside the rest of the plan', () => {
    const names = (letter: string): { name: string }[] =>
      named(1_000, 200).map(({ name }) => ({ name: name.replaceAll('w', letter) }));
    expect(['w', 'é', '\u0001'].map((letter) => exceedPlan([names(letter)]))).toEqual([
      false,
      false,
      true,
    ]);
    expect(mostInFlight(named(5_000, 249), 349_000)).toBe(1_000);
    expect(mostInFlight(named(5_000, 249), -1)).toBe(1);
  });

  test('no more than the limit', () => {
    expect([2, 3].map((most) => exceedPlan([named(2, 3), named(1, 3)], most))).toEqual([
      true,
      false,
    ]);
  });

  test('what is in flight by the longest of the names', () => {
    expect(mostInFlight([...named(10_000, 5), ...named(1, 253)])).toBe(1_730);
    expect(mostInFlight([])).toBe(5_000);
  });
});

describe('a record', () => {
  const before = buildRollout([
    buildStage('worker', [
      buildTarget('w1', 'intended'),
      buildTarget('w2', 'pending'),
      buildTarget('w3', 'done'),
    ]),
  ]);
  const names = (after: Rollout): string[] => restingOn(before, after).map(({ name }) => name);
  const moved = (wanted: string, change: Partial<Target>): Rollout => {
    const targets = before.stages
      .flatMap((stage) => stage.targets)
      .filter(({ name }) => name === wanted);
    return withTargets(
      before,
      targets.map((target) => ({ ...target, ...change })),
    );
  };

  test('depends on targets that it starts, not on those in flight', () => {
    expect(names(moved('w2', { state: 'intended' }))).toEqual(['w2']);
  });

  test('depends on targets that it starts again', () => {
    expect(names(moved('w1', { since: later(5000) }))).toEqual(['w1']);
  });

  test('does not depend on targets that it records as done', () => {
    expect(names(moved('w1', { state: 'done' }))).toEqual([]);
  });

  test('depends on all targets when it ends the rollout', () => {
    expect(names({ ...before, phase: 'failed' })).toEqual(['w1', 'w2', 'w3']);
  });
});

describe('asked of the API server, not of a cache', () => {
  test.each([
    ['objects that are as seen', () => undefined, true],
    ['one that was written since', (api: MemoryApi) => void api.put(nodes, buildNode('w2')), false],
    ['one that is gone', (api: MemoryApi) => api.remove(nodes, 'w1'), false],
  ])('%s', async (_name, change, wanted) => {
    const api = new MemoryApi();
    const seen = ['w1', 'w2'].map((name) => ({
      resource: nodes,
      object: api.put(nodes, buildNode(name)),
    }));
    change(api);
    expect(await areUnchanged(api, seen)).toBe(wanted);
  });

  test('a server that cannot tell is no answer', async () => {
    const api = new MemoryApi();
    const seen = [{ resource: nodes, object: api.put(nodes, buildNode('w1')) }];
    api.before('get', () => {
      throw refusal(500, 'InternalError');
    });
    await expect(areUnchanged(api, seen)).rejects.toBeInstanceOf(StatusError);
  });
});

describe('the room in a plan', () => {
  test('is what the rest of the plan leaves, and may be less than nothing', () => {
    const plan = { metadata: { name: 'p' }, spec: { text: '' } };
    const longer = { ...plan, spec: { text: 'é'.repeat(1000) } };
    expect(roomForTargets(plan) - roomForTargets(longer)).toBe(2000);
    // The space is 1.5 MiB minus 64 KiB for the API server and 32 KiB for the rest of the status.
    const empty = Buffer.byteLength(JSON.stringify(plan));
    expect(roomForTargets(plan)).toBe(1.5 * 1024 ** 2 - 96 * 1024 - empty);
    const large = { ...plan, spec: { text: 'x'.repeat(2 ** 21) } };
    expect(roomForTargets(large)).toBeLessThan(0);
  });

  test('does not depend on the status that is replaced', () => {
    const plan = { metadata: { name: 'p' } };
    const written: KubeObject & { status: unknown } = { ...plan, status: { text: 'x' } };
    expect(roomForTargets(written)).toBe(roomForTargets(plan));
  });

  test('is taken by each target with its name and 100 bytes', () => {
    expect(entryBytes({ name: 'w1' })).toBe(102);
    expect(entryBytes({ name: 'é' })).toBe(102);
    expect(entryBytes({ name: '\u0001' })).toBe(106);
  });

  test('is too small for a rollout with more than 5000 targets in all stages', () => {
    const rollout = (count: number): Rollout =>
      buildRollout(
        [count, 1].map((targets) => ({
          ...buildStage('worker', []),
          targets: named(targets, 5).map(({ name }) => buildTarget(name)),
        })),
      );
    expect(isLarge(rollout(4999))).toBe(false);
    expect(isLarge(rollout(5000))).toBe(true);
  });
});
