/** Proves which procedure a Machine gets, and that its signal reaches only an agent that supports it. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { type Machine, machines } from '../../../api/capi/machine.ts';
import { nodes } from '../../../kube/resources.ts';
import { encodePresence, type Procedure } from '../../../signal/agent-presence.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { AGENT_ANNOTATION } from '../../../signal/names.ts';
import { procedureFor, refusalByProcedure } from './procedures.ts';

const KUBEADM = { bootstrap: { configRef: { kind: 'KubeadmConfig' } } };
const OWNED = [{ apiVersion: 'x', kind: 'KubeadmControlPlane', name: 'cp', uid: 'u' }];

function machine(spec: Machine['spec'], ownerReferences: typeof OWNED = []): Machine {
  return { metadata: { name: 'm', ownerReferences }, ...(spec && { spec }) };
}

function presenceFor(agent: Procedure): string {
  const presence = { version: '1', since: '2026-11-22T08:00:00Z' };
  return encodePresence(agent === 'kubeadm' ? { ...presence, procedure: agent } : presence);
}

test.each<readonly [string, Machine, string, string, Procedure | undefined]>([
  ['a KubeadmConfig', machine(KUBEADM), 'v1.36.3', 'v1.36.2', 'kubeadm'],
  ['one of a KubeadmControlPlane', machine({}, OWNED), 'v1.36.3', 'v1.36.2', 'kubeadm'],
  ['a version of k0s', machine(KUBEADM), 'v1.36.3+k0s.0', 'v1.36.2', 'k0s'],
  ['a kubelet of k0s', machine(KUBEADM), 'v1.36.3', 'v1.36.2+k0s', 'k0s'],
  [
    'another bootstrap provider',
    machine({ bootstrap: { configRef: { kind: 'K0sConfig' } } }),
    'v1.36.3',
    'v1',
    'k0s',
  ],
  ...['RKE2Config', 'KThreesConfig', 'TalosConfig', 'MicroK8sConfig'].map(
    (kind) =>
      [
        `a ${kind}, which is not known`,
        machine({ bootstrap: { configRef: { kind } } }),
        'v1.36.3',
        'v1.36.2',
        undefined,
      ] as const,
  ),
  [
    'an unknown provider, and a version of k0s',
    machine({ bootstrap: { configRef: { kind: 'OtherConfig' } } }),
    'v1.36.3+k0s.0',
    'v1.36.2',
    'k0s',
  ],
  ['the dash of an image tag', machine(undefined), 'v1.36.3-k0s.0', 'v1.36.2', 'k0s'],
  ['nothing but a kubelet of k0s', machine(undefined), 'v1.36.3', 'v1.36.2+k0s', 'k0s'],
  ['nothing known', machine(undefined), 'v1.36.3', 'v1.36.2', undefined],
  ['no config, of k3s', machine({}), 'v1.36.3+k3s1', 'v1.36.2+k3s1', undefined],
])('%s', (_name, of, version, kubeletVersion, expected) => {
  const node = { ...buildNode('w1'), status: { nodeInfo: { kubeletVersion } } };
  expect(procedureFor(of, version, node)).toBe(expected);
  if (expected === undefined)
    expect(refusalByProcedure(of, version, node)).toContain(
      'only Machines with a KubeadmConfig or a config of k0s are updated',
    );
});

test.each<[string, Record<string, string>, Procedure | undefined]>([
  ['an agent for k0s', { [AGENT_ANNOTATION]: presenceFor('k0s') }, 'k0s'],
  ['an agent for kubeadm', { [AGENT_ANNOTATION]: presenceFor('kubeadm') }, 'kubeadm'],
  [
    'what kubeadm writes on its Nodes',
    { 'kubeadm.alpha.kubernetes.io/cri-socket': 'unix:///run/containerd/containerd.sock' },
    'kubeadm',
  ],
  ['nothing', {}, undefined],
])('a Machine without bootstrap config, whose Node has %s', (_name, annotations, expected) => {
  const node = buildNode('w1', { annotations });
  expect(procedureFor(machine({}), 'v1.36.3', node)).toBe(expected);
});

test('an agent proves nothing about a Machine of an unknown provider', () => {
  const node = buildNode('w1', { annotations: { [AGENT_ANNOTATION]: presenceFor('k0s') } });
  const rke2 = machine({ bootstrap: { configRef: { kind: 'RKE2Config' } } });
  expect(procedureFor(rke2, 'v1.36.3', node)).toBeUndefined();
});

test('a version of k0s with the dash of an image tag: the answer says the right form', async () => {
  const scene = new MachineScene(['w1']);
  scene.want('w1', 'v1.35.1-k0s.0');
  const message =
    'spec.version of Machine m-w1: v1.35.1-k0s.0 is not a version that a node can report; use v1.35.1+k0s.0';
  expect(await scene.ask('w1', 'v1.35.1-k0s.0')).toMatchObject({ status: 'Failure', message });
});

test('a Machine about which nothing is known is not updated', async () => {
  const scene = new MachineScene(['w1']);
  scene.api.change(machines, 'm-w1', (each) => ({
    ...each,
    spec: { ...each.spec, bootstrap: {} },
  }));
  const message =
    'Machine m-w1 has no spec.bootstrap.configRef, and its Node does not show whether k0s or kubeadm runs there: only Machines with a KubeadmConfig or a config of k0s are updated';
  expect(await scene.ask('w1')).toMatchObject({ status: 'Failure', message });
});

function sceneWith(agent: Procedure): MachineScene {
  const scene = new MachineScene(['w1']);
  scene.api.change(machines, 'm-w1', (each) => ({ ...each, spec: { ...each.spec, ...KUBEADM } }));
  scene.api.change(nodes, 'w1', (node) => ({
    ...node,
    metadata: {
      ...node.metadata,
      annotations: { ...node.metadata.annotations, [AGENT_ANNOTATION]: presenceFor(agent) },
    },
  }));
  return scene;
}

test('an agent for kubeadm gets a command of its own', async () => {
  const scene = sceneWith('kubeadm');
  expect((await scene.ask('w1')).status).toBe('Success');
  await scene.lead('w1');
  await scene.lead('w1');
  const { command } = decodeSignal(scene.node('w1').metadata.annotations) ?? {};
  expect(command).toMatchObject({
    kind: 'kubeadmupdate',
    version: 'v1.35.1',
    sha256: 'ab'.repeat(32),
  });
});

test('an agent for k0s gets nothing, and the answer says what the node needs', async () => {
  const scene = sceneWith('k0s');
  const message = 'the agent on node w1 is for k0s: its Machine needs one with --procedure kubeadm';
  expect(await scene.ask('w1')).toMatchObject({ status: 'Failure', message });
  expect(
    Object.keys(scene.node('w1').metadata.annotations ?? {}).filter((key) =>
      key.includes('machine-update'),
    ),
  ).toEqual([]);
});
