/**
 * Tests the conformance of nodes: which fields get defaults, are dropped or are refused, and who may change which
 * field.
 */
import {
  del,
  get,
  jsonPatch,
  merge,
  post,
  put,
  type RequestStep,
  type Step,
  strategic,
} from './harness/case.ts';
import { NODES, node } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const N = `${NODES}/$id`;
const READY = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'up' };
/**
 * Creates a node, and compares the answer to the creation. Later reads of the node would race with the controllers of
 * the cluster.
 */
const made = (spec: object, status: object = {}): RequestStep[] => [
  post(NODES, node({}, { spec, status })),
];
const changed = (...steps: Step[]): Step[] => [post(NODES, node()), ...steps];

const testCase = conformance('nodes');

testCase('a new node is complete with zero values', made({}));
testCase(
  'false, empty texts and empty lists are left out',
  made({ unschedulable: false, providerID: '', taints: [] }),
);
testCase('an unschedulable node', made({ unschedulable: true }));
testCase(
  'a status may be given to a new node',
  made({}, { nodeInfo: { kubeletVersion: 'v1.36.3' } }),
);
testCase(
  'capacity is also what can be allocated, until somebody says otherwise',
  made({}, { capacity: { cpu: '4', memory: '8Gi' } }),
);
testCase(
  'times of conditions are null where they are not given',
  made({}, { conditions: [READY, { ...READY, lastHeartbeatTime: '2020-01-01T02:00:00+02:00' }] }),
);
testCase('the first podCIDR is the podCIDR', made({ podCIDR: '10.1.0.0/24' }));
testCase('a namespace in the metadata of a node is ignored', [
  post(NODES, node({ namespace: 'x' })),
]);
testCase(
  'the wrong types',
  [
    { unschedulable: 'yes' },
    { taints: 'many' },
    { taints: [{ key: 5 }] },
    { podCIDRs: [5] },
    { unschedulable: 0 },
    { taints: [[]] },
  ].flatMap((spec) => made(spec)),
);
testCase('a spec that is none', [
  post(NODES, node({}, { spec: 'x' })),
  post(NODES, node({}, { spec: [] })),
]);
testCase(
  'times that are none',
  [
    ...made({}, { conditions: [{ ...READY, lastHeartbeatTime: 'noon' }] }),
    ...made({}, { conditions: [{ ...READY, lastHeartbeatTime: 5 }] }),
  ].map((step) => ({ ...step, anyMessage: true })),
);
testCase('a quantity that is none', made({}, { capacity: { cpu: 'lots' } }));
testCase(
  'taints must be well formed',
  [
    [{ key: 'a', effect: 'NoWay' }],
    [{ key: 'a' }],
    [{ key: 'not valid', effect: 'NoExecute' }],
    [{ key: 'a', value: 'not valid', effect: 'NoExecute' }],
    [
      { key: 'a', effect: 'NoExecute' },
      { key: 'a', effect: 'NoExecute' },
    ],
  ].flatMap((taints) => made({ taints })),
);
testCase('finalizers of core objects are standard or qualified', [
  post(NODES, node({ finalizers: ['odd'] })),
]);
testCase('cordon', changed(merge(N, { spec: { unschedulable: true } })));
testCase(
  'cordon by strategic merge patch',
  changed(strategic(N, { spec: { unschedulable: true } })),
);
testCase('uncordon leaves no trace', [
  post(NODES, node({}, { spec: { unschedulable: true } })),
  merge(N, { spec: { unschedulable: false } }),
]);
testCase('uncordon by null', [
  post(NODES, node({}, { spec: { unschedulable: true } })),
  strategic(N, { spec: { unschedulable: null } }),
]);
testCase(
  'annotations come and go',
  changed(
    merge(N, { metadata: { annotations: { 'example.com/a': '{"x":1}', 'example.com/b': 'c' } } }),
    merge(N, { metadata: { annotations: { 'example.com/a': null } } }),
  ),
);
testCase(
  'a status in a patch of the node is ignored',
  changed(merge(N, { status: { phase: 'Running' } })),
);
testCase('a node that is replaced keeps its status, whatever of it is sent or left out', [
  post(
    NODES,
    node(
      {},
      {
        status: { images: [{ names: ['a:1'], sizeBytes: 1 }], nodeInfo: { kubeletVersion: 'v1' } },
      },
    ),
  ),
  put(
    N,
    node(
      { annotations: { 'example.com/a': 'b' } },
      { status: { nodeInfo: { kubeletVersion: 'v2' } } },
    ),
  ),
  put(N, node({ annotations: { 'example.com/a': 'c' } })),
]);
testCase(
  'a spec in a patch of the status is ignored, labels are not',
  changed(
    merge(`${N}/status`, {
      spec: { unschedulable: true },
      metadata: { labels: { a: 'b' } },
      status: { conditions: [READY] },
    }),
  ),
);
testCase(
  'conditions merge by type in a strategic merge patch, and not in a merge patch',
  changed(
    strategic(`${N}/status`, { status: { conditions: [READY] } }),
    strategic(`${N}/status`, {
      status: { conditions: [{ type: 'ForeignWork', status: 'False' }] },
    }),
    strategic(`${N}/status`, { status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
    merge(`${N}/status`, { status: { conditions: [READY] } }),
  ),
);
testCase(
  'taints are replaced as a whole',
  changed(
    strategic(N, { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } }),
    strategic(N, { spec: { taints: [{ key: 'b', effect: 'NoExecute' }] } }),
  ),
);
testCase(
  'the podCIDR can be set once',
  changed(
    merge(N, { spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] } }),
    merge(N, { spec: { podCIDR: '10.2.0.0/24', podCIDRs: ['10.2.0.0/24'] } }),
  ),
);
testCase(
  'a PUT without a resourceVersion overwrites',
  changed(put(N, node({ labels: { fresh: 'yes' } })), put(N, node({ resourceVersion: '1' }))),
);
testCase('a PUT creates no node', [put(N, node())]);
testCase('a JSON patch of annotations needs the map to be there', [
  post(NODES, node({ annotations: { first: 'a' } })),
  jsonPatch(N, [{ op: 'add', path: '/metadata/annotations/example.com~1second', value: 'b' }]),
  jsonPatch(N, [{ op: 'test', path: '/metadata/annotations/first', value: 'z' }]),
]);
testCase('a node is deleted', changed(del(N), get(N)));
testCase('a finalizer holds a node', [
  post(NODES, node({ finalizers: ['example.com/f'] })),
  del(N),
]);
