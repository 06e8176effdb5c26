/**
 * Tests whole runs of Rancher Plans whose attempts and ends are recorded on Nodes: hooks run once, waves settle, and a
 * new leader continues with the same record.
 */
import { expect, test } from 'vitest';
import {
  dialect,
  HASH,
  NOW,
  of,
  running,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../../test/support/builders/cattle-scenes.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later, MINUTE } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { Drains } from '../../../drain/running-drains.ts';
import type { Hook, HookMoment } from '../../../hooks/rules.ts';
import { createHookRunner } from '../../../hooks/runner.ts';
import { jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import type { Clock } from '../../../util/clock.ts';
import { withUpgrade } from './node-records.ts';

const HOOK_MS = 20_000;

function hookAt(when: HookMoment): Hook {
  const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  const action = { kind: 'job', namespace: 'h', template, pinToNode: false, retries: 0 } as const;
  return { name: 'backup', when, action, timeoutMs: MINUTE };
}

/** A runner whose hooks succeed 20 s after their start. `started` gets the name of each Job of a hook. */
function runnerInto(started: Map<string, number>) {
  return (clock: Clock) => {
    const runner = createHookRunner(clock, async ({ id }) => {
      const since = started.getOrInsert(id, clock.now());
      const state = clock.now() - since >= HOOK_MS ? 'succeeded' : 'running';
      return await Promise.resolve({ state, message: '' } as const);
    });
    void runner.run(new AbortController().signal);
    return runner;
  };
}

const DRAINED: Drains = {
  stateOf: () => ({ kind: 'drained', since: 0 }),
  forget: async () => await Promise.resolve(),
  keep: () => undefined,
  begin: () => undefined,
  onChange: () => () => undefined,
  run: async () => await Promise.resolve(),
};

type DrainedBy = 'its Job' | 'the leader' | 'nobody';

/** Returns a scene with one node and a policy with a hook at this moment. */
function sceneWith(when: HookMoment, by: DrainedBy) {
  const started = new Map<string, number>();
  const drainInJob = by !== 'the leader';
  const plan = buildCattlePlan('p', by === 'nobody' ? {} : { drain: {} });
  const scene = buildCattleScene([plan], ['a'], {
    policyOf: () => ({ name: 'careful', hooks: [hookAt(when)] }),
    job: { drainInJob },
    hooks: runnerInto(started),
    drains: DRAINED,
  });
  return { ...scene, started };
}

const hashLabelOn = ({ metadata }: Node) => metadata.labels?.['plan.upgrade.cattle.io/p'];
/** Completes the Job as soon as it is not held any more. */
function completeOpen({ made, complete }: ReturnType<typeof sceneWith>): void {
  if (made().some(({ spec, status }) => spec?.['suspend'] !== true && !status)) complete('a');
}

const MOMENTS: readonly (readonly [HookMoment, DrainedBy])[] = [
  ['beforeDrain', 'its Job'],
  ['afterVerified', 'its Job'],
  ['beforeDrain', 'the leader'],
  ['afterDrain', 'the leader'],
  ['beforeRestart', 'the leader'],
  ['afterVerified', 'the leader'],
  ['beforeDrain', 'nobody'],
  ['beforeRestart', 'nobody'],
  ['afterVerified', 'nobody'],
];

test.each(MOMENTS)(
  'a hook of the moment %s runs once for a node that is drained by %s, and its upgrade Job runs once, also after the leader was killed',
  async (when, by) => {
    const scene = sceneWith(when, by);
    const uids = new Set<string | undefined>();
    for (let second = 0; second < 90; second++) {
      await scene.look(1);
      for (const { metadata } of scene.made()) uids.add(metadata.name);
      completeOpen(scene);
      if (second % 7 === 3) scene.killLeader();
    }
    expect([...scene.started]).toHaveLength(1);
    expect(uids.size).toBe(1);
    expect(hashLabelOn(scene.api.read(nodes, 'a'))).toBeDefined();
  },
);

test('a node that another build of Refit has recorded gets one hook Job and one upgrade Job', async () => {
  const scene = sceneWith('beforeDrain', 'its Job');
  await scene.look(3);
  scene.api.change(nodes, 'a', ({ metadata, ...node }: Node) => {
    const { annotations: _, ...kept } = metadata;
    return { ...node, metadata: kept };
  });
  scene.started.clear();
  scene.killLeader();
  for (let second = 0; second < 90; second++) await scene.look(1);
  expect([scene.started.size, scene.made().length]).toEqual([1, 1]);
});

test('a Plan that is edited while a hook runs gets one hook Job for the new version, and one upgrade Job', async () => {
  const scene = sceneWith('beforeDrain', 'its Job');
  await scene.look(3);
  scene.started.clear();
  const edited = buildCattlePlan('p', { drain: {}, version: 'v1.2.4' });
  scene.api.change(cattlePlans, 'p', ({ status = {} }: CattlePlan) => ({ ...edited, status }));
  for (let second = 0; second < 90; second++) await scene.look(1);
  expect([scene.started.size, scene.made().length]).toEqual([1, 1]);
});

test('a node whose failed Job was deleted gets another hook Job and another upgrade Job', async () => {
  const scene = sceneWith('beforeDrain', 'its Job');
  await scene.look(60);
  const failed = { type: 'Failed', status: 'True', lastTransitionTime: later(MINUTE) } as const;
  for (const job of scene.made()) scene.api.put(jobs, { ...job, status: { conditions: [failed] } });
  await scene.look(4);
  for (const { metadata } of scene.made()) scene.api.remove(jobs, metadata.name);
  await scene.look(60);
  expect([scene.started.size, scene.made().length]).toEqual([2, 1]);
});

test('a wave of a Rancher Plan settles for its whole time, although Kubernetes has deleted the Job and the leader was killed', async () => {
  const policy = { name: 'careful', waves: [{ count: 1, settleMs: 3 * HOUR }] };
  const scene = buildCattleScene([buildCattlePlan('p')], ['a', 'b'], { policyOf: () => policy });
  await scene.look(4);
  const [first, ...others] = scene.atWork();
  expect(others).toEqual([]);
  // The Job takes an hour, so the settle time begins long after the start of the Plan.
  await scene.look(4, 15 * MINUTE);
  scene.complete(first);
  await scene.look(4);
  await scene.look(1, 15 * MINUTE);
  for (const { metadata } of scene.made()) scene.api.remove(jobs, metadata.name);
  scene.killLeader();
  await scene.look(10, 15 * MINUTE);
  expect(scene.atWork()).toEqual([]);
  await scene.look(4, 15 * MINUTE);
  expect(scene.atWork()).toHaveLength(1);
  expect(scene.atWork()).not.toEqual([first]);
});

test('nodes that are done end at their recorded times, so that failures in a row are counted from these times', () => {
  const plan = buildCattlePlan('p');
  const at = (name: string, minute: number): Node => {
    const node = buildNode(name, { labels: { 'kubernetes.io/hostname': name } });
    const end = { hash: HASH, version: 'v1.2.3', ended: later(minute * MINUTE), began: undefined };
    const labels = { ...node.metadata.labels, 'plan.upgrade.cattle.io/p': HASH };
    return withUpgrade({ ...node, metadata: { ...node.metadata, labels } }, plan, end);
  };
  const since = (node: Node): string | undefined => {
    const world = buildWorldOf([nodes, [node]], [jobs, []], [pods, []], [secrets, []]);
    const { stages } = dialect.resolve(of({}, running([])), world, NOW + HOUR);
    return stages[0]?.targets[0]?.since;
  };
  expect([since(at('a', 2)), since(at('b', 7))]).toEqual([later(2 * MINUTE), later(7 * MINUTE)]);
});

test('the Node says which version the Plan installed, which version ran before, and when', async () => {
  const scene = buildCattleScene([buildCattlePlan('p')], ['a']);
  scene.api.change(nodes, 'a', (node: Node) => ({
    ...node,
    status: { ...node.status, nodeInfo: { kubeletVersion: 'v1.1.0+k3s1' } },
  }));
  await scene.look(4);
  const begun = scene.clock.now();
  scene.complete('a');
  await scene.look(4);
  const text = scene.api.read(nodes, 'a').metadata.annotations ?? {};
  const record = JSON.parse(
    text['system-upgrade.upgraded.refit.upgrade.cattle.io/p'] ?? '{}',
  ) as object;
  expect(record).toMatchObject({ version: 'v1.2.3', from: 'v1.1.0+k3s1' });
  const { begun: from, ended } = record as { begun: string; ended: string };
  expect(Date.parse(from)).toBeLessThan(begun);
  expect(Date.parse(ended)).toBeGreaterThanOrEqual(begun);
  expect(text).not.toHaveProperty(['system-upgrade.attempt.refit.upgrade.cattle.io/p']);
});
