/** Proves which claims a plan writes, and which claims, marks and lifecycle conditions are left behind on Nodes. */

import { describe, expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { NONE, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  claimingDialect,
  TABLE_OBJECTS,
  type TablePlan,
  tableDialect,
  withAnswer,
} from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { NO_FAILURES } from '../../../test/support/builders/whole-records.ts';
import { buildView, buildWorld } from '../../../test/support/builders/worlds.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { withMarks } from '../../coordination/node-marks.ts';
import { LIFECYCLE_REASON } from '../../drain/lifecycle-conditions.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import { claimOn, withClaim } from '../../signal/at-work.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { freshWorld, OwnWrites, viewsOf } from '../snapshot/world.ts';
import {
  claimsFor,
  claimsLeft,
  conditionsLeft,
  dropClaim,
  dropConditions,
  dropMarks,
  marksLeft,
} from './claim-writes.ts';

const OWN = 'table//plan/plan-uid';
const GONE = 'table//gone/gone-uid';

const dialect = claimingDialect('table');

function rolloutOf(state: RecordedState, more: Partial<Rollout> = {}): Rollout {
  return buildRollout([buildStage('worker', [buildTarget('w1', state)])], more);
}

/** Returns a memory of refused writes. It contains every write if `isRefused` is true, otherwise it is empty. */
function refusals(isRefused: boolean) {
  const of = () =>
    isRefused ? { reason: because('TargetRefused', 'no'), recheckMs: 1 } : undefined;
  return { of, add: () => undefined };
}

describe('the claims that come before a record', () => {
  const LIMITED = buildPolicy({ maxUnavailable: { nodes: 1 } });

  interface Case {
    readonly spoken?: Dialect;
    readonly node?: Node;
    readonly policy?: RolloutPolicy;
    readonly isRefused?: boolean;
  }

  /** Returns the claims that are written for w1. */
  function claimsOf({
    spoken = dialect,
    node = buildNode('w1'),
    policy = LIMITED,
    isRefused,
  }: Case = {}): readonly unknown[] {
    const after = rolloutOf('intended');
    const change = {
      plan: buildTablePlan({}),
      policy,
      before: after,
      after,
      failures: NO_FAILURES,
    };
    const known = isRefused === undefined ? {} : { refusals: refusals(isRefused) };
    return claimsFor({ dialect: spoken, world: buildWorld([], [node]), ...known }, change);
  }

  const sharing = (more: object): Dialect => {
    return { ...dialect, nodeSharing: { ...dialect.nodeSharing, ...more } } as Dialect;
  };

  test.each([undefined, false])('are written for intended targets: refused %s', (isRefused) => {
    const node = buildNode('w1');
    expect(claimsOf({ node, ...(isRefused === undefined ? {} : { isRefused }) })).toEqual([
      {
        stage: expect.objectContaining({ role: 'worker' }) as unknown,
        target: expect.objectContaining({ name: 'w1', state: 'intended' }) as unknown,
        instruction: { kind: 'replace', resource: nodes, object: withClaim(node, OWN) },
        mayLack: true,
      },
    ]);
  });

  test.each<[string, Parameters<typeof claimsOf>[0]]>([
    [
      'the plan waits for another one',
      { spoken: sharing({ awaits: () => ({ plan: 'plan other' }) }) },
    ],
    ['the Node bears the claim already', { node: withClaim(buildNode('w1'), OWN) }],
    ['another plan claims the Node', { node: withClaim(buildNode('w1'), 'other//plan-b/uid-b') }],
    ['the API server refuses to change the Node', { isRefused: true }],
    ['the policy has no limit', { policy: buildPolicy() }],
    ['the dialect claims no Nodes', { spoken: sharing({ claims: undefined }) }],
    ['the dialect shares no Nodes', { spoken: { ...dialect, nodeSharing: undefined } as never }],
    ['targets have no Node', { spoken: { ...dialect, drainDelegation: undefined } as never }],
    ['the Node is not there', { node: buildNode('w2') }],
  ])('are not written if %s', (_what, scene) => {
    expect(claimsOf(scene)).toEqual([]);
  });

  test('are written if the plan would wait for nobody, and waiting is no matter without a limit', () => {
    expect(claimsOf({ spoken: sharing({ awaits: () => undefined }) })).toHaveLength(1);
    const always = { needOf: () => 'always', isAtWork: () => false };
    const spoken = sharing({ awaits: () => ({ plan: 'plan other' }), claims: always });
    expect(claimsOf({ spoken, policy: buildPolicy() })).toHaveLength(1);
  });
});

const bearing = {
  claim: withClaim,
  marks: (node: Node, owner: string): Node => withMarks(node, owner, ['Karpenter']),
  conditions: (node: Node, owner: string): Node => ({
    ...node,
    status: {
      ...node.status,
      conditions: [
        {
          type: 'MaintenancePlanned',
          status: 'True',
          reason: LIFECYCLE_REASON,
          message: `set by Refit for ${owner}`,
        },
      ],
    },
  }),
};

const find = { claim: claimsLeft, marks: marksLeft, conditions: conditionsLeft };
type What = keyof typeof find;
const ALL: readonly What[] = ['claim', 'marks', 'conditions'];

/** The differences from the default case, in which a plan that is done with w1 looks for what it has left on w1. */
interface Sight {
  readonly owner?: string;
  readonly rollout?: Rollout;
  readonly answer?: Observation;
  readonly isRefused?: boolean;
  readonly plans?: readonly TablePlan[];
  readonly key?: string;
  readonly spoken?: Dialect<TablePlan>;
}

/** Returns the owners that have left something of this kind on w1. */
function ownersLeft(what: What, sight: Sight = {}): readonly string[] {
  const { owner = OWN, rollout = rolloutOf('done'), answer = NONE, spoken = dialect } = sight;
  const plan: TablePlan = { ...buildTablePlan({}), status: rollout };
  const node = withAnswer(bearing[what](buildNode('w1'), owner), answer);
  const known = sight.isRefused === undefined ? {} : { refusals: refusals(sight.isRefused) };
  const world = freshWorld(
    viewsOf(spoken.watched.map(({ resource }) => [resource, buildView([node])])),
    new OwnWrites(),
  );
  const left = find[what](
    { dialect: spoken, world, ...known },
    sight.plans ?? [plan],
    sight.key ?? 'plan',
    T0,
  );
  for (const each of left) expect(each.node).toEqual(node);
  return left.map((each) => each.owner);
}

describe.each(ALL)('what is left on a Node, its %s', (what) => {
  test('goes with the plan', () => {
    expect(ownersLeft(what, { owner: GONE })).toEqual([GONE]);
    expect(ownersLeft(what, { plans: [] })).toEqual([OWN]);
  });

  test('belongs to plans of this dialect and its namespace alone', () => {
    expect(ownersLeft(what, { owner: 'other//gone/gone-uid' })).toEqual([]);
    expect(ownersLeft(what, { owner: 'table/elsewhere/gone/gone-uid' })).toEqual([]);
    const spoken = { ...dialect, planObjects: { namespace: 'elsewhere' } };
    expect(ownersLeft(what, { owner: 'table/elsewhere/gone/gone-uid', spoken })).toEqual([
      'table/elsewhere/gone/gone-uid',
    ]);
    expect(ownersLeft(what, { owner: GONE, spoken })).toEqual([]);
  });

  test('stays while the Node is at work', () => {
    const claims = { needOf: () => undefined, isAtWork: () => true };
    const spoken = { ...dialect, nodeSharing: { occupantOf: () => undefined, claims } };
    expect(ownersLeft(what, { owner: GONE, spoken })).toEqual([]);
  });

  test('is not looked for where the dialect watches no Nodes', () => {
    const watched = dialect.watched.filter(({ resource }) => resource !== nodes);
    expect(watched.map(({ resource }) => resource)).toEqual([TABLE_OBJECTS.controller]);
    expect(ownersLeft(what, { owner: GONE, spoken: { ...dialect, watched } })).toEqual([]);
  });

  test('of another plan that exists stays, whatever that plan does', () => {
    const rollout = buildRollout([], { phase: 'done' });
    expect(ownersLeft(what, { rollout, key: 'other' })).toEqual([]);
  });

  test('stays if the record of the plan cannot be read, and only then', () => {
    const rollout = buildRollout([], { phase: 'done' });
    const unread = because('TargetRefused', 'a shard is missing');
    expect(ownersLeft(what, { rollout: { ...rollout, unread } })).toEqual([]);
    expect(ownersLeft(what, { rollout })).toEqual([OWN]);
  });
});

test.each<[What, readonly string[]]>([
  ['claim', []],
  ['marks', [GONE]],
  ['conditions', [GONE]],
])('a dialect that claims no Nodes leaves nothing but marks and conditions: %s', (what, left) => {
  for (const nodeSharing of [undefined, { occupantOf: () => undefined }]) {
    const spoken = { ...dialect, nodeSharing } as Dialect<TablePlan>;
    expect(ownersLeft(what, { owner: GONE, spoken })).toEqual(left);
  }
});

describe.each(['claim', 'marks'] as const)('the %s of the plan itself', (what) => {
  test.each<[string, Sight]>([
    ['its target is about to start', { rollout: rolloutOf('intended') }],
    [
      'its target may start, because nothing was refused',
      { rollout: rolloutOf('intended'), isRefused: false },
    ],
    [
      'its target has its signal, though the plan is over',
      { rollout: rolloutOf('intended', { phase: 'failed' }), answer: sent() },
    ],
    [
      'its target works, though it is recorded as late',
      { rollout: rolloutOf('failed'), answer: working('Restart') },
    ],
    [
      'its target has a signal, though it is recorded as late',
      { rollout: rolloutOf('failed'), answer: sent() },
    ],
  ])('stays while %s', (_what, sight) => {
    expect(ownersLeft(what, sight)).toEqual([]);
  });

  test.each<[string, Sight]>([
    ['its target is done', { rollout: rolloutOf('done'), answer: succeeded() }],
    ['its target only waits', { rollout: rolloutOf('pending') }],
    ['its target has failed while others go on', { rollout: rolloutOf('failed') }],
    ['the plan is over', { rollout: rolloutOf('intended', { phase: 'failed' }) }],
    [
      'the API server refuses to change its Node',
      { rollout: rolloutOf('intended'), isRefused: true },
    ],
  ])('goes once %s', (_what, sight) => {
    expect(ownersLeft(what, sight)).toEqual([OWN]);
  });
});

test.each(ALL)('while no %s is left, no plan is resolved', (what) => {
  const resolve = (): Rollout => {
    throw new Error('resolved');
  };
  const owner = 'other//gone/gone-uid';
  expect(ownersLeft(what, { owner, spoken: { ...dialect, resolve } })).toEqual([]);
});

test.each<RecordedState>(['pending', 'intended', 'failed', 'done'])(
  'the conditions of a Node that the plan lists are left to its turns: %s',
  (state) => {
    expect(ownersLeft('conditions', { rollout: rolloutOf(state) })).toEqual([]);
  },
);

describe.each(ALL)('what is dropped from a Node, its %s', (what) => {
  const VERB = what === 'conditions' ? 'patch' : 'replace';

  function rig() {
    const api = new MemoryApi();
    const node = api.put(nodes, bearing[what](buildNode('w1'), GONE));
    const effects = {
      dialect: tableDialect as Dialect,
      client: api.client,
      world: buildWorld([], [node]),
      ownWrites: new OwnWrites(),
    };
    const left = { node, owner: GONE };
    const drop = async (): Promise<boolean> => {
      if (what === 'conditions') return await dropConditions(effects, left, T0);
      return await (what === 'claim' ? dropClaim : dropMarks)(effects, left);
    };
    const remains = (): boolean => {
      const world = buildWorld([], [api.read(nodes, 'w1')]);
      return find[what]({ dialect, world }, [], 'plan', T0).length > 0;
    };
    return { api, drop, remains };
  }

  test('is gone afterwards', async () => {
    const { drop, remains } = rig();
    expect(remains()).toBe(true);
    expect([await drop(), remains()]).toEqual([true, false]);
  });

  test('stays if the Node has changed, which the next clean-up will see', async () => {
    const { api, drop, remains } = rig();
    api.put(nodes, api.read(nodes, 'w1'));
    expect([await drop(), remains()]).toEqual([true, true]);
  });

  test('stays if the API server refuses the write', async () => {
    const { api, drop, remains } = rig();
    api.before(`${VERB} nodes/w1`, () => {
      throw refusal(403, 'Forbidden');
    });
    expect([await drop(), remains()]).toEqual([false, true]);
  });

  test('stays if the API server fails, and the error is passed on', async () => {
    const { api, drop, remains } = rig();
    api.before(`${VERB} nodes/w1`, () => {
      throw refusal(500, 'InternalError');
    });
    await expect(drop()).rejects.toThrow('InternalError');
    expect(remains()).toBe(true);
  });
});

test('a claim of another owner stays where it is', async () => {
  const api = new MemoryApi();
  const node = api.put(nodes, withClaim(buildNode('w1'), OWN));
  const world = buildWorld([], [node]);
  const effects = { dialect: tableDialect as Dialect, client: api.client, world };
  await dropClaim({ ...effects, ownWrites: new OwnWrites() }, { node, owner: GONE });
  expect(claimOn(api.read(nodes, 'w1'))).toBe(OWN);
});
