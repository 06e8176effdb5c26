/** Owns the table of the SSH signal: what a Node and this process tell of one target, and what follows. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildWorld } from '../../../test/builders/worlds.ts';
import type { Observation } from '../../engine/model.ts';
import type { Node } from '../../kube/types.ts';
import { kubeadmDialect, type Work, type Works } from './dialect.ts';
import { type ConfigMap, newPlan } from './plan-object.ts';
import { type Report, reportPatch } from './report.ts';

const [NOW, ATTEMPT] = [Date.parse('2026-11-20T08:00:00Z'), '2026-11-20T08:00:00Z'];
const plan: ConfigMap = {
  ...newPlan({ version: 'v1.36.3', concurrent: 2, leader: ['cp1'], followers: ['cp2'], workers: ['w1', 'w2'] }),
  metadata: { name: 'refit-kubeadm', namespace: 'kube-system', uid: 'plan-uid', creationTimestamp: ATTEMPT },
};
const atWork = (working: boolean, begun: Work[] = []): Works => ({
  isAt: () => working,
  begin: async (work) => await Promise.resolve(void begun.push(work)),
});

function node(report?: Partial<Report>, kubeletVersion = 'v1.36.2'): Node {
  const full: Report = {
    campaign: 'plan-uid',
    target: 'workers/w1',
    attempt: ATTEMPT,
    state: 'working',
    step: 'Kubeadm',
    since: ATTEMPT,
    spent: {},
    ...report,
  };
  const { metadata } = reportPatch(full) as { metadata: { annotations: Record<string, string> } };
  return { ...buildNode('w1', report ? metadata : {}), status: { nodeInfo: { kubeletVersion } } };
}

function seen(works: Works | undefined, object: Node): string {
  const dialect = kubeadmDialect(works);
  const world = buildWorld([], [object]);
  const campaign = dialect.resolve(plan, world, NOW);
  const [stage, target] = [campaign.stages[2], campaign.stages[2]?.targets[0]];
  if (!stage || !target) throw new Error('there is no worker');
  const observation: Observation = dialect.signal.read(world, campaign, stage, target, plan);
  return observation.kind === 'working' ? `working ${observation.step}` : observation.kind;
}

describe('what is seen of a target', () => {
  test.each<[string, Works | undefined, Node, string]>([
    ['nothing', atWork(false), node(), 'none'],
    ['begun, and not told yet', atWork(true), node(), 'sent'],
    ['at work', atWork(true), node({}), 'working Kubeadm'],
    ['cut off with an earlier process: to be begun again', atWork(false), node({}), 'none'],
    ['whoever only looks believes the Node', undefined, node({}), 'working Kubeadm'],
    [
      'finished, and the kubelet does not tell the version yet',
      atWork(false),
      node({ state: 'finished', step: 'Verify' }),
      'working Verify',
    ],
    ['finished', atWork(false), node({ state: 'finished' }, 'v1.36.3'), 'succeeded'],
    ['failed', atWork(false), node({ state: 'failed', message: 'no' }), 'failed'],
    ['what an earlier campaign has left', atWork(false), node({ campaign: 'old', state: 'failed' }), 'none'],
    [
      'what another target of the campaign has left',
      atWork(false),
      node({ target: 'leader/w1', state: 'failed' }),
      'none',
    ],
  ])('%s', (_name, works, object, wanted) => {
    expect(seen(works, object)).toBe(wanted);
  });
});

test('the leader applies, everybody else follows; one control-plane host at a time, workers as many as asked for', async () => {
  const begun: Work[] = [];
  const dialect = kubeadmDialect(atWork(false, begun));
  const world = buildWorld([], []);
  const campaign = dialect.resolve(plan, world, NOW);
  for (const stage of campaign.stages) {
    for (const target of stage.targets) {
      const instruction = dialect.signal.send(world, campaign, { stage, target, agent: {} }, plan);
      if (instruction?.kind === 'begin') await instruction.begin();
    }
  }
  expect(begun.map(({ target, verb }) => `${target.name} ${verb}`)).toEqual([
    'cp1 apply',
    'cp2 node',
    'w1 node',
    'w2 node',
  ]);
  expect(campaign.stages.map(({ role, maxInFlight }) => `${role} ${maxInFlight}`)).toEqual([
    'controller 1',
    'controller 1',
    'worker 2',
  ]);
});

test('a campaign comes back from its record as it went in', () => {
  const dialect = kubeadmDialect(undefined);
  const world = buildWorld([], []);
  const campaign = { ...dialect.resolve(plan, world, NOW), phase: 'running' as const, blocked: true };
  expect(dialect.resolve(dialect.project(campaign, plan, NOW), world, NOW + 60_000)).toEqual(campaign);
});

test('an object of that name that is not ours is a plan that cannot be carried out', () => {
  const { problems, stages } = kubeadmDialect(undefined).resolve({ ...plan, data: {} }, buildWorld([], []), NOW);
  expect([problems.map(({ message }) => message), stages]).toEqual([
    ['ConfigMap kube-system/refit-kubeadm holds no request of `refit kubeadm apply`'],
    [],
  ]);
});
