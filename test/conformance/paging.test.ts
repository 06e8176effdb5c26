/** Tests the conformance of paged lists, and of the resource versions that clients may request for a list. */
import { whyNotSince } from '../testenv/since.ts';
import { del, get, merge, post } from './harness/case.ts';
import {
  ANYTHING,
  LEASES,
  lease,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const five = ['a', 'b', 'c', 'd', 'e'].map((name) =>
  post(LEASES, lease(name, {}, { labels: { odd: String('ace'.includes(name)) } })),
);

const testCase = conformance('paging', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase('pages follow each other to the end', [
  ...five,
  get(`${LEASES}?limit=2`, { as: 'one' }),
  get(`${LEASES}?limit=2&continue={one.metadata.continue}`, { as: 'two' }),
  get(`${LEASES}?limit=2&continue={two.metadata.continue}`),
]);
testCase('a limit that is reached exactly ends the list', [...five, get(`${LEASES}?limit=5`)]);
testCase('a limit that is not reached ends the list', [...five, get(`${LEASES}?limit=500`)]);
testCase('no limit, and limits that are none', [
  ...five,
  ...['0', '', '-1', 'many'].map((limit) => get(`${LEASES}?limit=${limit}`)),
]);
testCase('all pages show the state of the first', [
  ...five,
  get(`${LEASES}?limit=2`, { as: 'one' }),
  del(`${LEASES}/d`),
  post(LEASES, lease('cc')),
  merge(`${LEASES}/e`, { metadata: { labels: { odd: 'changed' } } }),
  get(`${LEASES}?limit=2&continue={one.metadata.continue}`, { as: 'two' }),
  get(`${LEASES}?limit=2&continue={two.metadata.continue}`),
  get(LEASES),
]);
testCase('pages of a selection do not say how much is left', [
  ...five,
  get(`${LEASES}?limit=1&labelSelector=odd%3Dtrue`, { as: 'one' }),
  get(`${LEASES}?limit=2&labelSelector=odd%3Dtrue&continue={one.metadata.continue}`),
]);
testCase('pages over all namespaces', [
  ...five,
  get(
    '/apis/coordination.k8s.io/v1/leases?limit=2&labelSelector=odd,odd!%3Dx&fieldSelector=metadata.namespace%3D$ns',
    {
      as: 'one',
    },
  ),
]);
testCase('pages of custom objects', [
  ...['a', 'b', 'c'].map((name) => post(WIDGETS, widget(name))),
  get(`${WIDGETS}?limit=2`, { as: 'one' }),
  get(`${WIDGETS}?limit=2&continue={one.metadata.continue}`),
]);
testCase('a token that is none', [
  get(`${LEASES}?limit=1&continue=nonsense`, { anyMessage: true }),
  get(`${LEASES}?limit=1&continue=e30`, { anyMessage: true }),
]);
testCase(
  'a token together with a resourceVersion',
  [
    ...five,
    get(`${LEASES}?limit=2`, { as: 'one' }),
    get(
      `${LEASES}?limit=2&continue={one.metadata.continue}&resourceVersion={one.metadata.resourceVersion}`,
    ),
    get(`${LEASES}?limit=2&continue={one.metadata.continue}&resourceVersion=0`),
  ],
  whyNotSince(34, 'answers all pages from its cache'),
);
testCase('a list of exactly one revision', [
  post(LEASES, lease('a'), { as: 'first' }),
  post(LEASES, lease('b'), { as: 'second' }),
  merge(`${LEASES}/a`, { spec: { holderIdentity: 'later' } }, { as: 'third' }),
  get(`${LEASES}?resourceVersion={second.metadata.resourceVersion}&resourceVersionMatch=Exact`),
  get(`${LEASES}?resourceVersion={first.metadata.resourceVersion}&resourceVersionMatch=Exact`),
  // With only a lower bound, a server may answer from a cache that lags behind. So this case uses the newest revision,
  // for which both servers give the same answer.
  get(
    `${LEASES}?resourceVersion={third.metadata.resourceVersion}&resourceVersionMatch=NotOlderThan`,
  ),
  get(`${LEASES}?resourceVersion={third.metadata.resourceVersion}`),
  get(`${LEASES}?resourceVersion={third.metadata.resourceVersion}&limit=5`),
]);
testCase(
  'resource versions that are none',
  [get(`${LEASES}?resourceVersion=soon`), get(`${LEASES}?resourceVersion=-1`)],
  whyNotSince(33, 'refuses such a version as a bad request'),
);
testCase('a list of a revision of the future', [get(`${LEASES}?resourceVersion=999999999`)]);
testCase('an object of a revision of the future', [
  get(`${LEASES}/none?resourceVersion=999999999`),
]);
testCase(
  'exactly a revision of the future',
  [get(`${LEASES}?resourceVersion=999999999&resourceVersionMatch=Exact`, { anyMessage: true })],
  whyNotSince(34, 'answers that such a revision is too large'),
);
testCase('combinations of list options that are refused', [
  get(`${LEASES}?resourceVersionMatch=Exact`),
  get(`${LEASES}?resourceVersionMatch=Perhaps&resourceVersion=1`),
  get(`${LEASES}?resourceVersionMatch=Exact&resourceVersion=0`),
  get(`${LEASES}?resourceVersionMatch=Exact&resourceVersion=1&continue=x`),
  get(`${LEASES}?sendInitialEvents=true`),
]);
