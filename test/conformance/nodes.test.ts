/** Conformance of nodes: what is defaulted, dropped and refused, and who may change what. */
import { type Case, del, get, jsonPatch, merge, post, put, strategic } from './harness/case.ts';
import { NODES, node } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const N = `${NODES}/$id`;
const READY = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'up' };
/** A node in whose making the answer is compared; later reads of it would race with a cluster's controllers. */
const made = (spec: object, status: object = {}): Case['steps'] => [post(NODES, node({}, { spec, status }))];
const changed = (...steps: Case['steps']): Case['steps'] => [post(NODES, node()), ...steps];

const cases: readonly Case[] = [
  { name: 'a new node is complete with zero values', steps: made({}) },
  {
    name: 'false, empty texts and empty lists are left out',
    steps: made({ unschedulable: false, providerID: '', taints: [] }),
  },
  { name: 'an unschedulable node', steps: made({ unschedulable: true }) },
  { name: 'a status may be given to a new node', steps: made({}, { nodeInfo: { kubeletVersion: 'v1.36.3' } }) },
  {
    name: 'capacity is also what can be allocated, until somebody says otherwise',
    steps: made({}, { capacity: { cpu: '4', memory: '8Gi' } }),
  },
  {
    name: 'times of conditions are null where they are not given',
    steps: made({}, { conditions: [READY, { ...READY, lastHeartbeatTime: '2020-01-01T02:00:00+02:00' }] }),
  },
  { name: 'the first podCIDR is the podCIDR', steps: made({ podCIDR: '10.1.0.0/24' }) },
  { name: 'a namespace in the metadata of a node is ignored', steps: [post(NODES, node({ namespace: 'x' }))] },
  {
    name: 'the wrong types',
    steps: [
      { unschedulable: 'yes' },
      { taints: 'many' },
      { taints: [{ key: 5 }] },
      { podCIDRs: [5] },
      { unschedulable: 0 },
      { taints: [[]] },
    ].flatMap((spec) => made(spec)),
  },
  { name: 'a spec that is none', steps: [post(NODES, node({}, { spec: 'x' })), post(NODES, node({}, { spec: [] }))] },
  {
    name: 'times that are none',
    steps: [
      ...made({}, { conditions: [{ ...READY, lastHeartbeatTime: 'noon' }] }),
      ...made({}, { conditions: [{ ...READY, lastHeartbeatTime: 5 }] }),
    ].map((step) => ({ ...step, anyMessage: true })),
  },
  { name: 'a quantity that is none', steps: made({}, { capacity: { cpu: 'lots' } }) },
  {
    name: 'taints must be well formed',
    steps: [
      [{ key: 'a', effect: 'NoWay' }],
      [{ key: 'a' }],
      [{ key: 'not valid', effect: 'NoExecute' }],
      [{ key: 'a', value: 'not valid', effect: 'NoExecute' }],
      [
        { key: 'a', effect: 'NoExecute' },
        { key: 'a', effect: 'NoExecute' },
      ],
    ].flatMap((taints) => made({ taints })),
  },
  { name: 'finalizers of core objects are standard or qualified', steps: [post(NODES, node({ finalizers: ['odd'] }))] },
  { name: 'cordon', steps: changed(merge(N, { spec: { unschedulable: true } })) },
  { name: 'cordon by strategic merge patch', steps: changed(strategic(N, { spec: { unschedulable: true } })) },
  {
    name: 'uncordon leaves no trace',
    steps: [post(NODES, node({}, { spec: { unschedulable: true } })), merge(N, { spec: { unschedulable: false } })],
  },
  {
    name: 'uncordon by null',
    steps: [post(NODES, node({}, { spec: { unschedulable: true } })), strategic(N, { spec: { unschedulable: null } })],
  },
  {
    name: 'annotations come and go',
    steps: changed(
      merge(N, { metadata: { annotations: { 'example.com/a': '{"x":1}', 'example.com/b': 'c' } } }),
      merge(N, { metadata: { annotations: { 'example.com/a': null } } }),
    ),
  },
  { name: 'a status in a patch of the node is ignored', steps: changed(merge(N, { status: { phase: 'Running' } })) },
  {
    name: 'a spec in a patch of the status is ignored, labels are not',
    steps: changed(
      merge(`${N}/status`, {
        spec: { unschedulable: true },
        metadata: { labels: { a: 'b' } },
        status: { conditions: [READY] },
      }),
    ),
  },
  {
    name: 'conditions merge by type in a strategic merge patch, and not in a merge patch',
    steps: changed(
      strategic(`${N}/status`, { status: { conditions: [READY] } }),
      strategic(`${N}/status`, { status: { conditions: [{ type: 'Other', status: 'False' }] } }),
      strategic(`${N}/status`, { status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
      merge(`${N}/status`, { status: { conditions: [READY] } }),
    ),
  },
  {
    name: 'taints are replaced as a whole',
    steps: changed(
      strategic(N, { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }),
      strategic(N, { spec: { taints: [{ key: 'b', effect: 'NoExecute' }] } }),
    ),
  },
  {
    name: 'the podCIDR can be set once',
    steps: changed(
      merge(N, { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] } }),
      merge(N, { spec: { podCIDR: '10.2.0.0/24', podCIDRs: ['10.2.0.0/24'] } }),
    ),
  },
  {
    name: 'a PUT without a resourceVersion overwrites',
    steps: changed(put(N, node({ labels: { fresh: 'yes' } })), put(N, node({ resourceVersion: '1' }))),
  },
  { name: 'a PUT creates no node', steps: [put(N, node())] },
  {
    name: 'a JSON patch of annotations needs the map to be there',
    steps: [
      post(NODES, node({ annotations: { first: 'a' } })),
      jsonPatch(N, [{ op: 'add', path: '/metadata/annotations/example.com~1second', value: 'b' }]),
      jsonPatch(N, [{ op: 'test', path: '/metadata/annotations/first', value: 'z' }]),
    ],
  },
  { name: 'a node is deleted', steps: changed(del(N), get(N)) },
  { name: 'a finalizer holds a node', steps: [post(NODES, node({ finalizers: ['example.com/f'] })), del(N)] },
];

conformance('nodes', cases);
