/** Conformance of paged lists and of the resource versions that lists may ask for. */
import { type Case, del, get, merge, post } from './harness/case.ts';
import { ANYTHING, LEASES, lease, WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const five = ['a', 'b', 'c', 'd', 'e'].map((name) =>
  post(LEASES, lease(name, {}, { labels: { odd: String('ace'.includes(name)) } })),
);

const cases: readonly Case[] = [
  {
    name: 'pages follow each other to the end',
    steps: [
      ...five,
      get(`${LEASES}?limit=2`, { as: 'one' }),
      get(`${LEASES}?limit=2&continue={one.metadata.continue}`, { as: 'two' }),
      get(`${LEASES}?limit=2&continue={two.metadata.continue}`),
    ],
  },
  { name: 'a limit that is reached exactly ends the list', steps: [...five, get(`${LEASES}?limit=5`)] },
  { name: 'a limit that is not reached ends the list', steps: [...five, get(`${LEASES}?limit=500`)] },
  {
    name: 'no limit, and limits that are none',
    steps: [...five, ...['0', '', '-1', 'many'].map((limit) => get(`${LEASES}?limit=${limit}`))],
  },
  {
    name: 'all pages show the state of the first',
    steps: [
      ...five,
      get(`${LEASES}?limit=2`, { as: 'one' }),
      del(`${LEASES}/d`),
      post(LEASES, lease('cc')),
      merge(`${LEASES}/e`, { metadata: { labels: { odd: 'changed' } } }),
      get(`${LEASES}?limit=2&continue={one.metadata.continue}`, { as: 'two' }),
      get(`${LEASES}?limit=2&continue={two.metadata.continue}`),
      get(LEASES),
    ],
  },
  {
    name: 'pages of a selection do not say how much is left',
    steps: [
      ...five,
      get(`${LEASES}?limit=1&labelSelector=odd%3Dtrue`, { as: 'one' }),
      get(`${LEASES}?limit=2&labelSelector=odd%3Dtrue&continue={one.metadata.continue}`),
    ],
  },
  {
    name: 'pages over all namespaces',
    steps: [
      ...five,
      get(
        '/apis/coordination.k8s.io/v1/leases?limit=2&labelSelector=odd,odd!%3Dx&fieldSelector=metadata.namespace%3D$ns',
        {
          as: 'one',
        },
      ),
    ],
  },
  {
    name: 'pages of custom objects',
    steps: [
      ...['a', 'b', 'c'].map((name) => post(WIDGETS, widget(name))),
      get(`${WIDGETS}?limit=2`, { as: 'one' }),
      get(`${WIDGETS}?limit=2&continue={one.metadata.continue}`),
    ],
  },
  {
    name: 'a token that is none',
    steps: [
      get(`${LEASES}?limit=1&continue=nonsense`, { anyMessage: true }),
      get(`${LEASES}?limit=1&continue=e30`, { anyMessage: true }),
    ],
  },
  {
    name: 'a token together with a resourceVersion',
    steps: [
      ...five,
      get(`${LEASES}?limit=2`, { as: 'one' }),
      get(`${LEASES}?limit=2&continue={one.metadata.continue}&resourceVersion={one.metadata.resourceVersion}`),
      get(`${LEASES}?limit=2&continue={one.metadata.continue}&resourceVersion=0`),
    ],
  },
  {
    name: 'a list of exactly one revision',
    steps: [
      post(LEASES, lease('a'), { as: 'first' }),
      post(LEASES, lease('b'), { as: 'second' }),
      merge(`${LEASES}/a`, { spec: { holderIdentity: 'later' } }),
      get(`${LEASES}?resourceVersion={second.metadata.resourceVersion}&resourceVersionMatch=Exact`),
      get(`${LEASES}?resourceVersion={first.metadata.resourceVersion}&resourceVersionMatch=Exact`),
      get(`${LEASES}?resourceVersion={first.metadata.resourceVersion}&resourceVersionMatch=NotOlderThan`),
      get(`${LEASES}?resourceVersion={first.metadata.resourceVersion}`),
      get(`${LEASES}?resourceVersion={first.metadata.resourceVersion}&limit=5`),
    ],
  },
  {
    name: 'resource versions that are none',
    steps: [get(`${LEASES}?resourceVersion=soon`), get(`${LEASES}?resourceVersion=-1`)],
  },
  ...[LEASES, `${LEASES}/none`].map(
    (path): Case => ({
      name: `a revision of the future, of ${path.split('/').at(-1)}`,
      steps: [get(`${path}?resourceVersion=999999999`)],
    }),
  ),
  {
    name: 'exactly a revision of the future',
    steps: [get(`${LEASES}?resourceVersion=999999999&resourceVersionMatch=Exact`, { anyMessage: true })],
  },
  {
    name: 'combinations of list options that are refused',
    steps: [
      get(`${LEASES}?resourceVersionMatch=Exact`),
      get(`${LEASES}?resourceVersionMatch=Perhaps&resourceVersion=1`),
      get(`${LEASES}?resourceVersionMatch=Exact&resourceVersion=0`),
      get(`${LEASES}?resourceVersionMatch=Exact&resourceVersion=1&continue=x`),
      get(`${LEASES}?sendInitialEvents=true`),
    ],
  },
];

conformance('paging', cases, [widgetFixture(widgetDefinition(ANYTHING))]);
