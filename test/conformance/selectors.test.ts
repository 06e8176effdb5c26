/** Conformance of label and field selectors in lists. */
import { type Case, get, post } from './harness/case.ts';
import { ANYTHING, LEASES, lease, PODS, WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const LABELS: Readonly<Record<string, object>> = {
  a: { tier: 'web', size: '3' },
  b: { tier: 'db', size: '10', old: '' },
  c: { tier: 'web', 'example.com/zone': 'z1' },
  d: {},
};

const made = Object.entries(LABELS).map(([name, labels]) => post(LEASES, lease(name, {}, { labels })));

const byLabel = (selector: string): Case => ({
  name: `label selector ${selector}`,
  steps: [...made, get(`${LEASES}?labelSelector=${encodeURIComponent(selector)}`)],
});

const badLabel = (selector: string): Case => ({
  name: `label selector ${selector} is refused`,
  steps: [get(`${LEASES}?labelSelector=${encodeURIComponent(selector)}`, { anyMessage: true })],
});

const byField = (path: string, selector: string): Case => ({
  name: `field selector ${selector} of ${path.split('/').at(-1)}`,
  steps: [...made.slice(0, 2), get(`${path}?fieldSelector=${encodeURIComponent(selector).replaceAll('%24', '$')}`)],
});

const cases: readonly Case[] = [
  ...['tier', '!tier', 'tier=web', 'tier==web', 'tier!=web', 'tier in (web,db)', 'tier notin (web)'].map(byLabel),
  ...['size>5', 'size<5', 'tier=web,size=3', 'tier, !old', 'old=', 'old', 'example.com/zone=z1'].map(byLabel),
  ...['tier in (web, )', ' tier = web ', 'tier=nothing', ''].map(byLabel),
  ...['tier===web', 'tier in web', 'tier in (web', 'tier=web,', '!', '=web', 'tier web', 'size>big'].map(badLabel),
  badLabel('tier=not valid'),
  {
    name: 'label selectors with keys and values that no label can have',
    steps: ['-tier=web', 'a/b/c=d', 'tier=-x', 'size>big'].map((selector) =>
      get(`${LEASES}?labelSelector=${encodeURIComponent(selector)}`),
    ),
  },
  ...['metadata.name=a', 'metadata.name!=a', 'metadata.namespace=$ns', 'metadata.name=a,metadata.namespace=x'].map(
    (selector) => byField(LEASES, selector),
  ),
  ...['spec.holderIdentity=x', 'metadata.labels=x', 'nonsense'].map((selector) => byField(LEASES, selector)),
  ...['spec.nodeName=n', 'status.phase=Running', 'spec.restartPolicy=Always', 'spec.hostname=x'].map((selector) =>
    byField(PODS, selector),
  ),
  ...['involvedObject.name=n', 'reason=Because', 'source=kubelet', 'message=x'].map((selector) =>
    byField('/api/v1/namespaces/$ns/events', selector),
  ),
  ...['spec.unschedulable=true,metadata.name=$id', 'spec.podCIDR=x', 'metadata.namespace=x'].map((selector) =>
    byField('/api/v1/nodes', selector),
  ),
  {
    name: 'a field selector that does not parse',
    steps: [get(`${LEASES}?fieldSelector=metadata.name%3Da%3Db`, { anyMessage: true })],
  },
  {
    name: 'field selectors of custom objects',
    steps: [
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
  },
  {
    name: 'selectors of a list over all namespaces',
    steps: [
      post(LEASES, lease('a', {}, { labels: { case: '$id' } })),
      get('/apis/coordination.k8s.io/v1/leases?labelSelector=case%3D$id'),
      get('/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.namespace%3D$ns'),
    ],
  },
];

const spec = {
  ...ANYTHING,
  properties: { color: { type: 'string' }, count: { type: 'integer' }, on: { type: 'boolean' } },
};
const selectableFields = ['.spec.color', '.spec.count', '.spec.on'].map((jsonPath) => ({ jsonPath }));

conformance('selectors', cases, [widgetFixture(widgetDefinition(spec, { version: { selectableFields } }))]);
