/**
 * Tests that a new leader starts no second Job on a node whose Job succeeded and was deleted before its node was done,
 * because the Node says that the Job succeeded.
 */
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../../test/support/builders/cattle-scenes.ts';
import { beginOnOneNode } from '../../../../test/support/builders/one-node-plan.ts';
import { HOUR, MINUTE } from '../../../../test/support/clock/times.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { createHookRunner } from '../../../hooks/runner.ts';
import { annotated, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { type Clock, rfc3339 } from '../../../util/clock.ts';
import { conditionOf } from './conditions.ts';

const OLD = 'v1.36.3+k3s1';
const NEW = 'v1.36.4+k3s1';
const ATTEMPT = 'system-upgrade.attempt.refit.upgrade.cattle.io/p';
const LABEL = 'plan.upgrade.cattle.io/p';
type Options = Parameters<typeof buildCattleScene>[2];

/** Returns a scene with node `a`, whose Job has succeeded, and functions for what happens to it afterwards. */
async function afterSuccess(spec: Partial<CattleSpec> = {}, options: Options = {}) {
  const plan = buildCattlePlan('p', { version: NEW, ...spec });
  const scene = buildCattleScene([plan], ['a'], options);
  const report = (kubeletVersion: string): void =>
    scene.api.change(nodes, 'a', (node: Node) => ({
      ...node,
      status: { ...node.status, nodeInfo: { kubeletVersion } },
    }));
  report(OLD);
  await scene.look(4);
  scene.complete('a');
  await scene.look(3);
  return {
    ...scene,
    report,
    node: () => scene.api.read<Node>(nodes, 'a'),
    isDone: () => scene.api.read<Node>(nodes, 'a').metadata.labels?.[LABEL] !== undefined,
    complete: () => conditionOf(scene.api.read(cattlePlans, 'p'), 'Complete'),
    /** Deletes the Jobs as Kubernetes does after their TTL, and replaces the leader. */
    loseJobAndLeader: (): void => {
      for (const { metadata } of scene.made()) scene.api.remove(jobs, metadata.name);
      scene.killLeader();
    },
  };
}

const K3S = { upgrade: { image: 'rancher/k3s-upgrade' } };

describe('a new leader after the Job was deleted', () => {
  test.each([
    ['cordons', { cordon: true }],
    ['does not cordon', {}],
  ])(
    'makes no second Job of a Plan that %s for a node that waits for the version of its kubelet, and the node is done when it has the version',
    async (_what, more) => {
      const run = await afterSuccess({ ...K3S, ...more });
      run.loseJobAndLeader();
      await run.look(5, MINUTE);
      expect([run.made(), run.isDone()]).toEqual([[], false]);
      run.report(NEW);
      await run.look(4);
      expect([run.made(), run.isDone()]).toEqual([[], true]);
      expect(run.node().metadata.annotations).not.toHaveProperty([ATTEMPT]);
    },
  );

  test('lets a node whose kubelet keeps its version fail after deadlines.ready, and makes no second Job', async () => {
    const run = await afterSuccess(K3S);
    const [name] = run.made().map(({ metadata }) => metadata.name);
    run.loseJobAndLeader();
    await run.look(14, MINUTE);
    expect(run.complete()).toMatchObject({
      reason: 'VersionNotReached',
      message: `Job system-upgrade/${name} succeeded on Node a: its kubelet reports ${OLD} instead of ${NEW}`,
    });
    expect(run.made()).toEqual([]);
  });

  test('makes no second Job while a hook runs after the upgrade for longer than the Job exists', async () => {
    const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
    const action = { kind: 'job', namespace: 'h', template, pinToNode: false, retries: 0 } as const;
    const started = new Map<string, number>();
    const hook = { name: 'check', when: 'afterVerified', action, timeoutMs: 2 * HOUR } as const;
    const run = await afterSuccess(
      {},
      {
        policyOf: () => ({ name: 'careful', hooks: [hook] }),
        hooks: (clock: Clock) => {
          const runner = createHookRunner(clock, async ({ id }) => {
            const isOver = clock.now() - started.getOrInsert(id, clock.now()) >= HOUR;
            const state = isOver ? 'succeeded' : 'running';
            return await Promise.resolve({ state, message: '' } as const);
          });
          void runner.run(new AbortController().signal);
          return runner;
        },
      },
    );
    run.loseJobAndLeader();
    await run.look(8, 5 * MINUTE);
    expect([run.made(), run.isDone(), started.size]).toEqual([[], false, 1]);
    await run.look(8, 5 * MINUTE);
    expect([run.made(), run.isDone(), started.size]).toEqual([[], true, 1]);
  });

  test('makes no second Job while the node settles for longer than the Job exists, and the node settles for its whole time', async () => {
    const run = await afterSuccess(
      {},
      { policyOf: () => ({ name: 'careful', settleMs: 2 * HOUR }) },
    );
    run.loseJobAndLeader();
    await run.look(11, 10 * MINUTE);
    expect([run.made(), run.isDone()]).toEqual([[], false]);
    await run.look(3, 10 * MINUTE);
    expect([run.made(), run.isDone()]).toEqual([[], true]);
  });

  test('makes no second Job during a postCompleteDelay that is longer than the Job exists, and uncordons the node after it', async () => {
    const run = await beginOnOneNode({ cordon: true, postCompleteDelay: '1h' });
    run.cordon(true);
    run.complete('a');
    await run.look(3);
    run.lose();
    // The cordon is that of the Job, even if the Plan does not cordon any more.
    run.edit({ cordon: false, postCompleteDelay: '1h' });
    run.killLeader();
    await run.look(5, 10 * MINUTE);
    expect([run.made(), run.isDone()]).toEqual([[], false]);
    await run.look(4, 10 * MINUTE);
    expect([run.made(), run.isDone(), run.isCordoned()]).toEqual([[], true, false]);
  });

  test('makes no second Job for a node that is not Ready', async () => {
    const run = await beginOnOneNode();
    run.ready('False');
    run.complete('a');
    await run.look();
    run.lose();
    run.killLeader();
    await run.look();
    expect([run.made(), run.isDone()]).toEqual([[], false]);
    run.ready('True');
    await run.look();
    expect([run.made(), run.isDone()]).toEqual([[], true]);
  });

  test('makes a Job again if the Job had not ended', async () => {
    const run = await beginOnOneNode();
    run.lose();
    run.killLeader();
    await run.look();
    expect(run.made()).toHaveLength(1);
  });

  test('makes a Job of a newer version, although the Job of the earlier version succeeded', async () => {
    const run = await beginOnOneNode();
    run.ready('False');
    run.complete('a');
    await run.look();
    run.lose();
    run.edit({ version: 'v2' });
    run.killLeader();
    run.ready('True');
    await run.look();
    expect(run.versions()).toEqual(['v2']);
  });

  test('makes another Job for a failed node only after refit retry, although the node failed long after its Job had succeeded', async () => {
    const run = await afterSuccess(K3S);
    await run.look(14, MINUTE);
    expect(run.complete()?.reason).toBe('VersionNotReached');
    run.loseJobAndLeader();
    await run.look(5, MINUTE);
    expect([run.made(), run.complete()?.reason]).toEqual([[], 'VersionNotReached']);
    const retry = `a@${rfc3339(run.clock.now())}`;
    run.api.change(cattlePlans, 'p', (plan) =>
      annotated(plan, { 'refit.upgrade.cattle.io/retry': retry }),
    );
    await run.look(5);
    expect(run.made()).toHaveLength(1);
  });
});
