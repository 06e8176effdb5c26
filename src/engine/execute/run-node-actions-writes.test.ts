/** Proves what each node action writes and on which object, when it ends a drain, and what happens if a write fails. */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { TABLE_OBJECTS, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { buildView } from '../../../test/support/builders/worlds.ts';
import {
  cordonOwner,
  EXCLUSION_LABEL,
  exclusionOf,
  pendingOwner,
  withCordon,
  withExclusion,
  withPendingTaint,
} from '../../drain/cordon-marks.ts';
import type { Drains } from '../../drain/running-drains.ts';
import { annotated, type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Instruction, Signal } from '../contract/signal.ts';
import type { NodeAction } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import { ownerOf, pendingOwnerOf } from '../model/rollout.ts';
import { freshWorld, OwnWrites, viewsOf } from '../snapshot/world.ts';
import { runNodeActions } from './run-node-actions.ts';

const target = buildTarget('w1', 'intended');
const stage = buildStage('worker', [target, buildTarget('w2', 'intended')]);
const rollout = buildRollout([stage]);
const at = { stage, target } as const;
const OWNER = ownerOf(rollout, target);
const PENDING = pendingOwnerOf(rollout.source);
const HOSTS = TABLE_OBJECTS.controller;
const NOW = 1234;

class Scene {
  readonly api = new MemoryApi();
  /** The calls that begin or forget drains, in order. */
  readonly story: string[] = [];
  readonly refused: string[] = [];
  signal: Partial<Signal> = {};
  isDrainTaken = true;
  /** The results of `isCurrent`, one for each batch. After the last entry, the result is true. */
  readonly current: boolean[] = [];
  readonly batches: string[][] = [];

  node(change: (node: Node) => Node = (node) => node, name = 'w1'): Node {
    return this.api.put(nodes, change(buildNode(name)));
  }

  get #drains(): Drains {
    return {
      forget: (name: string) => void this.story.push(`forget ${name}`),
      begin: (name: string, owner: string, options: object) =>
        void this.story.push(`begin ${name} for ${owner} with ${JSON.stringify(options)}`),
      stateOf: (name: string, owner: string) =>
        this.isDrainTaken && name === 'w1' && owner === OWNER
          ? { kind: 'draining', left: 0, since: 0 }
          : undefined,
    } as unknown as Drains;
  }

  /** Carries out the actions, and returns the kinds of the completed actions. */
  async run(
    actions: readonly NodeAction[],
    more: { drains?: Drains | undefined } = { drains: this.#drains },
    change: () => void = () => undefined,
  ): Promise<string[]> {
    const done: string[] = [];
    const views = [nodes, HOSTS].map((resource) => {
      const view = this.api.view<KubeObject>(resource);
      view.catchUp();
      return [resource, buildView(view.list())] as const;
    });
    const ownWrites = new OwnWrites();
    change();
    await runNodeActions(
      {
        dialect: { ...tableDialect, signal: this.signal } as unknown as Dialect,
        client: this.api.client,
        world: freshWorld(viewsOf(views), ownWrites),
        ownWrites,
        rollout,
        now: NOW,
        ...more,
      },
      actions,
      {
        isCurrent: async (targets) => {
          this.batches.push(targets.map(({ name }) => name));
          return await Promise.resolve(this.current.shift() ?? true);
        },
        onDone: ({ kind }) => void done.push(kind),
        onRefused: ({ kind }, words) => void this.refused.push(`${kind}: ${words}`),
      },
    );
    return done;
  }

  get marks(): object {
    const node = this.api.read(nodes, 'w1');
    return {
      cordoned: node.spec?.unschedulable === true,
      cordonOf: cordonOwner(node),
      taintOf: pendingOwner(node),
    };
  }

  get writes(): string[] {
    return this.api.calls.filter((call) => !call.startsWith('get'));
  }
}

const cordoned = (node: Node): Node => withCordon(node, OWNER);
const tainted = (node: Node): Node => withPendingTaint(node, PENDING);
const both = (node: Node): Node => tainted(cordoned(node));
const byPerson = (node: Node): Node => ({ ...node, spec: { unschedulable: true } });
const plain = (node: Node): Node => node;
const FREE = { cordoned: false, cordonOf: undefined, taintOf: undefined };

const cordon: NodeAction = { ...at, kind: 'cordon', node: 'w1', owner: OWNER };
const taint: NodeAction = { ...at, kind: 'taint', node: 'w1' };
const cleanUp = (isCordon: boolean, isTaint: boolean): NodeAction => ({
  ...at,
  kind: 'clean-up',
  node: 'w1',
  cordon: isCordon,
  taint: isTaint,
});
const acknowledge = (uncordon?: 'ours' | 'always'): NodeAction => ({
  ...at,
  kind: 'acknowledge',
  node: 'w1',
  uncordon,
});
const CORDONED = { cordoned: true, cordonOf: OWNER, taintOf: undefined };
const TAINTED = { ...FREE, taintOf: PENDING };

test.each<[string, NodeAction, (node: Node) => Node, object, number]>([
  ['a cordon takes the place of the taint', cordon, tainted, CORDONED, 1],
  ['a cordon of a person gets no mark', cordon, byPerson, { ...FREE, cordoned: true }, 0],
  ['a taint is written', taint, plain, TAINTED, 1],
  ['a taint that is there already is not written', taint, tainted, TAINTED, 0],
  ['cordon and taint are cleaned up at once', cleanUp(true, true), both, FREE, 1],
  ['a clean-up of the cordon alone keeps the taint', cleanUp(true, false), both, TAINTED, 1],
  ['a clean-up of the taint alone keeps the cordon', cleanUp(false, true), both, CORDONED, 1],
  [
    'a clean-up keeps the cordon of a person',
    cleanUp(true, true),
    byPerson,
    { ...FREE, cordoned: true },
    0,
  ],
  ['an acknowledgement removes the cordon of the plan', acknowledge('ours'), cordoned, FREE, 1],
  [
    'an acknowledgement keeps the cordon of a person',
    acknowledge('ours'),
    byPerson,
    { ...FREE, cordoned: true },
    0,
  ],
  [
    'an acknowledgement removes the cordon of a person if the node asks for that',
    acknowledge('always'),
    byPerson,
    FREE,
    1,
  ],
  ['an acknowledgement without an uncordon keeps the cordon', acknowledge(), cordoned, CORDONED, 0],
])('what a node action writes to the Node: %s', async (_what, action, before, marks, writes) => {
  const scene = new Scene();
  scene.node(before);
  const done = await scene.run([action]);
  expect(scene.marks).toEqual(marks);
  expect(scene.writes).toEqual(Array.from({ length: writes }, () => 'replace nodes/w1'));
  expect(done).toEqual(writes > 0 ? [action.kind] : []);
});

const excluded = (node: Node): Node => withExclusion(cordoned(node));
const byOthers = (node: Node): Node => ({
  ...node,
  metadata: { ...node.metadata, labels: { [EXCLUSION_LABEL]: '' } },
});
test.each<[string, NodeAction, (node: Node) => Node, 'ours' | 'others' | undefined, number]>([
  ['comes with the cordon in one write', { ...cordon, excludes: true }, plain, 'ours', 1],
  ['comes after the cordon of an agent', { ...cordon, excludes: true }, cordoned, 'ours', 1],
  ['is not written again', { ...cordon, excludes: true }, excluded, 'ours', 0],
  ['of somebody else stays', { ...cordon, excludes: true }, byOthers, 'others', 1],
  ['of somebody else stays after the uncordon', acknowledge('ours'), byOthers, 'others', 0],
  ['does not come where nobody asks', cordon, plain, undefined, 1],
  [
    'does not come with the cordon of a person',
    { ...cordon, excludes: true },
    byPerson,
    undefined,
    0,
  ],
  ['goes with the uncordon in one write', acknowledge('ours'), excluded, undefined, 1],
  ['goes with any uncordon', acknowledge('always'), excluded, undefined, 1],
  ['goes when the work has failed or was aborted', cleanUp(true, false), excluded, undefined, 1],
])('the label for load balancers %s', async (_what, action, before, after, writes) => {
  const scene = new Scene();
  scene.node(before);
  await scene.run([action]);
  const node = scene.api.read(nodes, 'w1');
  expect(exclusionOf(node)).toBe(after);
  if (after === 'ours') expect(cordonOwner(node)).toBe(OWNER);
  expect(scene.writes).toHaveLength(writes);
});

test.each<[NodeAction['kind'], NodeAction]>([
  ['cordon', cordon],
  ['taint', taint],
  ['clean-up', cleanUp(true, true)],
])('%s of a Node that is gone does nothing, and is not done', async (_kind, action) => {
  const scene = new Scene();
  expect(await scene.run([action])).toEqual([]);
  expect(scene.api.calls).toEqual([]);
});

const reason = because('Aborted', 'the plan was aborted');

test.each<[string, readonly string[], NodeAction]>([
  ['an acknowledgement that uncordons', ['forget w1'], acknowledge('ours')],
  ['an acknowledgement that uncordons always', ['forget w1'], acknowledge('always')],
  ['an acknowledgement', [], acknowledge()],
  ['a cancel', ['forget w1'], { ...at, kind: 'cancel', node: 'w1', reason }],
  ['a cancel without a Node', [], { ...at, kind: 'cancel', reason }],
  ['a clean-up of the cordon', ['forget w1'], cleanUp(true, false)],
  ['a clean-up of the taint', [], cleanUp(false, true)],
  ['a cordon', [], cordon],
  ['a taint', [], taint],
])('%s: the drains that it ends are %j', async (_what, story, action) => {
  const scene = new Scene();
  scene.node();
  await scene.run([action]);
  expect(scene.story).toEqual(story);
});

test('without drains of its own, a leader that uncordons has none to end', async () => {
  const scene = new Scene();
  scene.node(cordoned);
  expect(await scene.run([cleanUp(true, false)], {})).toEqual(['clean-up']);
  expect(scene.marks).toEqual(FREE);
});

describe('an acknowledgement', () => {
  const answering = (instruction: Instruction): Scene => {
    const scene = new Scene();
    scene.signal = { acknowledge: () => instruction };
    return scene;
  };
  const ACKNOWLEDGED = { 'example.com/acknowledged': 'yes' };

  test('on the Node itself goes with the uncordon in one write', async () => {
    const scene = new Scene();
    const node = scene.node(cordoned);
    scene.signal = {
      acknowledge: () => ({
        kind: 'replace',
        resource: nodes,
        object: annotated(node, ACKNOWLEDGED),
      }),
    };
    expect(await scene.run([acknowledge('ours')])).toEqual(['acknowledge']);
    expect(scene.writes).toEqual(['replace nodes/w1']);
    expect(scene.marks).toEqual(FREE);
    expect(scene.api.read(nodes, 'w1').metadata.annotations).toMatchObject(ACKNOWLEDGED);
  });

  test.each([
    ['another Node', nodes, 'w2'],
    ['another kind, of the same name', HOSTS, 'w1'],
  ])('on %s follows the uncordon', async (_what, resource, name) => {
    const scene = new Scene();
    scene.node(cordoned);
    const object = scene.api.put(resource, buildNode(name));
    scene.signal = { acknowledge: () => ({ kind: 'replace', resource, object }) };
    expect(await scene.run([acknowledge('ours')])).toEqual(['acknowledge']);
    expect(scene.writes).toEqual(['replace nodes/w1', `replace ${resource.plural}/${name}`]);
    expect(scene.marks).toEqual(FREE);
  });

  test('that makes an object does not uncordon that object', async () => {
    const scene = answering({
      kind: 'create',
      resource: HOSTS,
      object: { metadata: { name: 'w1' } },
    });
    scene.node(cordoned);
    expect(await scene.run([acknowledge('ours')])).toEqual(['acknowledge']);
    expect(scene.writes).toEqual(['replace nodes/w1', 'create hosts/w1']);
  });

  test('for a target without a Node of its own uncordons nothing', async () => {
    const scene = new Scene();
    const object = scene.node(cordoned);
    scene.signal = { acknowledge: () => ({ kind: 'replace', resource: nodes, object }) };
    expect(await scene.run([{ ...at, kind: 'acknowledge', uncordon: 'ours' }])).toEqual([
      'acknowledge',
    ]);
    expect(scene.marks).toEqual(CORDONED);
  });

  test('is not written where the node could not be uncordoned before', async () => {
    const scene = answering({
      kind: 'create',
      resource: HOSTS,
      object: { metadata: { name: 'w1' } },
    });
    const node = scene.node(cordoned);
    const changes = (): void => void scene.api.put(nodes, node);
    expect(await scene.run([acknowledge('ours')], {}, changes)).toEqual([]);
    expect(scene.writes).toEqual(['replace nodes/w1']);
  });
});

test('what the dialect asks of a target is written with the stage, the target and what the action says', async () => {
  const scene = new Scene();
  const told: unknown[] = [];
  const tell =
    (kind: string) =>
    (_world: unknown, ...given: unknown[]): Instruction => {
      told.push([kind, ...given]);
      return { kind: 'create', resource: HOSTS, object: { metadata: { name: kind } } };
    };
  scene.signal = {
    downloads: {
      prefetchOf: () => undefined,
      checkOf: () => undefined,
      prefetch: tell('prefetch'),
      check: tell('check'),
      end: tell('end'),
    },
    cancel: tell('cancel'),
    acknowledge: tell('acknowledge'),
  };
  const agent = { reserve: '1Gi' } as object;
  const done = await scene.run([
    { ...at, kind: 'prefetch', agent },
    { ...at, kind: 'check-downloads', agent },
    { ...at, kind: 'end-prefetch' },
    { ...at, kind: 'cancel', reason },
    { ...at, kind: 'acknowledge' },
  ]);
  expect(done).toEqual(['prefetch', 'check-downloads', 'end-prefetch', 'cancel', 'acknowledge']);
  expect(told).toEqual([
    ['prefetch', rollout, stage, target, agent],
    ['check', rollout, stage, target, agent],
    ['end', stage, target, rollout],
    ['cancel', rollout, stage, target, reason, NOW],
    ['acknowledge', rollout, stage, target, NOW],
  ]);
});

test.each(['prefetch', 'check-downloads'] as const)(
  '%s of a dialect that cannot do it is not done',
  async (kind) => {
    const scene = new Scene();
    expect(
      await scene.run([
        { ...at, kind, agent: {} },
        { ...at, kind: 'end-prefetch' },
      ]),
    ).toEqual([]);
  },
);

describe('a drain', () => {
  const drain: NodeAction = { ...at, kind: 'drain', node: 'w1', options: { force: true } as never };

  test('begins for the target, with its options, on the Node as it was decided on', async () => {
    const scene = new Scene();
    scene.node(cordoned);
    expect(await scene.run([drain])).toEqual(['drain']);
    expect(scene.story).toEqual([`begin w1 for ${OWNER} with {"force":true}`]);
    expect(scene.api.calls).toEqual(['get nodes/w1']);
  });

  test.each<[string, (api: MemoryApi, node: Node) => void]>([
    ['has changed, such as by an uncordon', (api, node) => void api.put(nodes, node)],
    ['is gone', (api) => api.remove(nodes, 'w1')],
  ])('does not begin on a Node that %s', async (_what, change) => {
    const scene = new Scene();
    const node = scene.node(cordoned);
    expect(await scene.run([drain], undefined, () => change(scene.api, node))).toEqual([]);
    expect(scene.story).toEqual([]);
  });

  test('does not begin on a Node that was never seen', async () => {
    const scene = new Scene();
    expect(await scene.run([drain])).toEqual([]);
    expect([scene.story, scene.api.calls]).toEqual([[], []]);
  });

  test('is not done where this leader drains nothing, or its term is over', async () => {
    const scene = new Scene();
    scene.node(cordoned);
    expect(await scene.run([drain], {})).toEqual([]);
    scene.isDrainTaken = false;
    expect(await scene.run([drain])).toEqual([]);
  });
});

describe('several node actions', () => {
  const names = Array.from({ length: 150 }, (_, index) => `w${index}`);
  const many = names.map(
    (name): NodeAction => ({
      stage,
      target: buildTarget(name),
      kind: 'taint',
      node: name,
    }),
  );

  test('stop before the batch for which the plan has changed', async () => {
    const scene = new Scene();
    for (const name of names) scene.node(plain, name);
    scene.current.push(true, false);
    expect(await scene.run(many)).toHaveLength(100);
    expect(scene.batches).toEqual([names.slice(0, 100), names.slice(100)]);
    expect(scene.writes).toHaveLength(100);
  });

  test('that are none need no look at the plan', async () => {
    const scene = new Scene();
    expect(await scene.run([])).toEqual([]);
    expect(scene.batches).toEqual([]);
  });

  test('do nothing at all where the plan has changed at once', async () => {
    const scene = new Scene();
    scene.node();
    scene.current.push(false);
    expect(await scene.run([taint])).toEqual([]);
    expect(scene.writes).toEqual([]);
  });

  test('go on after one that is refused, which is told in the words of the API server', async () => {
    const scene = new Scene();
    scene.node();
    scene.node(plain, 'w2');
    scene.api.before('replace nodes/w1', () => {
      throw refusal(403, 'Forbidden');
    });
    expect(await scene.run([taint, { ...taint, node: 'w2' }])).toEqual(['taint']);
    expect(scene.refused).toEqual(['taint: Forbidden by the test']);
  });

  test('reject where the API server is in trouble', async () => {
    const scene = new Scene();
    scene.node();
    scene.api.before('replace nodes/w1', () => {
      throw refusal(503, 'ServiceUnavailable');
    });
    await expect(scene.run([taint])).rejects.toThrow('ServiceUnavailable');
    expect(scene.refused).toEqual([]);
  });
});
