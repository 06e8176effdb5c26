/** Tests what `refit ready` says before upgrades that broke for others because of a missing right. */
import { expect, test } from 'vitest';
import { readyContext, readyNode } from '../../test/support/ready/world.ts';
import { clusterApiReadiness } from '../dialects/capi/plan/readiness.ts';
import { rancherReadiness } from '../dialects/cattle/plan/readiness.ts';
import type { AccessQuestion } from './access.ts';
import { answer, unknown } from './asking.ts';
import { checkGround } from './checks/ground.ts';
import type { DialectReadiness } from './context.ts';

const K3S = readyNode('s1', { nodeInfo: { kubeletVersion: 'v1.36.3+k3s1' } });

interface Ground {
  readonly dialect: DialectReadiness;
  readonly objects: readonly object[];
  readonly to?: string;
  /** The accesses that the API server does not allow, such as `delete pods`. */
  readonly refused?: readonly string[];
  /** The user to whom it allows them nevertheless. */
  readonly except?: string;
  /** Why the user may not ask. */
  readonly why?: string;
}

/** Resolves with the findings about rights, and the users that were asked about. */
async function rights({ dialect, objects, to = 'v1.37.0', refused = [], except, why }: Ground) {
  const users = new Set<string>();
  const allows = async (user: string, { verb, resource, subresource }: AccessQuestion) => {
    users.add(user);
    const name = [resource, subresource].filter((part) => part !== undefined).join('/');
    return await Promise.resolve(
      why === undefined
        ? answer(user === except || !refused.includes(`${verb} ${name}`))
        : unknown(why),
    );
  };
  const context = { ...readyContext({ objects, to, dialects: [dialect] }), allows };
  const found = await checkGround(context);
  return {
    found: found.filter(
      ({ object = '', message }) => /^(Plan|User)/.test(object) || /Jobs/.test(message),
    ),
    users: [...users],
  };
}

const plan = (drain?: object, more: object = {}): object => ({
  apiVersion: 'upgrade.cattle.io/v1',
  kind: 'Plan',
  metadata: { name: 'server', namespace: 'system-upgrade' },
  spec: {
    serviceAccountName: 'system-upgrade',
    upgrade: { image: 'rancher/k3s-upgrade' },
    drain,
    ...more,
  },
});

test.each<[string, object, string, string]>([
  ['delete pods', { disableEviction: true, force: true }, 'delete pods', 'delete pods'],
  ['evict pods', { force: true }, 'create pods/eviction', 'create pods/eviction'],
  ['read DaemonSets', {}, 'get daemonsets', 'get daemonsets of apps'],
])('a Plan whose ServiceAccount may not %s is a blocker', async (_title, drain, refused, text) => {
  const asked = await rights({
    dialect: rancherReadiness,
    objects: [K3S, plan(drain)],
    refused: [refused],
  });
  expect(asked).toEqual({
    found: [
      {
        state: 'blocker',
        object: 'Plan system-upgrade/server',
        message: `its Jobs cannot drain nodes: ServiceAccount system-upgrade/system-upgrade may not ${text}`,
        cure: expect.stringContaining('give the ServiceAccount these rights') as string,
      },
    ],
    users: ['system:serviceaccount:system-upgrade:system-upgrade'],
  });
});

test.each<[string, object, readonly string[]]>([
  ['evicts pods, and may not delete them', plan({ force: true }), ['delete pods']],
  ['does not drain', plan(undefined, { cordon: true }), ['create pods/eviction']],
])('a Plan that %s needs no other right', async (_title, object, refused) => {
  const { found } = await rights({ dialect: rancherReadiness, objects: [K3S, object], refused });
  expect(found).toEqual([]);
});

test('a Plan whose image may patch the operating system is a warning', async () => {
  const objects = [K3S, plan({}, { upgrade: { image: 'registry.example.com/patch-os' } })];
  const refused = ['create pods/eviction'];
  expect((await rights({ dialect: rancherReadiness, objects, refused })).found).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Plan system-upgrade/server' }),
  ]);
});

test('a Plan that a leader of Refit drains itself needs no right for its Jobs', async () => {
  const leader = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'leader',
      namespace: 'system-upgrade',
      labels: {
        'app.kubernetes.io/name': 'refit',
        'app.kubernetes.io/component': 'system-upgrade-controller',
      },
    },
    spec: { serviceAccountName: 'leader' },
  };
  const objects = (drain: object) => [K3S, leader, plan(drain)];
  const refused = ['create pods/eviction', 'delete pods'];
  const except = 'system:serviceaccount:system-upgrade:leader';
  const asked = async (drain: object) =>
    await rights({ dialect: rancherReadiness, objects: objects(drain), refused, except });
  expect((await asked({})).found).toEqual([]);
  // Any pod may have the labels of a leader.
  const pretended = await rights({ dialect: rancherReadiness, objects: objects({}), refused });
  expect(pretended.found).toEqual([expect.objectContaining({ state: 'blocker' })]);
  // Only kubectl supports this option, so the Job drains.
  expect((await asked({ disableEviction: true })).found).toEqual([
    expect.objectContaining({ state: 'blocker' }),
  ]);
});

test('rights of Plans that cannot be asked for are unknown, and so are Plans of a K3s cluster that cannot be read', async () => {
  const asked = await rights({
    dialect: rancherReadiness,
    objects: [K3S, plan({})],
    why: 'no right to ask',
  });
  expect(asked.found).toEqual([
    {
      state: 'unknown',
      object: 'Plan system-upgrade/server',
      message: 'whether its Jobs may drain nodes: no right to ask',
    },
  ]);
  const unread = async (...objects: object[]) => {
    const context = readyContext({ objects, forbidden: ['Plan'], dialects: [rancherReadiness] });
    return (await checkGround(context)).filter(({ message }) => message.includes('Jobs'));
  };
  expect(await unread(K3S)).toEqual([
    { state: 'unknown', message: 'whether Jobs may drain nodes: you may not read plans' },
  ]);
  expect(await unread(readyNode('w1'))).toEqual([]);
});

test('Plans of the system-upgrade-controller in a cluster of another product are left alone', async () => {
  const { found } = await rights({
    dialect: rancherReadiness,
    objects: [readyNode('w1'), plan({})],
    refused: ['create pods/eviction'],
  });
  expect(found).toEqual([]);
});

const machine = (owner: string): object => {
  const node = readyNode('cp1') as { metadata: object };
  const annotations = { 'cluster.x-k8s.io/owner-kind': owner };
  return { ...node, metadata: { ...node.metadata, annotations } };
};
const kubelets = async (to: string, owner: string, more: Partial<Ground> = {}) =>
  await rights({
    dialect: clusterApiReadiness,
    objects: [machine(owner)],
    to,
    refused: ['get nodes/proxy'],
    ...more,
  });

test.each(['v1.33.12', 'v1.34.8', 'v1.35.5', 'v1.36.1', 'v1.37.0'])(
  'before a control plane of Cluster API goes to %s, its API servers need a right for kubelets',
  async (to) => {
    expect(await kubelets(to, 'KubeadmControlPlane')).toEqual({
      found: [
        {
          state: 'warning',
          object: 'User kube-apiserver-kubelet-client',
          message: expect.stringContaining('which may not get nodes/proxy') as string,
          cure: expect.stringContaining('the ClusterRole system:kubelet-api-admin') as string,
        },
      ],
      users: ['kube-apiserver-kubelet-client'],
    });
    expect((await kubelets(to, 'KubeadmControlPlane', { refused: [] })).found).toEqual([]);
    expect((await kubelets(to, 'KubeadmControlPlane', { why: 'no right' })).found).toEqual([
      expect.objectContaining({ state: 'unknown' }),
    ]);
  },
);

test.each([
  ['v1.35.4', 'KubeadmControlPlane'],
  ['v1.32.20', 'KubeadmControlPlane'],
  ['v1.35.5', 'K0sControlPlane'],
])(
  'no right for kubelets is asked for before %s, with a control plane of the kind %s',
  async (to, owner) => {
    expect(await kubelets(to, owner)).toEqual({ found: [], users: [] });
  },
);
