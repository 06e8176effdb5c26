/**
 * Proves how node actions are carried out: in batches, and each action only if its object is the same as at the
 * decision.
 */
import { setImmediate as nextMacrotask } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import type { Drains } from '../../drain/running-drains.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, nodes, type Resource } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import type { NodeAction } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { runNodeActions } from './run-node-actions.ts';
import type { Effects } from './writes.ts';

const stage = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2', 'intended')]);

async function doneOf(
  effects: Effects,
  rollout: Rollout,
  nodeActions: readonly NodeAction[],
): Promise<NodeAction[]> {
  const done: NodeAction[] = [];
  await runNodeActions({ ...effects, rollout, now: 0 }, nodeActions, {
    isCurrent: async () => await Promise.resolve(true),
    onDone: (nodeAction) => done.push(nodeAction),
    onRefused: (_, words) => expect(words).toBe(''),
  });
  return done;
}

test('a cancel that the dialect cannot write counts as nothing done, so that the next decision waits', async () => {
  const dialect = { signal: {} } as unknown as Dialect;
  const effects = {
    dialect,
    client: {} as KubeClient,
    world: buildWorld([], []),
    ownWrites: new OwnWrites(),
  };
  const reason = because('Aborted', 'the plan was aborted');
  const target = buildTarget('w1', 'intended');
  const nodeActions = [{ kind: 'cancel', stage, target, reason } as const];
  expect(await doneOf(effects, buildRollout([stage]), nodeActions)).toEqual([]);
});

test('thousands of node actions are run a hundred at a time, each on its object as it was before the first', async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `w${index}`);
  const worldAt = (resourceVersion: string): World =>
    buildWorld(
      [],
      names.map((name) => buildNode(name, { resourceVersion })),
    );
  let world = worldAt('1');
  const changed = worldAt('2');
  let underWay = 0;
  let most = 0;
  const written = new Map<string, string | undefined>();
  const client = {
    replace: async (_resource: Resource, object: KubeObject) => {
      most = Math.max(most, ++underWay);
      world = changed;
      written.set(object.metadata.name, object.metadata.resourceVersion);
      await new Promise<void>((resolve) => setImmediate(resolve));
      underWay--;
      return object;
    },
  } as unknown as KubeClient;
  const moving: World = {
    get: (...args) => world.get(...args),
    list: (resource) => world.list(resource),
  };
  const effects = {
    dialect: tableDialect as unknown as Dialect,
    client,
    world: moving,
    ownWrites: new OwnWrites(),
  };
  const large = buildStage('worker', names);
  const nodeActions = large.targets.map(
    (target) => ({ kind: 'taint', stage: large, target, node: target.name }) as const,
  );
  expect(await doneOf(effects, buildRollout([large]), nodeActions)).toEqual(nodeActions);
  expect(most).toBe(100);
  expect(written).toEqual(new Map(names.map((name) => [name, '1'])));
});

test.each([
  ['that conflicts leaves the drain as it is', undefined, []],
  ['that uncordons ends the drain before it is written', 'ours', ['w1']],
] as const)('an acknowledgement %s', async (_, uncordon, ended) => {
  const forgotten: string[] = [];
  let isEnded = false;
  const forget = async (node: string): Promise<void> => {
    forgotten.push(node);
    await nextMacrotask();
    isEnded = true;
  };
  const drains = { forget } as unknown as Drains;
  const node = buildNode('w1', { resourceVersion: '1' });
  const dialect = {
    signal: { acknowledge: () => ({ kind: 'replace', resource: nodes, object: node }) },
  } as unknown as Dialect;
  const writtenAfterEnd: boolean[] = [];
  const replace = async (): Promise<never> => {
    writtenAfterEnd.push(isEnded);
    return await Promise.reject(refusal(409, 'Conflict'));
  };
  const client = { replace } as unknown as KubeClient;
  const effects = {
    dialect,
    client,
    world: buildWorld([], [node]),
    ownWrites: new OwnWrites(),
    drains,
  };
  const target = buildTarget('w1', 'intended');
  const nodeActions = [{ kind: 'acknowledge', stage, target, node: 'w1', uncordon } as const];
  expect(await doneOf(effects, buildRollout([stage]), nodeActions)).toEqual([]);
  expect(forgotten).toEqual(ended);
  expect(writtenAfterEnd).toEqual([ended.length > 0]);
});
