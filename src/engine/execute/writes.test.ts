/**
 * Proves which request one write sends, when it counts as written, and that the plan is read before each batch of
 * signals.
 */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { annotated, jobs, type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Instruction } from '../contract/signal.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { carryOut, type Effects, isCurrent, send } from './writes.ts';

const { plans } = tableDialect;

class Scene {
  readonly api = new MemoryApi();
  readonly ownWrites = new OwnWrites();

  effects(
    dialect: Dialect<TablePlan> = tableDialect,
    client: KubeClient = this.api.client,
  ): Effects {
    return {
      dialect: dialect,
      client,
      world: buildWorld([], []),
      ownWrites: this.ownWrites,
    };
  }

  async carryOut(instruction: Instruction): Promise<boolean> {
    return await carryOut(this.effects(), instruction);
  }

  refuse(call: string, code: number, reason: string): void {
    this.api.before(call, () => {
      throw refusal(code, reason);
    });
  }
}

describe('one write', () => {
  const job: KubeObject = { metadata: { name: 'job' } };
  const create: Instruction = { kind: 'create', resource: jobs, object: job };

  test('that begins work outside of the API waits until it runs', async () => {
    const scene = new Scene();
    const story: string[] = [];
    const begin = async (): Promise<void> => {
      await Promise.resolve();
      story.push('it runs');
    };
    expect(await scene.carryOut({ kind: 'begin', begin })).toBe(true);
    expect([story, scene.api.calls]).toEqual([['it runs'], []]);
  });

  test('that makes an object counts also where it is there already', async () => {
    const scene = new Scene();
    expect(await scene.carryOut(create)).toBe(true);
    const made = scene.api.read(jobs, 'job');
    expect(scene.ownWrites.isFresh(made)).toBe(true);
    expect(await scene.carryOut(create)).toBe(true);
    expect(scene.api.calls).toEqual(['create jobs/job', 'create jobs/job']);
  });

  test('that makes an object ends with its reconcile, and counts whatever the server left out', async () => {
    const given: unknown[] = [];
    const client = {
      create: async (_resource: unknown, _object: unknown, options: unknown) => {
        given.push(options);
        return await Promise.resolve(job);
      },
    } as unknown as KubeClient;
    const abort = new AbortController().signal;
    const effects = { ...new Scene().effects(tableDialect, client), abort };
    const object = { metadata: { ...job.metadata, annotations: { a: '1' } } };
    expect(await carryOut(effects, { kind: 'create', resource: jobs, object })).toBe(true);
    expect(given).toEqual([{ abort }]);
  });

  test('that changes an object is known at once', async () => {
    const scene = new Scene();
    const object = scene.api.put(nodes, buildNode('w1'));
    expect(await scene.carryOut({ kind: 'replace', resource: nodes, object })).toBe(true);
    expect(scene.ownWrites.isFresh(scene.api.read(nodes, 'w1'))).toBe(true);
  });

  test.each(['replace', 'delete'] as const)(
    'of kind %s does not count on an object that has changed, or is gone',
    async (kind) => {
      const scene = new Scene();
      const object = scene.api.put(nodes, buildNode('w1'));
      scene.api.put(nodes, object);
      expect(await scene.carryOut({ kind, resource: nodes, object })).toBe(false);
      expect(scene.api.read(nodes, 'w1').metadata.resourceVersion).toBe('2');
      scene.api.remove(nodes, 'w1');
      expect(await scene.carryOut({ kind, resource: nodes, object })).toBe(false);
    },
  );

  test('that deletes an object names the one that was seen, and takes with it what belongs to it', async () => {
    const given: unknown[] = [];
    const client = {
      delete: async (...args: unknown[]) => await Promise.resolve(void given.push(args)),
    } as unknown as KubeClient;
    const abort = new AbortController().signal;
    const metadata = { name: 'job', namespace: 'jobs', uid: 'u', resourceVersion: '7' };
    const effects = { ...new Scene().effects(tableDialect, client), abort };
    const instruction = { kind: 'delete', resource: jobs, object: { metadata } } as const;
    expect(await carryOut(effects, instruction)).toBe(true);
    const { name, ...others } = metadata;
    expect(given).toEqual([[jobs, name, { ...others, propagationPolicy: 'Background', abort }]]);
  });

  test.each([
    ['create', 500, 'InternalError'],
    ['create', 403, 'Forbidden'],
    ['replace', 403, 'Forbidden'],
    ['delete', 503, 'ServiceUnavailable'],
  ] as const)('of kind %s that is answered with %d %s rejects', async (kind, code, reason) => {
    const scene = new Scene();
    scene.api.put(jobs, job);
    scene.refuse(kind, code, reason);
    await expect(scene.carryOut({ kind, resource: jobs, object: job })).rejects.toThrow(reason);
  });

  test('that makes an object of a namespace that is gone does not count', async () => {
    const scene = new Scene();
    scene.refuse('create', 404, 'NotFound');
    expect(await scene.carryOut(create)).toBe(false);
  });
});

describe('what the API server accepts, and does not keep', () => {
  const taint = { key: 'k', effect: 'NoSchedule' };

  async function replaced(wanted: Node, written: Node): Promise<string> {
    const client = { replace: async () => await Promise.resolve(written) } as unknown as KubeClient;
    const effects = new Scene().effects(tableDialect, client);
    const instruction = { kind: 'replace', resource: nodes, object: wanted } as const;
    return await carryOut(effects, instruction).then(String, String);
  }

  test.each<[string, Node, Node, string]>([
    [
      'an annotation',
      annotated(buildNode('w1'), { a: '1', b: '2' }),
      annotated(buildNode('w1'), { a: '1' }),
      'the annotation b',
    ],
    [
      'a taint',
      { ...buildNode('w1'), spec: { taints: [taint] } },
      { ...buildNode('w1'), spec: { taints: [{ ...taint, key: 'other' }] } },
      'the taint k',
    ],
    [
      'a cordon',
      { ...buildNode('w1'), spec: { unschedulable: true } },
      { ...buildNode('w1'), spec: {} },
      'spec.unschedulable',
    ],
  ])(
    '%s: the write counts as refused, and the loss is named',
    async (_what, wanted, kept, lost) => {
      expect(await replaced(wanted, kept)).toBe(
        `StatusError: ${lost} is not there after the write; a webhook or admission policy removes it`,
      );
      expect(await replaced(wanted, wanted)).toBe('true');
    },
  );

  test('other values of an annotation are no loss, and a Node that is not cordoned lacks no cordon', async () => {
    const wanted = { ...annotated(buildNode('w1'), { a: '1' }), spec: { unschedulable: false } };
    expect(await replaced(wanted, annotated(buildNode('w1'), { a: '2' }))).toBe('true');
  });
});

describe('a plan is as it was seen', () => {
  const sharded = (scene: Scene, names: readonly string[]): Dialect<TablePlan> => ({
    ...tableDialect,
    sharding: {
      spread: (_plan, { projected: plan }) => ({ plan, writes: [] }),
      holding: () =>
        names.map((name) => ({ resource: nodes, object: scene.api.read(nodes, name) })),
    },
  });

  test('without a request right after our own write, and else by the answer of the API server', async () => {
    const scene = new Scene();
    const plan = scene.api.put(plans, buildTablePlan({}));
    expect(await isCurrent(scene.effects(), plan, [])).toBe(true);
    expect(scene.api.calls).toEqual(['get plans/plan']);
    scene.ownWrites.remember(plans, plan);
    expect(await isCurrent(scene.effects(), plan, [])).toBe(true);
    expect(scene.api.calls).toHaveLength(1);
    scene.ownWrites.remember(nodes, scene.api.put(nodes, buildNode('w1')));
    expect(await isCurrent(scene.effects(), plan, [])).toBe(true);
    expect(scene.api.calls).toHaveLength(2);
    scene.api.put(plans, plan);
    expect(await isCurrent(scene.effects(), plan, [])).toBe(false);
  });

  test('with its status shards, which are always asked', async () => {
    const scene = new Scene();
    const plan = scene.api.put(plans, buildTablePlan({}));
    scene.api.put(nodes, buildNode('s1'));
    scene.ownWrites.remember(plans, plan);
    const effects = scene.effects(sharded(scene, ['s1']));
    expect(await isCurrent(effects, plan, [])).toBe(true);
    expect(scene.api.calls).toEqual(['get plans/plan', 'get nodes/s1']);
    scene.api.before('get nodes/s1', () => void scene.api.put(nodes, buildNode('s1')));
    expect(await isCurrent(effects, plan, [])).toBe(false);
  });
});

describe('hundreds of signals', () => {
  const names = Array.from({ length: 250 }, (_, index) => `w${index}`);
  const stage = buildStage('worker', names);
  const signals = stage.targets.map((target) => ({ stage, target, agent: {} }));

  function rig() {
    const scene = new Scene();
    const plan = scene.api.put(plans, buildTablePlan({}));
    for (const name of names) scene.api.put(nodes, buildNode(name));
    const prepared: number[] = [];
    const effects = scene.effects({
      ...tableDialect,
      signal: {
        ...tableDialect.signal,
        send(_world, _rollout, { target: { name } }) {
          prepared.push(scene.api.calls.length);
          return { kind: 'replace', resource: nodes, object: scene.api.read(nodes, name) };
        },
      },
    });
    const sendAll = async () => await send(effects, plan, buildRollout([stage]), signals);
    return { scene, plan, prepared, sendAll };
  }

  test('are sent a hundred at a time, each batch after a look at the plan', async () => {
    const { scene, prepared, sendAll } = rig();
    const sent = await sendAll();
    expect(sent.map(({ signalling, result }) => [signalling.target.name, result])).toEqual(
      names.map((name) => [name, 'written']),
    );
    const looks = scene.api.calls.flatMap((call, index) => (call.startsWith('get') ? index : []));
    expect(looks).toEqual([0, 101, 202]);
    // All signals are prepared before the plan is read for the first time. So the write of an object that changes later
    // is refused.
    expect([...new Set(prepared)]).toEqual([0]);
  });

  test('stop where the plan changes in between', async () => {
    const { scene, plan, sendAll } = rig();
    scene.api.before('replace nodes/w50', () => void scene.api.put(plans, plan));
    const sent = await sendAll();
    expect(sent.filter(({ result }) => result === 'written')).toHaveLength(100);
    expect(sent.filter(({ result }) => result === 'outdated')).toHaveLength(150);
    expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toHaveLength(100);
  });
});
