/** Conformance of namespaces: what they start with, and how they end. */
import { type Case, del, events, get, merge, post, put, until, watch } from './harness/case.ts';
import { ANYTHING, lease, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ALL = '/api/v1/namespaces';
const ONE = `${ALL}/$id`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/$id/leases';
const WIDGETS = '/apis/$group/v1/namespaces/$id/widgets';
const made = post(ALL, { metadata: { name: '$id' } });

const cases: readonly Case[] = [
  { name: 'a namespace is made active, with its name as label', steps: [made, get(ONE)] },
  {
    name: 'names of namespaces have no dots',
    steps: [post(ALL, { metadata: { name: 'a.b' } }), post(ALL, { metadata: { name: 'x'.repeat(64) } })],
  },
  {
    name: 'the label with the name comes back',
    steps: [made, merge(ONE, { metadata: { labels: { 'kubernetes.io/metadata.name': null, a: 'b' } } })],
  },
  {
    name: 'a PUT keeps status and finalizers',
    steps: [made, put(ONE, { metadata: { name: '$id', labels: { a: 'b' } }, spec: { finalizers: [] } })],
  },
  {
    name: 'a namespace empties itself and goes',
    steps: [
      made,
      post(LEASES, lease('one')),
      post(WIDGETS, widget('w')),
      watch('w', `${WIDGETS}?watch=true`),
      del(ONE),
      until(ONE, 'reason', 'NotFound'),
      get(LEASES),
      get(WIDGETS),
      events('w', 2),
    ],
  },
  {
    name: 'nothing new gets into a namespace that goes, and finalizers hold it up',
    steps: [
      made,
      post(WIDGETS, widget('w', {}, { finalizers: ['example.com/f'] })),
      del(ONE),
      until(`${WIDGETS}/w`, 'metadata.deletionGracePeriodSeconds', 0),
      post(LEASES, lease('late')),
      merge(`${WIDGETS}/w`, { metadata: { finalizers: null } }),
      until(ONE, 'reason', 'NotFound'),
    ],
  },
  { name: 'a namespace that is not there', steps: [get(ONE), del(ONE), get(LEASES)] },
];

conformance('namespaces', cases, [widgetFixture(widgetDefinition(ANYTHING))]);
