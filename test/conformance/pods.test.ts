/** Conformance of pods: what is defaulted, what stays as it was made, and how they are found by node. */
import { type Case, get, merge, post, put } from './harness/case.ts';
import { PODS } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const P = `${PODS}/p`;
const CONTAINER = { name: 'main', image: 'example.com/main:1' };

const pod = (spec: object = {}, metadata: object = {}): object => ({
  metadata: { name: 'p', ...metadata },
  spec: { schedulerName: 'nobody', automountServiceAccountToken: false, containers: [CONTAINER], ...spec },
});

const making = (name: string, spec: object): Case => ({ name, steps: [post(PODS, pod(spec))] });
const withResources = (resources: object): object => ({ containers: [{ ...CONTAINER, resources }] });

const cases: readonly Case[] = [
  making('defaults are set', {}),
  making('what is given wins over defaults', {
    restartPolicy: 'Never',
    dnsPolicy: 'Default',
    terminationGracePeriodSeconds: 5,
    enableServiceLinks: false,
    hostNetwork: true,
    nodeSelector: { a: 'b' },
  }),
  ...['example.com/main', 'example.com/main:latest', 'example.com:5000/main', 'example.com/main:v2'].map((image) =>
    making(`when ${image} is pulled`, { containers: [{ name: 'main', image }] }),
  ),
  making('init containers get the same defaults', { initContainers: [{ name: 'first', image: 'example.com/first' }] }),
  making('own tolerations come first', {
    tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' }, { key: 'own' }],
  }),
  making('requests make a pod burstable', withResources({ requests: { cpu: '100m' } })),
  making('limits are requests too, and make a pod guaranteed', withResources({ limits: { cpu: '1', memory: '1Gi' } })),
  making('limits of one resource only', withResources({ limits: { cpu: '1' }, requests: { memory: '1Gi' } })),
  making('unknown members of spec and containers are dropped', {
    color: 'red',
    containers: [{ ...CONTAINER, color: 'red' }],
  }),
  {
    name: 'the spec stays, but for images and the like',
    steps: [
      post(PODS, pod()),
      merge(P, { spec: { nodeName: 'elsewhere' } }, { anyMessage: true }),
      merge(P, { spec: { restartPolicy: 'Never' } }, { anyMessage: true }),
      merge(P, { spec: { containers: [{ ...CONTAINER, args: ['x'] }] } }, { anyMessage: true }),
      merge(P, { spec: { activeDeadlineSeconds: 60 } }),
      merge(P, { metadata: { labels: { a: 'b' } } }),
    ],
  },
  {
    name: 'the generation counts changes of the spec',
    steps: [
      post(PODS, pod()),
      merge(P, { spec: { activeDeadlineSeconds: 60 } }),
      merge(P, { metadata: { labels: { a: 'b' } } }),
    ],
  },
  {
    name: 'the status changes through its subresource only',
    steps: [
      post(PODS, { ...pod(), status: { phase: 'Running' } }),
      merge(P, { status: { phase: 'Running' } }),
      merge(`${P}/status`, { status: { phase: 'Running', reason: 'Started' } }),
      merge(`${P}/status`, { spec: { nodeName: 'elsewhere' }, metadata: { labels: { a: 'b' } } }),
    ],
  },
  {
    name: 'a PUT without a resourceVersion overwrites',
    steps: [
      post(PODS, pod(), { as: 'made' }),
      put(P, { metadata: { name: 'p', labels: { a: 'b' } }, spec: '{made.spec}' }),
    ],
  },
  {
    name: 'pods are found by node and phase',
    steps: [
      post(PODS, pod({ nodeName: '$id-none' })),
      post(PODS, pod({}, { name: 'q' })),
      ...['spec.nodeName=$id-none', 'spec.nodeName=', 'status.phase=Pending', 'status.phase!=Pending'].map((selector) =>
        get(`${PODS}?fieldSelector=${selector.replace('!=', '!%3D').replace('=', '%3D')}`),
      ),
      get('/api/v1/pods?fieldSelector=spec.nodeName%3D$id-none'),
    ],
  },
];

conformance('pods', cases);
