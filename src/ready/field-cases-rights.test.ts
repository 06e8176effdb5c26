/** Tests what `refit ready` says before upgrades that broke for others because of a missing right. */
import { expect, test } from 'vitest';
import { readyContext, readyNode } from '../../test/support/ready/world.ts';
import { clusterApiReadiness } from '../dialects/capi/plan/readiness.ts';
import type { AccessQuestion } from './access.ts';
import { answer, unknown } from './asking.ts';
import { checkGround } from './checks/ground.ts';
import type { DialectReadiness } from './context.ts';

interface Ground {
  readonly dialect: DialectReadiness;
  readonly objects: readonly object[];
  readonly to?: string;
  /** The accesses that the API server does not allow, such as `delete pods`. */
  readonly refused?: readonly string[];
  /** Why the user may not ask. */
  readonly why?: string;
}

/** Resolves with the findings about rights, and the users that were asked about. */
async function rights({ dialect, objects, to = 'v1.37.0', refused = [], why }: Ground) {
  const users = new Set<string>();
  const allows = async (user: string, { verb, resource, subresource }: AccessQuestion) => {
    users.add(user);
    const name = [resource, subresource].filter((part) => part !== undefined).join('/');
    return await Promise.resolve(
      why === undefined ? answer(!refused.includes(`${verb} ${name}`)) : unknown(why),
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
