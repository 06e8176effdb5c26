/** Tests `refit upgrade` for K3s and RKE2, which writes Plans of system-upgrade-controller. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { NAMESPACE, UpgradeCluster } from '../../test/support/upgrade-cluster.ts';
import type { CattlePlan } from '../api/cattle/plan.ts';
import { cattlePlans } from '../api/kinds.ts';

let cluster: UpgradeCluster;

beforeAll(async () => {
  cluster = await UpgradeCluster.start();
});
beforeEach(async () => await cluster.clear());
afterAll(async () => await cluster[Symbol.asyncDispose]());

async function putCattle(name: string, spec: Parameters<typeof buildCattlePlan>[1]): Promise<void> {
  const { metadata, ...plan } = buildCattlePlan(name, spec);
  const { uid: _uid, creationTimestamp: _created, ...rest } = metadata;
  await cluster.client.create(cattlePlans, { ...plan, metadata: rest }, { namespace: NAMESPACE });
}

const cattle = async (name: string): Promise<CattlePlan> =>
  await cluster.client.get(cattlePlans, name, { namespace: NAMESPACE });

const K3S = 'v1.36.3+k3s1';
const NEXT_K3S = 'v1.36.4+k3s1';
const installer = { upgrade: { image: 'registry.example.com/rancher/k3s-upgrade' } };

test('the version is written into all Plans that install K3s, and into no others', async () => {
  await cluster.putNode('w1', K3S);
  await putCattle('servers', { ...installer, version: K3S });
  await putCattle('agents', { ...installer, version: K3S });
  await putCattle('kernel', { version: '6.1' });
  const { said, error } = await cluster.upgrading(NEXT_K3S);
  expect(error).toBe('');
  expect(said).toContain(`Plan system-upgrade/servers changes from ${K3S} to ${NEXT_K3S}.`);
  expect(said).toContain(
    `kubectl --kubeconfig ${cluster.kubeconfig} patch plans.upgrade.cattle.io servers -n system-upgrade`,
  );
  const names = ['servers', 'agents', 'kernel'];
  const versions = await Promise.all(names.map(async (name) => (await cattle(name)).spec?.version));
  expect(versions).toEqual([NEXT_K3S, NEXT_K3S, '6.1']);
  expect((await cluster.upgrading(NEXT_K3S)).error).toContain('so nothing is left to write');
});

test('the Plan of the servers is written before that of the agents', async () => {
  await cluster.putNode('s1', K3S, { 'node-role.kubernetes.io/control-plane': 'true' });
  await cluster.putNode('a1', K3S);
  const key = 'node-role.kubernetes.io/control-plane';
  const of = (operator: 'Exists' | 'DoesNotExist') => ({ matchExpressions: [{ key, operator }] });
  await putCattle('agents', { ...installer, version: K3S, nodeSelector: of('DoesNotExist') });
  await putCattle('servers', { ...installer, version: K3S, nodeSelector: of('Exists') });
  const { said } = await cluster.upgrading('1.36.4+k3s1', { output: 'yaml' });
  expect(said.indexOf('name: servers')).toBeLessThan(said.indexOf('name: agents'));
  expect(said).toContain(`version: ${NEXT_K3S}`);
});

test('a Plan whose selector finds no server is not given a version, because it would end at once', async () => {
  await cluster.putNode('s1', K3S, { 'node-role.kubernetes.io/control-plane': 'true' });
  const key = 'node-role.kubernetes.io/master';
  const old = (operator: 'In' | 'NotIn') => ({
    matchExpressions: [{ key, operator, values: ['true'] }],
  });
  await putCattle('servers', { ...installer, version: K3S, nodeSelector: old('In') });
  await putCattle('agents', { ...installer, version: K3S, nodeSelector: old('NotIn') });
  const { error } = await cluster.upgrading(NEXT_K3S);
  expect(error).toContain('Plan system-upgrade/servers: the plan lists or selects no target');
  expect((await cattle('agents')).spec?.version).toBe(K3S);
});

test('a Plan with the image of a mirror installs K3s, too, if its version says so', async () => {
  await cluster.putNode('w1', K3S);
  await putCattle('servers', { upgrade: { image: 'registry.local/mirror' }, version: K3S });
  expect((await cluster.upgrading(NEXT_K3S)).error).toBe('');
  expect((await cattle('servers')).spec?.version).toBe(NEXT_K3S);
});

test.each<[string, string, string]>([
  ['an older version', 'v1.36.1+k3s1', 'to go back to an earlier version, use refit rollback'],
  ['a server that runs etcd alone', NEXT_K3S, 'e1 runs etcd alone'],
])('%s is refused for K3s, and no Plan is written', async (title, version, message) => {
  await cluster.putNode('e1', K3S, { 'node-role.kubernetes.io/etcd': 'true' });
  if (title === 'an older version') await putCattle('servers', { ...installer, version: K3S });
  expect((await cluster.upgrading(version)).error).toContain(message);
});

test('a Plan is named with --plan, and the others keep their versions', async () => {
  await cluster.putNode('w1', K3S);
  await putCattle('servers', { ...installer, version: K3S });
  await putCattle('agents', { ...installer, version: K3S });
  expect((await cluster.upgrading(NEXT_K3S, { plan: 'plan/agents' })).error).toBe('');
  expect((await cattle('agents')).spec?.version).toBe(NEXT_K3S);
  expect((await cattle('servers')).spec?.version).toBe(K3S);
});

test.each<[string, Parameters<typeof buildCattlePlan>[1], string, string]>([
  [
    'a channel',
    { ...installer, version: '', channel: 'https://channels.example.com/stable' },
    NEXT_K3S,
    'follows the channel',
  ],
  [
    'a tag in its image',
    { version: K3S, upgrade: { image: `rancher/k3s-upgrade:v1.36.3-k3s1` } },
    NEXT_K3S,
    'names its version itself',
  ],
  [
    'K3s, and a version without a build',
    { ...installer, version: K3S },
    'v1.36.4',
    'write for example refit upgrade v1.36.4+k3s1',
  ],
])(
  'a Plan with %s is not changed, and the error says why',
  async (_title, spec, version, message) => {
    await cluster.putNode('w1', K3S);
    await putCattle('servers', spec);
    expect((await cluster.upgrading(version)).error).toContain(message);
    expect((await cattle('servers')).spec?.version).toBe(spec?.version);
  },
);

test('without a Plan for K3s, one for the servers and one for the agents are created', async () => {
  await cluster.putNode('s1', K3S, { 'node-role.kubernetes.io/control-plane': 'true' });
  await cluster.putNode('a1', K3S);
  const { said, error } = await cluster.upgrading(NEXT_K3S);
  expect(error).toBe('');
  expect(said).toContain('Plan system-upgrade/server-plan is created');
  expect((await cattle('server-plan')).spec?.nodeSelector?.matchExpressions?.[0]?.operator).toBe(
    'In',
  );
  const { spec } = await cattle('agent-plan');
  expect([spec?.version, spec?.prepare?.args]).toEqual([NEXT_K3S, ['prepare', 'server-plan']]);
});

test('a blocker of refit ready stops the upgrade, unless it is accepted with a reason', async () => {
  // The kubelet of this version no longer has the flag.
  const next = 'v1.37.0+k3s1';
  const removed = { 'k3s.io/node-args': JSON.stringify(['agent', '--kubelet-arg=containerd=/x']) };
  await cluster.putNode('w1', K3S, {}, removed);
  await putCattle('servers', { ...installer, version: K3S });
  const { error } = await cluster.upgrading(next, { ready: true });
  expect(error).toContain('to start all the same, pass --accept settings=REASON');
  expect((await cattle('servers')).spec?.version).toBe(K3S);
  const accept = ['settings=the flag goes next week'];
  expect((await cluster.upgrading(next, { ready: true, accept })).error).toBe('');
  expect((await cattle('servers')).spec?.version).toBe(next);
});
