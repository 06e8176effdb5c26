/**
 * Proves whose work is cleaned up, that the leader reads from the API server before the cleanup, and when it checks the
 * work again.
 */
import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { buildView } from '../../../test/support/builders/worlds.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { cordonOwner, withCordon } from '../../drain/cordon-marks.ts';
import { nodes } from '../../kube/resources.ts';
import { withClaim } from '../../signal/at-work.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { NodeClaims, NodeSharing } from '../contract/features.ts';
import { ownerOf } from '../model/rollout.ts';
import { refusedWrites } from '../snapshot/refused-writes.ts';
import { freshWorld, OwnWrites, viewsOf } from '../snapshot/world.ts';
import { cleanUpOrphanedWork } from './clean-up-orphaned-work.ts';

const target = buildTarget('w1', 'failed');
const rollout = buildRollout([buildStage('worker', [target])], { phase: 'failed' });
const SOON = { requeueAfterMs: 1000 };

const planOf = (name: string, uid: string): TablePlan => {
  const { metadata, ...plan } = buildTablePlan({});
  return { ...plan, metadata: { ...metadata, name, uid } };
};

class Scene {
  readonly api = new MemoryApi();
  readonly told: string[] = [];
  readonly #clock = new FakeClock(T0);
  readonly refusals = refusedWrites(this.#clock, (_rollout, at, { message }) =>
    this.told.push(`refused ${at.target.name}: ${message}`),
  );
  /** The plan whose work is on the node. */
  plan = planOf('gone', 'gone-uid');
  more: Partial<Dialect<TablePlan>> = {};

  constructor() {
    this.api.put(nodes, withCordon(buildNode('w1'), ownerOf(rollout, target)));
  }

  /** Cleans up once. `cached` are the plans in the cache, which may be outdated. */
  async cleanUp(key = 'plan', cached: readonly TablePlan[] = [], hasReporter = true) {
    const { api } = this;
    const dialect: Dialect<TablePlan> = {
      ...tableDialect,
      drainDelegation: { always: true, nodeOf: (_stage, { name }, at) => at.get(nodes, name) },
      orphanedWork: { plans: () => [{ rollout, plan: this.plan }] },
      ...this.more,
    };
    const view = api.view(nodes);
    view.catchUp();
    const ownWrites = new OwnWrites();
    const cleared = (_of: unknown, { kind }: { kind: string }) => void this.told.push(kind);
    const parts = {
      dialect: dialect as Dialect,
      client: api.client,
      world: freshWorld(viewsOf([[nodes, buildView(view.list())]]), ownWrites),
      ownWrites,
      clock: this.#clock,
      refusals: this.refusals,
      policyFor: () => buildPolicy(),
      ...(hasReporter ? { reporter: { cleared } } : {}),
    };
    return await cleanUpOrphanedWork(parts, buildView(cached), key);
  }

  get isCordoned(): boolean {
    return cordonOwner(this.api.read(nodes, 'w1')) !== undefined;
  }
}

test('the cordon of a deleted plan is removed and reported, and its Node is looked at again soon', async () => {
  const scene = new Scene();
  expect(await scene.cleanUp()).toEqual(SOON);
  expect(scene.isCordoned).toBe(false);
  expect(scene.told).toEqual(['clean-up']);
  expect(scene.api.calls).toEqual(['list plans', 'replace nodes/w1']);
  scene.api.calls.length = 0;
  expect(await scene.cleanUp()).toEqual({});
  expect(scene.api.calls).toEqual([]);
});

test('the cordon of a deleted plan is removed also where nobody asks for a report', async () => {
  const scene = new Scene();
  expect(await scene.cleanUp('plan', [], false)).toEqual(SOON);
  expect(scene.isCordoned).toBe(false);
});

describe('a cordon stays', () => {
  test.each<[string, TablePlan, readonly TablePlan[]]>([
    ['of a plan that the cache shows', planOf('one', 'u1'), [planOf('one', 'u1')]],
    [
      'of one among several plans',
      planOf('two', 'u2'),
      [planOf('one', 'u1'), planOf('two', 'u2'), planOf('three', 'u3')],
    ],
  ])('%s: the API server is not even asked', async (_what, plan, cached) => {
    const scene = new Scene();
    scene.plan = plan;
    expect(await scene.cleanUp('other', cached)).toEqual({});
    expect([scene.isCordoned, scene.api.calls]).toEqual([true, []]);
  });

  test('of a plan that only the API server knows yet', async () => {
    const scene = new Scene();
    scene.plan = scene.api.put(tableDialect.plans, planOf('one', 'u1'));
    expect(await scene.cleanUp('other')).toEqual({});
    expect([scene.isCordoned, scene.api.calls]).toEqual([true, ['list plans']]);
  });

  test('while the API server does not say which plans there are', async () => {
    const scene = new Scene();
    scene.api.before('list plans', () => {
      throw refusal(403, 'Forbidden');
    });
    await expect(scene.cleanUp()).rejects.toThrow('Forbidden');
    expect(scene.isCordoned).toBe(true);
  });

  test('of a dialect that leaves no work behind', async () => {
    const scene = new Scene();
    scene.more = { orphanedWork: undefined } as unknown as typeof scene.more;
    expect(await scene.cleanUp()).toEqual({});
    expect([scene.isCordoned, scene.api.calls]).toEqual([true, []]);
  });
});

describe('a cordon goes', () => {
  test.each<[string, string, TablePlan]>([
    ['of the plan itself that is looked at', 'one', planOf('one', 'u1')],
    ['of a plan that was made anew with the same name', 'other', planOf('one', 'before')],
  ])('%s', async (_what, key, plan) => {
    const scene = new Scene();
    scene.api.put(tableDialect.plans, planOf('one', 'u1'));
    scene.plan = plan;
    expect(await scene.cleanUp(key, [planOf('one', 'u1')])).toEqual(SOON);
    expect(scene.isCordoned).toBe(false);
  });

  test('of a plan whose kind the API server no longer serves', async () => {
    const scene = new Scene();
    scene.api.before('list plans', () => {
      throw refusal(404, 'NotFound');
    });
    expect(await scene.cleanUp()).toEqual(SOON);
    expect(scene.isCordoned).toBe(false);
  });
});

test('the refusal to remove a cordon is reported in the words of the API server, and not repeated at once', async () => {
  const scene = new Scene();
  scene.api.before('replace nodes/w1', () => {
    throw refusal(403, 'Forbidden');
  });
  expect(await scene.cleanUp()).toEqual(SOON);
  expect(scene.told).toEqual([
    'refused w1: w1: the API server refuses to change its object: Forbidden by the test',
  ]);
  await scene.cleanUp();
  expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toHaveLength(1);
});

describe('claims', () => {
  const CLAIM = 'table//gone/gone-uid';
  const sharing = (claims: Partial<NodeClaims>): NodeSharing<TablePlan> => ({
    occupantOf: () => undefined,
    claims: { needOf: () => 'always', isAtWork: () => false, ...claims },
  });
  const rig = (): Scene => {
    const scene = new Scene();
    scene.api.put(nodes, withClaim(buildNode('w1'), CLAIM));
    scene.more = { nodeSharing: sharing({}), orphanedWork: { plans: () => [] } };
    return scene;
  };
  const claims = ({ api }: Scene): boolean =>
    JSON.stringify(api.read(nodes, 'w1').metadata.annotations).includes(CLAIM);

  test('of a plan that is gone go, and the next look is soon', async () => {
    const scene = rig();
    expect(await scene.cleanUp()).toEqual(SOON);
    expect(claims(scene)).toBe(false);
  });

  test('stay where the dialect claims nothing, or says that the node is at work', async () => {
    for (const nodeSharing of [
      { occupantOf: () => undefined },
      sharing({ isAtWork: () => true }),
    ]) {
      const scene = rig();
      scene.more = { ...scene.more, nodeSharing };
      expect(await scene.cleanUp()).toEqual({});
      expect([claims(scene), scene.api.calls]).toEqual([true, []]);
    }
  });

  test('of a plan that only the API server knows yet stay', async () => {
    const scene = rig();
    scene.api.put(tableDialect.plans, planOf('gone', 'gone-uid'));
    expect(await scene.cleanUp('other')).toEqual({});
    expect(claims(scene)).toBe(true);
  });

  test('all of which are refused are asked for again after a minute', async () => {
    const scene = rig();
    scene.api.before('replace nodes/w1', () => {
      throw refusal(403, 'Forbidden');
    });
    expect(await scene.cleanUp()).toEqual({ requeueAfterMs: 60_000 });
    expect(claims(scene)).toBe(true);
  });
});
