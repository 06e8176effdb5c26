/**
 * Tests the conformance of pods: which fields get defaults, which fields cannot be changed, and how pods are found by
 * node.
 */
import { whyNotSince } from '../testenv/since.ts';
import { get, merge, post, put, type Step } from './harness/case.ts';
import { PODS } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const P = `${PODS}/p`;
const CONTAINER = { name: 'main', image: 'example.com/main:1' };

const pod = (spec: object = {}, metadata: object = {}): object => ({
  metadata: { name: 'p', ...metadata },
  spec: {
    schedulerName: 'nobody',
    automountServiceAccountToken: false,
    containers: [CONTAINER],
    ...spec,
  },
});

const making = (spec: object): Step[] => [post(PODS, pod(spec))];
const withImage = (image: string): object => ({ containers: [{ name: 'main', image }] });
const withResources = (resources: object): object => ({
  containers: [{ ...CONTAINER, resources }],
});

const testCase = conformance('pods');

testCase('defaults are set', making({}));
testCase(
  'what is given wins over defaults',
  making({
    restartPolicy: 'Never',
    dnsPolicy: 'Default',
    terminationGracePeriodSeconds: 5,
    enableServiceLinks: false,
    hostNetwork: true,
    nodeSelector: { a: 'b' },
  }),
);
testCase('an image without a tag is pulled always', making(withImage('example.com/main')));
testCase('the latest image is pulled always', making(withImage('example.com/main:latest')));
testCase('the port of a registry is no tag', making(withImage('example.com:5000/main')));
testCase('a tagged image is pulled once', making(withImage('example.com/main:v2')));
testCase(
  'init containers get the same defaults',
  making({ initContainers: [{ name: 'first', image: 'example.com/first' }] }),
);
testCase(
  'own tolerations come first',
  making({
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
      { key: 'own' },
    ],
  }),
);
testCase('requests make a pod burstable', making(withResources({ requests: { cpu: '100m' } })));
testCase(
  'limits are requests too, and make a pod guaranteed',
  making(withResources({ limits: { cpu: '1', memory: '1Gi' } })),
);
testCase(
  'limits of one resource only',
  making(withResources({ limits: { cpu: '1' }, requests: { memory: '1Gi' } })),
);
testCase(
  'unknown members of spec and containers are dropped',
  making({
    color: 'red',
    containers: [{ ...CONTAINER, color: 'red' }],
  }),
);
testCase('the spec stays, but for images and the like', [
  post(PODS, pod()),
  merge(P, { spec: { nodeName: 'elsewhere' } }, { anyMessage: true }),
  merge(P, { spec: { restartPolicy: 'Never' } }, { anyMessage: true }),
  merge(P, { spec: { containers: [{ ...CONTAINER, args: ['x'] }] } }, { anyMessage: true }),
  merge(P, { spec: { activeDeadlineSeconds: 60 } }),
  merge(P, { metadata: { labels: { a: 'b' } } }),
]);
testCase(
  'the generation counts changes of the spec',
  [
    post(PODS, pod()),
    merge(P, { spec: { activeDeadlineSeconds: 60 } }),
    merge(P, { metadata: { labels: { a: 'b' } } }),
  ],
  whyNotSince(33, 'counts the generations of pods'),
);
testCase('the status changes through its subresource only', [
  post(PODS, { ...pod(), status: { phase: 'Running' } }),
  merge(P, { status: { phase: 'Running' } }),
  merge(`${P}/status`, { status: { phase: 'Running', reason: 'Started' } }),
  merge(`${P}/status`, { spec: { nodeName: 'elsewhere' }, metadata: { labels: { a: 'b' } } }),
]);
testCase('a PUT without a resourceVersion overwrites', [
  post(PODS, pod(), { as: 'made' }),
  put(P, { metadata: { name: 'p', labels: { a: 'b' } }, spec: '{made.spec}' }),
]);
testCase('pods are found by node and phase', [
  post(PODS, pod({ nodeName: '$id-none' })),
  post(PODS, pod({}, { name: 'q' })),
  ...[
    'spec.nodeName=$id-none',
    'spec.nodeName=',
    'status.phase=Pending',
    'status.phase!=Pending',
  ].map((selector) =>
    get(`${PODS}?fieldSelector=${selector.replace('!=', '!%3D').replace('=', '%3D')}`),
  ),
  get('/api/v1/pods?fieldSelector=spec.nodeName%3D$id-none'),
]);
