/** Tests whether a pod of a drained node fits elsewhere. test/testenv/ready-room.test.ts compares this with the real scheduler. */
import { expect, test } from 'vitest';
import {
  namespaceObject,
  placedPod,
  readyContext,
  readyNode,
} from '../../../test/support/ready/world.ts';
import { checkRoom } from '../checks/room.ts';

const HOST = 'kubernetes.io/hostname';
const own = { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: HOST };
const antiAffinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [own] } };
const spread = [{ ...own, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }];
const cpu = (text: string): object => ({
  containers: [{ name: 'c', resources: { requests: { cpu: text } } }],
});
const volume = (claimName: string): object => ({
  volumes: [{ name: 'x', persistentVolumeClaim: { claimName } }],
});
const claim = (name: string, volumeName?: string): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'app' },
  spec: { volumeName },
});
const localVolume = (name: string, node: string): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: 'In', values: [node] }] }],
      },
    },
  },
});
const ask = async (...objects: object[]) =>
  await checkRoom(readyContext({ objects: [namespaceObject('app'), ...objects] }));
const two = [readyNode('w1'), readyNode('w2')];

test('pods that fit on another node are ok', async () => {
  expect(await ask(...two, placedPod('web-1', 'w1'), placedPod('web-2', 'w2'))).toEqual([
    { state: 'ok', message: 'each of the 2 pods that drains would evict fits on another node' },
  ]);
});

const tainted = readyNode('w2', { spec: { taints: [{ key: 'dedicated', effect: 'NoSchedule' }] } });
test.each<[string, readonly object[], string]>([
  [
    'the other node has too little CPU',
    [...two, placedPod('web-1', 'w1', cpu('3')), placedPod('db-1', 'w2', cpu('2'))],
    '1 node with too little cpu',
  ],
  [
    'the other node has a taint',
    [readyNode('w1'), tainted, placedPod('web-1', 'w1')],
    '1 node with the taint dedicated',
  ],
  [
    'the pod wants another label',
    [...two, placedPod('web-1', 'w1', { nodeSelector: { disk: 'ssd' } })],
    '1 node with other labels than the pod requires',
  ],
  [
    'the other node has a pod that must be elsewhere',
    [...two, placedPod('web-1', 'w1', { affinity: antiAffinity }), placedPod('web-2', 'w2')],
    '1 node with a pod to which it has a required anti-affinity',
  ],
  [
    'it must be spread over the hosts',
    [
      ...two,
      placedPod('web-1', 'w1', { topologySpreadConstraints: spread }),
      placedPod('web-2', 'w2'),
    ],
    '1 node with too many pods of its kind for its spread by kubernetes.io/hostname',
  ],
  [
    'its volume is on its node',
    [
      ...two,
      claim('data', 'pv'),
      localVolume('pv', 'w1'),
      placedPod('web-1', 'w1', volume('data')),
    ],
    '1 node with no access to its volume',
  ],
  [
    'the host port is in use',
    [
      ...two,
      placedPod('web-1', 'w1', { containers: [{ name: 'c', ports: [{ hostPort: 80 }] }] }),
      placedPod('db-1', 'w2', {
        containers: [{ name: 'c', ports: [{ hostPort: 80 }] }],
        nodeSelector: { [HOST]: 'w2' },
      }),
    ],
    '1 node with its host port in use',
  ],
  ['there is no other node', [readyNode('w1'), placedPod('web-1', 'w1')], 'there is no other node'],
])('a pod fits nowhere if %s', async (_title, objects, reason) => {
  const found = await ask(...objects);
  const stuck = found.find(({ object }) => object?.includes('web-1') === true);
  expect(stuck).toMatchObject({
    state: 'warning',
    message: expect.stringContaining(reason) as string,
  });
});

test('a pod that fits only instead of pods of lower priority says so', async () => {
  const objects = [
    ...two,
    placedPod('web-1', 'w1', { ...cpu('3'), priority: 1000 }),
    placedPod('db-1', 'w2', cpu('2')),
  ];
  expect(await ask(...objects)).toContainEqual(
    expect.objectContaining({
      state: 'warning',
      object: 'Pod app/web-1',
      message:
        'while its node is drained, it fits only if the scheduler evicts pods of lower priority elsewhere',
    }),
  );
});

test('pods that fit one by one, but not together, are a warning about their node', async () => {
  const objects = [
    ...two,
    placedPod('web-1', 'w1', cpu('2')),
    placedPod('db-1', 'w1', cpu('2')),
    placedPod('x-1', 'w2', cpu('1')),
  ];
  expect(await ask(...objects)).toContainEqual(
    expect.objectContaining({
      state: 'warning',
      object: 'Node w1',
      message:
        'while it is drained, its 2 pods do not fit on the other nodes together: these have too little cpu',
    }),
  );
});

test.each<[string, object, readonly object[], string]>([
  [
    'ResourceClaims',
    { resourceClaims: [{ name: 'gpu' }] },
    [],
    'it has ResourceClaims of dynamic resource allocation',
  ],
  ['another scheduler', { schedulerName: 'mine' }, [], 'the scheduler mine places it'],
  [
    'a claim without a volume',
    volume('data'),
    [claim('data')],
    'its PersistentVolumeClaim data has no volume that Refit can see',
  ],
])('a pod with %s is unknown', async (_title, spec, more, rule) => {
  expect(await ask(...two, ...more, placedPod('web-1', 'w1', spec))).toContainEqual({
    state: 'unknown',
    object: 'Pod app/web-1',
    message: `whether it fits on another node: ${rule}`,
  });
});

test('pods that the scheduler cannot place already are a warning, and pods that nobody has judged are not', async () => {
  const pending = (name: string, condition: object): object => ({
    ...placedPod(name, ''),
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', ...condition }],
    },
  });
  const waits = pending('web-1', { reason: 'Unschedulable', message: '0/2 nodes are available' });
  const others = [pending('web-2', { reason: 'SchedulingGated' }), pending('web-3', {})];
  expect(await ask(...two, waits, ...others)).toEqual([
    {
      state: 'warning',
      object: 'Pod app/web-1',
      message: 'it waits for a node already: the scheduler finds none where it fits',
      cure: 'read its Events; add room, or uncordon nodes that an earlier upgrade left',
    },
  ]);
});

test('pods of DaemonSets, static pods and bare pods need no room elsewhere', async () => {
  const ofSet = {
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'net', uid: 'net', controller: true },
    ],
  };
  const objects = [
    readyNode('w1'),
    placedPod('net-1', 'w1', {}, ofSet),
    placedPod('static-1', 'w1', {}, { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    placedPod('alone', 'w1', {}, { ownerReferences: [] }),
  ];
  expect(await ask(...objects)).toEqual([
    { state: 'ok', message: 'each of the 0 pods that drains would evict fits on another node' },
  ]);
});

test.each([
  'upgrade.cattle.io/controller',
  'upgrade.refit.dev/hook',
  'refit.upgrade.cattle.io/image-pull',
])(
  'a pod of a Job with the label %s is made for its node, and needs no room elsewhere',
  async (label) => {
    const job = placedPod('job-1', 'w1', cpu('3'), { labels: { [label]: 'x' } });
    expect(await ask(readyNode('w1'), job)).toEqual([
      { state: 'ok', message: 'each of the 0 pods that drains would evict fits on another node' },
    ]);
  },
);

test.each(['Node', 'Pod', 'Namespace', 'PersistentVolume', 'PersistentVolumeClaim'])(
  'the room is unknown if the user may not read %s',
  async (kind) => {
    expect(await checkRoom(readyContext({ forbidden: [kind] }))).toEqual([
      expect.objectContaining({ state: 'unknown' }),
    ]);
  },
);
