/**
 * Proves what is written for one target: its Job, and the mark and the label of its Node. Nothing is written for
 * deleted objects.
 */

import { describe, expect, test } from 'vitest';
import {
  dialect,
  HASH,
  job,
  NAMESPACE,
  NOW,
  node,
  of,
  worldOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { begun } from '../../../../test/support/builders/cattle-records.ts';
import { later } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { World } from '../../../engine/contract/world.ts';
import { because } from '../../../engine/model/reasons.ts';
import type { Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import { type Job, jobs, type Node, nodes } from '../../../kube/resources.ts';
import type { AgentPolicy } from '../../../signal/annotations.ts';

const LABEL = 'plan.upgrade.cattle.io/p';
const MARK = 'cordon.refit.upgrade.cattle.io/p';
const plan = of({ drain: {} });
const NO_NODE: readonly Node[] = [];

interface Scene {
  readonly world: World;
  readonly rollout: Rollout;
  readonly stage: Stage;
}

/** Builds a scene in which the Nodes `all` and the Jobs `made` exist. */
function sceneOf(all: readonly Node[], made: readonly Job[] = [], of: CattlePlan = plan): Scene {
  const world = worldOf({ plan: of, nodes: all, jobs: made });
  const rollout = dialect.resolve(of, world, NOW);
  const [stage] = rollout.stages;
  if (!stage) throw new Error('the Plan has no stage');
  return { world, rollout, stage };
}

const target = (state: Target['state'], name = 'a'): Target => ({
  key: `host-${name}/${name}`,
  name,
  state,
  since: later(0),
});

const cordoned = (it: Node): Node => ({ ...it, spec: { unschedulable: true } });

describe('before the state of a target is recorded', () => {
  const remembered = (it: Node | undefined, state: Target['state']) => {
    const { world, rollout, stage } = sceneOf(it ? [it] : NO_NODE);
    return dialect.signal.remember?.(world, rollout, stage, target(state), plan);
  };

  test('a cordon that was there before is marked', () => {
    expect(remembered(cordoned(node('a')), 'intended')).toMatchObject({
      kind: 'replace',
      resource: nodes,
      object: { metadata: { name: 'a', annotations: { [MARK]: 'found' } } },
    });
  });

  test('the label of the version goes when the node is upgraded to it again', () => {
    const again = remembered(node('a', { [LABEL]: HASH }), 'intended');
    expect(again).toMatchObject({ kind: 'replace', object: { metadata: { name: 'a' } } });
    expect(again).not.toHaveProperty(['object', 'metadata', 'labels', LABEL]);
  });

  test('nothing is written if the Node has its record and needs no mark, or is gone', () => {
    const known = begun(node('a'), plan, HASH, target('intended').since);
    expect(remembered(known, 'intended')).toBeUndefined();
    expect(remembered(node('a', { [LABEL]: HASH }), 'failed')).toBeUndefined();
    expect(remembered(undefined, 'intended')).toBeUndefined();
  });
});

describe('the Job of a target', () => {
  const sent = ({ world, rollout, stage }: Scene, by = plan) => {
    const signalling = { stage, target: target('intended'), agent: {} as AgentPolicy };
    return dialect.signal.send(world, rollout, signalling, by);
  };
  const touched = ({ world, rollout, stage }: Scene) =>
    dialect.signal.touches(world, rollout, stage, target('intended'), plan);
  const NAME = job('a').metadata.name;

  test('is created if the node has none', () => {
    const scene = sceneOf([node('a')]);
    const { rollout } = scene;
    const metadata = { namespace: NAMESPACE, labels: { [LABEL]: rollout.id } };
    expect(sent(scene)).toMatchObject({ kind: 'create', resource: jobs, object: { metadata } });
  });

  test('is not created while the Plan has a problem, or if the Node is gone', () => {
    const wrong = of({ postCompleteDelay: '-30s' });
    expect(sent(sceneOf([node('a')], [], wrong), wrong)).toBeUndefined();
    expect(sent(sceneOf(NO_NODE))).toBeUndefined();
  });

  test('is the object that shows whether the signal was sent', () => {
    const present = job('a');
    expect(touched(sceneOf([node('a')], [present]))).toEqual({ resource: jobs, object: present });
  });

  test('is looked for by the name and namespace that it gets', () => {
    expect(touched(sceneOf([node('a')]))).toEqual({
      resource: jobs,
      object: { metadata: { name: NAME, namespace: NAMESPACE } },
      isAbsent: true,
    });
  });

  test('keeps its name if a Job of an earlier Plan with that name is on the same node', () => {
    const present = job('a');
    const metadata = { ...present.metadata, ownerReferences: [] };
    expect(touched(sceneOf([node('a')], [{ ...present, metadata }]))).toMatchObject({
      object: { metadata: { name: NAME } },
      isAbsent: true,
    });
  });

  test('is deleted when the attempt is cancelled', () => {
    const cancelled = ({ world, rollout, stage }: Scene) =>
      dialect.signal.cancel?.(
        world,
        rollout,
        stage,
        target('intended'),
        because('Aborted', 'wrong image'),
        NOW,
      );
    const present = job('a');
    expect(cancelled(sceneOf([node('a')], [present]))).toEqual({
      kind: 'delete',
      resource: jobs,
      object: present,
    });
    expect(cancelled(sceneOf([node('a')]))).toBeUndefined();
  });
});

test('nothing is written to finish a target whose Node is gone', () => {
  const { world, rollout, stage } = sceneOf(NO_NODE);
  expect(dialect.signal.finish?.(world, rollout, stage, target('intended'), plan)).toBeUndefined();
});

describe('a cordon that names no owner', () => {
  const judged = (all: readonly Node[], made: readonly Job[] = []) => {
    const { world, rollout, stage } = sceneOf(all, made);
    return dialect.drainDelegation?.unnamedCordon?.(
      world,
      rollout,
      stage,
      target('intended'),
      plan,
    );
  };

  test('is ours if a Job of the Plan cordons the node', () => {
    const cordons = job('a', [], 'v1.2.3', { cordon: true });
    expect(judged([cordoned(node('a'))], [cordons])).toBe('ours');
  });

  test('was found if no Job of the Plan cordons the node', () => {
    expect(judged([cordoned(node('a'))], [job('a')])).toBe('found');
  });

  test('is none on a Node that is gone', () => {
    expect(judged(NO_NODE)).toBeUndefined();
  });
});
