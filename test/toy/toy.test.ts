/** Tests that a new dialect needs only its own file: order, slots and failures come from the engine. */

import { expect, onTestFinished, test, vi } from 'vitest';
import { showStatus } from '../../src/cli/status/status-command.ts';
import {
  type ControllerProcessOptions,
  prepareControllerProcess,
} from '../../src/composition/controller-process.ts';
import { type Rollout, targetsIn } from '../../src/engine/model/rollout.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { systemClock as clock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { type MemoryCluster, startMemoryCluster } from '../agent/memory-cluster.ts';
import { toy } from './toy-dialect.ts';
import { toyModule } from './toy-module.ts';

const PLAN = { namespace: 'default', name: 'painting' };
const FIRST = ['a', 'b'];
const REST = ['c', 'd', 'e'];
const AT_ONCE = 2;

/**
 * Starts a cluster in memory with nodes and a plan. Runs the toy in the processes of the product, and a painter that
 * answers for the nodes.
 */
async function startStudio() {
  const stop = new AbortController();
  const cluster = await startMemoryCluster();
  const { admin, kubeconfig } = cluster;
  const painter = followNodes(admin, stop.signal);
  await createPlan(admin);
  const manager = await prepareControllerProcess(await partsOf(cluster), stop.signal);
  const managed = manager.run(stop.signal);
  onTestFinished(async () => {
    stop.abort(new Error('done'));
    await Promise.all([managed, painter.followed]);
    await cluster.stop();
  });
  return {
    ...painter,
    untilRecorded: async (check: (rollout: Rollout) => void): Promise<void> => {
      await until(async () => {
        const { data } = await admin.get(toy.plans, PLAN.name, PLAN);
        check(JSON.parse(data.record) as Rollout);
      });
    },
    status: async (): Promise<string> => {
      let text = '';
      const size = () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY });
      const output = {
        isTerminal: false,
        hasColours: false,
        size,
        write: (more: string) => {
          text += more;
        },
      };
      await showStatus(
        { kubeconfig, output: 'text' },
        { modules: [toyModule], clock, output, abort: stop.signal },
      );
      return text;
    },
  };
}

async function createPlan(admin: KubeClient): Promise<void> {
  for (const name of [...FIRST, ...REST]) {
    const status = { conditions: [{ type: 'Ready', status: 'True' as const }] };
    await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name }, status });
  }
  const data = {
    colour: 'blue',
    first: FIRST.join(' '),
    rest: REST.join(' '),
    atOnce: String(AT_ONCE),
    record: '',
  };
  await admin.create(toy.plans, { apiVersion: 'v1', kind: 'ConfigMap', metadata: PLAN, data });
}

async function partsOf({ admin, kubeconfig }: MemoryCluster): Promise<ControllerProcessOptions> {
  return {
    policyEffects: {},
    dialects: [toy],
    config: await loadClusterConfig({ path: kubeconfig }),
    client: admin,
    lease: { namespace: 'default', name: 'toy' },
    component: 'toy',
    log: silentLogger,
  };
}

/** Records from watch events which signals the nodes get. */
function followNodes(admin: KubeClient, abort: AbortSignal) {
  const informer = createInformer(admin, nodes);
  const paintOn = (name: string): string =>
    informer.get(name)?.metadata.annotations?.['paint'] ?? '';
  const told = new Set<string>();
  /** Returns the nodes that have the signal to be painted and have not answered yet. */
  const wet = (): string[] =>
    [...told].filter((name) => paintOn(name).split(' ').length === 3).toSorted();
  const moments: string[][] = [];
  informer.addHandler({
    updated({ metadata: { name } }) {
      if (paintOn(name) !== '') told.add(name);
      moments.push(wet());
    },
  });
  return {
    told,
    moments,
    followed: informer.run(abort),
    untilWet: async (...names: string[]): Promise<void> =>
      await until(() => expect(wet()).toEqual(names)),
    answer: async (name: string, word: string): Promise<void> => {
      const annotations = { paint: `${paintOn(name)} ${word}` };
      await admin.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
    },
  };
}

async function until(condition: () => void | Promise<void>): Promise<void> {
  await vi.waitFor(condition, { timeout: 150_000, interval: 10 });
}

/** Returns the largest number of these nodes that had an unanswered signal at the same moment. */
function mostOf(moments: readonly string[][], names: readonly string[]): number {
  return Math.max(0, ...moments.map((wet) => wet.filter((name) => names.includes(name)).length));
}

test('the toy goes in order, with as many at once as its plan says', async () => {
  const { untilWet, answer, untilRecorded, told, moments, status } = await startStudio();
  await untilWet('a');
  await answer('a', 'dry');
  await untilWet('b');
  expect(await status()).toMatch(/\n {2}b +signalled/);
  await answer('b', 'dry');
  await untilWet('c', 'd');
  await answer('d', 'dry');
  await untilWet('c', 'e');
  await answer('c', 'dry');
  await answer('e', 'dry');
  await untilRecorded(({ phase }) => expect(phase).toBe('done'));
  expect([...told].slice(0, 2)).toEqual(FIRST);
  expect([...told].toSorted()).toEqual([...FIRST, ...REST]);
  expect(mostOf(moments, FIRST)).toBe(1);
  expect(mostOf(moments, REST)).toBe(AT_ONCE);
  expect(
    moments.filter((wet) => FIRST.some((name) => wet.includes(name)) && mostOf([wet], REST) > 0),
  ).toEqual([]);
});

test('a node that fails ends the run once what is in flight has ended: nothing more starts', async () => {
  const { untilWet, answer, untilRecorded, told, status } = await startStudio();
  for (const name of FIRST) {
    await untilWet(name);
    await answer(name, 'dry');
  }
  await untilWet('c', 'd');
  await answer('c', 'cracked');
  await untilRecorded((rollout) =>
    expect(targetsIn(rollout, 'failed').map(({ name }) => name)).toEqual(['c']),
  );
  await answer('d', 'dry');
  await untilRecorded(({ phase }) => expect(phase).toBe('failed'));
  await untilRecorded((rollout) =>
    expect(targetsIn(rollout, 'pending').map(({ name }) => name)).toEqual(['e']),
  );
  expect(told).not.toContain('e');
  expect(await status()).toMatch(/\n {2}c +failed +\d+ s +the paint is cracked/);
});
