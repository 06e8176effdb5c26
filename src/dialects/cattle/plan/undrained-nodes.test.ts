/** Tests that budgets and missing room stop no upgrade by Plans of Rancher that drain no node. */
import { expect, test } from 'vitest';
import {
  namespaceObject,
  placedPod,
  readyContext,
  readyNode,
} from '../../../../test/support/ready/world.ts';
import { checkDrains } from '../../../ready/checks/drains.ts';
import { checkRoom } from '../../../ready/checks/room.ts';
import { rancherReadiness } from './readiness.ts';

const SERVERS = { role: 'server' };
const AGENTS = { role: 'agent' };

const nodeOf = (name: string, labels: object, build = '+k3s1'): object =>
  readyNode(name, { labels, nodeInfo: { kubeletVersion: `v1.36.3${build}` } });
const planOf = (name: string, matchLabels: object, more: object = {}): object => ({
  apiVersion: 'upgrade.cattle.io/v1',
  kind: 'Plan',
  metadata: { name, namespace: 'system-upgrade' },
  spec: { version: 'v1.37.0+k3s1', cordon: true, nodeSelector: { matchLabels }, ...more },
});
const BUDGET = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'pg', namespace: 'app', generation: 1 },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'pg' } } },
};
/** The pod of each node that its drain would evict, and that fits on no other node. */
const PODS = ['s1', 'a1'].map((node, index) =>
  placedPod(`pg-${index}`, node, { nodeSelector: { 'kubernetes.io/hostname': node } }),
);

/** Resolves with the blockers of the checks that assume a drain. */
async function blockers(objects: readonly object[], forbidden: string[] = []) {
  const cluster = [namespaceObject('app'), nodeOf('s1', SERVERS), nodeOf('a1', AGENTS)];
  const context = readyContext({
    objects: [...cluster, BUDGET, ...PODS, ...objects],
    forbidden,
    dialects: [rancherReadiness],
  });
  const found = [...(await checkDrains(context)), ...(await checkRoom(context))];
  const messages = found.filter(({ state }) => state === 'blocker').map((each) => each.message);
  return {
    stopped: ['s1', 'a1'].filter((name) => messages.some((text) => text.includes(name))),
    ok: found.filter(({ state }) => state === 'ok').map(({ message }) => message),
  };
}

test('Plans that only cordon are stopped by no budget and need no room', async () => {
  const plans = [planOf('servers', SERVERS), planOf('agents', AGENTS)];
  expect(await blockers(plans)).toEqual({
    stopped: [],
    ok: [
      'no budget blocks the drain of a node; 2 nodes of Plans without `drain` will not be drained',
      'each of the 0 pods that drains would evict fits on another node',
    ],
  });
});

test.each([
  ['its own Plan', [planOf('servers', SERVERS), planOf('agents', AGENTS, { drain: {} })]],
  [
    'one of its Plans',
    [planOf('servers', SERVERS), planOf('agents', AGENTS), planOf('os', AGENTS, { drain: {} })],
  ],
  ['no Plan yet', [planOf('servers', SERVERS)]],
])(
  'a node that %s drains or may drain is stopped, and the others are not',
  async (_what, plans) => {
    expect((await blockers(plans)).stopped).toEqual(['a1']);
  },
);

test('without the right to read Plans, each node counts as drained', async () => {
  const plans = [planOf('servers', SERVERS), planOf('agents', AGENTS)];
  expect((await blockers(plans, ['Plan'])).stopped).toEqual(['s1', 'a1']);
});
