/** Tests the conformance of label selectors and field selectors in lists. */
import { whyNotSince } from '../testenv/since.ts';
import { get, post, type Step } from './harness/case.ts';
import {
  ANYTHING,
  LEASES,
  lease,
  NODES,
  PODS,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const LABELS: Readonly<Record<string, object>> = {
  a: { tier: 'web', size: '3' },
  b: { tier: 'db', size: '10', old: '' },
  c: { tier: 'web', 'example.com/zone': 'z1' },
  d: {},
};

const made = Object.entries(LABELS).map(([name, labels]) =>
  post(LEASES, lease(name, {}, { labels })),
);

const query = (name: string, selector: string): string =>
  `${name}=${encodeURIComponent(selector).replaceAll('%24', '$')}`;
const byLabel = (selector: string): Step[] => [
  ...made,
  get(`${LEASES}?${query('labelSelector', selector)}`),
];
/** Both servers have the same grammar, but different messages for a refusal. */
const badLabel = (selector: string): Step[] => [
  get(`${LEASES}?${query('labelSelector', selector)}`, { anyMessage: true }),
];
const byField = (path: string, selector: string): Step[] => [
  ...made.slice(0, 2),
  get(`${path}?${query('fieldSelector', selector)}`),
];
const EVENTS = '/api/v1/namespaces/$ns/events';

const spec = {
  ...ANYTHING,
  properties: { color: { type: 'string' }, count: { type: 'integer' }, on: { type: 'boolean' } },
};
const selectableFields = ['.spec.color', '.spec.count', '.spec.on'].map((jsonPath) => ({
  jsonPath,
}));

const testCase = conformance('selectors', [
  widgetFixture(widgetDefinition(spec, { version: { selectableFields } })),
]);

testCase('by label: tier', byLabel('tier'));
testCase('by label: !tier', byLabel('!tier'));
testCase('by label: tier=web', byLabel('tier=web'));
testCase('by label: tier==web', byLabel('tier==web'));
testCase('by label: tier!=web', byLabel('tier!=web'));
testCase('by label: tier in (web,db)', byLabel('tier in (web,db)'));
testCase('by label: tier notin (web)', byLabel('tier notin (web)'));
testCase('by label: size>5', byLabel('size>5'));
testCase('by label: size<5', byLabel('size<5'));
testCase('by label: tier=web,size=3', byLabel('tier=web,size=3'));
testCase('by label: tier, !old', byLabel('tier, !old'));
testCase('by label: old=', byLabel('old='));
testCase('by label: old', byLabel('old'));
testCase('by label: example.com/zone=z1', byLabel('example.com/zone=z1'));
testCase('by label: tier in (web, )', byLabel('tier in (web, )'));
testCase('by label:  tier = web ', byLabel(' tier = web '));
testCase('by label: tier=nothing', byLabel('tier=nothing'));
testCase('by label: nothing', byLabel(''));
testCase('refused: tier===web', badLabel('tier===web'));
testCase('refused: tier in web', badLabel('tier in web'));
testCase('refused: tier in (web', badLabel('tier in (web'));
testCase('refused: tier=web,', badLabel('tier=web,'));
testCase('refused: !', badLabel('!'));
testCase('refused: =web', badLabel('=web'));
testCase('refused: tier web', badLabel('tier web'));
testCase('refused: tier=not valid', badLabel('tier=not valid'));
testCase(
  'label selectors with keys and values that no label can have',
  ['-tier=web', 'a/b/c=d', 'tier=-x', 'size>big'].map((selector) =>
    get(`${LEASES}?labelSelector=${encodeURIComponent(selector)}`),
  ),
);
testCase('leases by field: metadata.name=a', byField(LEASES, 'metadata.name=a'));
testCase('leases by field: metadata.name!=a', byField(LEASES, 'metadata.name!=a'));
testCase('leases by field: metadata.namespace=$ns', byField(LEASES, 'metadata.namespace=$ns'));
testCase(
  'leases by field: metadata.name=a,metadata.namespace=x',
  byField(LEASES, 'metadata.name=a,metadata.namespace=x'),
);
testCase('leases by field: spec.holderIdentity=x', byField(LEASES, 'spec.holderIdentity=x'));
testCase('leases by field: metadata.labels=x', byField(LEASES, 'metadata.labels=x'));
testCase('leases by field: nonsense', byField(LEASES, 'nonsense'));
testCase('pods by field: spec.nodeName=n', byField(PODS, 'spec.nodeName=n'));
testCase('pods by field: status.phase=Running', byField(PODS, 'status.phase=Running'));
testCase('pods by field: spec.restartPolicy=Always', byField(PODS, 'spec.restartPolicy=Always'));
testCase('pods by field: spec.hostname=x', byField(PODS, 'spec.hostname=x'));
testCase('events by field: involvedObject.name=n', byField(EVENTS, 'involvedObject.name=n'));
testCase('events by field: reason=Because', byField(EVENTS, 'reason=Because'));
testCase('events by field: source=kubelet', byField(EVENTS, 'source=kubelet'));
testCase('events by field: message=x', byField(EVENTS, 'message=x'));
testCase(
  'nodes by field: spec.unschedulable=true,metadata.name=$id',
  byField(NODES, 'spec.unschedulable=true,metadata.name=$id'),
);
testCase('nodes by field: spec.podCIDR=x', byField(NODES, 'spec.podCIDR=x'));
testCase('nodes by field: metadata.namespace=x', byField(NODES, 'metadata.namespace=x'));
testCase('a field selector that does not parse', [
  get(`${LEASES}?fieldSelector=metadata.name%3Da%3Db`, { anyMessage: true }),
]);
testCase(
  'field selectors of custom objects',
  [
    post(WIDGETS, widget('a', { color: 'red', count: 3, on: true })),
    post(WIDGETS, widget('b', { color: 'blue' })),
    get(`${WIDGETS}?fieldSelector=metadata.name%3Da`),
    get(`${WIDGETS}?fieldSelector=spec.color%3Dred`),
    get(`${WIDGETS}?fieldSelector=spec.color!%3Dred`),
    get(`${WIDGETS}?fieldSelector=spec.count%3D3`),
    get(`${WIDGETS}?fieldSelector=spec.on%3Dtrue`),
    get(`${WIDGETS}?fieldSelector=spec.count%3D`),
    get(`${WIDGETS}?fieldSelector=spec.shape%3Dround`),
    get(`${WIDGETS}?fieldSelector=spec.color%3Dred&labelSelector=x`),
  ],
  whyNotSince(31, 'has such selectors'),
);
testCase('selectors of a list over all namespaces', [
  post(LEASES, lease('a', {}, { labels: { case: '$id' } })),
  get('/apis/coordination.k8s.io/v1/leases?labelSelector=case%3D$id'),
  get('/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.namespace%3D$ns'),
]);
