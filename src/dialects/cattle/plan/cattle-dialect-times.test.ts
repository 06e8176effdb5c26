/** Tests that the times on the Nodes of a Plan say how long its next nodes are expected to take. */
import { describe, expect, test } from 'vitest';
import {
  HASH,
  NAMESPACE,
  node,
  of,
  worldOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { begun } from '../../../../test/support/builders/cattle-records.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { withStages } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import type { Node } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { hashLabelOf } from './names.ts';
import { withUpgrade } from './node-records.ts';

const config = { name: 'controller', namespace: NAMESPACE, job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const plan: CattlePlan = of({ concurrency: 1 });

/** Returns a Node whose upgrade to this hash began at the start of the test, and took so many minutes. */
function upgraded(name: string, minutes: number, hash = HASH): Node {
  const found = node(name, hash === HASH ? { [hashLabelOf('p')]: HASH } : {});
  const ended = later(minutes * MINUTE);
  return withUpgrade(begun(found, plan, hash), plan, {
    hash,
    version: 'v1',
    ended,
    began: undefined,
  });
}

const snapshotOf = (nodes: readonly Node[], of = dialect) =>
  gather(of, plan, worldOf({ plan, nodes }), T0 + 30 * MINUTE);
const paceOf = (nodes: readonly Node[], of = dialect) => snapshotOf(nodes, of).pace;

describe('how long a node of a Plan of Rancher takes', () => {
  test('is measured with the nodes that the Plan has upgraded', () => {
    expect(paceOf([upgraded('a', 5), upgraded('b', 5), node('c')])).toEqual({
      kind: 'measured',
      mostMs: 5 * MINUTE,
      usualMs: 5 * MINUTE,
      fastMs: 5 * MINUTE,
    });
  });

  test('is not measured with one node alone, and not with times above 24 hours', () => {
    const unknown = { kind: 'earlier', mostMsByStage: {} };
    expect(paceOf([upgraded('a', 5), node('c')])).toEqual(unknown);
    expect(paceOf([upgraded('a', 5), upgraded('b', 25 * 60), node('c')])).toEqual(unknown);
  });

  test('is expected from the earlier upgrade of the Plan until two nodes are done', () => {
    const { pace, targets, rollout } = snapshotOf([
      upgraded('a', 4, 'old'),
      upgraded('b', 6, 'old'),
    ]);
    expect(pace).toEqual({ kind: 'earlier', mostMsByStage: { nodes: 4 * MINUTE } });
    const known = withStages(rollout).map(({ target: { name, key } }) => [
      name,
      targets.earlierMsOf(key),
    ]);
    expect(Object.fromEntries(known)).toEqual({ a: 4 * MINUTE, b: 6 * MINUTE });
  });

  test('is unknown without the checks of Refit, as in the original', () => {
    const original = cattle({ ...config, checksVersions: false });
    expect(paceOf([upgraded('a', 5), upgraded('b', 5)], original)).toEqual({ kind: 'unknown' });
  });
});

describe('a window that closes', () => {
  const opened = (closesIn: number): RolloutPolicy => ({
    ...DEFAULT_POLICY,
    name: 'nights',
    windows: [],
    blackouts: [{ from: T0 + 30 * MINUTE + closesIn, to: T0 + 24 * 60 * MINUTE }],
  });
  const nodes = [upgraded('a', 5), upgraded('b', 5), node('c')];
  const startedOf = (closesIn: number): string[] => {
    const now = T0 + 30 * MINUTE;
    const policy = dialect.planRules?.apply(plan, opened(closesIn)) ?? DEFAULT_POLICY;
    const { record } = decide(gather(dialect, plan, worldOf({ plan, nodes }), now), policy, now);
    return (record?.stages ?? []).flatMap(({ targets }) =>
      targets.flatMap(({ name, state }) => (state === 'intended' ? name : [])),
    );
  };

  test('in 4 minutes gets no further node if two nodes took 5 minutes each', () => {
    expect(startedOf(4 * MINUTE)).toEqual([]);
  });

  test('in 6 minutes gets the next node', () => {
    expect(startedOf(6 * MINUTE)).toEqual(['c']);
  });
});
