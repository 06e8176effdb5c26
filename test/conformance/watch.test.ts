/** Tests the conformance of watches: where they start, which events they send, and how they end. */
import { WHY_NO_WATCH_LISTS } from '../testenv/since.ts';
import { del, end, events, get, merge, post, put, type Step, watch } from './harness/case.ts';
import {
  ANYTHING,
  LEASES,
  lease,
  NODES,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ALL = `${LEASES}?watch=true`;
const ONE = `${LEASES}/one`;
const labelled = (name: string, value: string): object =>
  lease(name, {}, { labels: { on: value } });
/** The last change of a case. If the watch sent an additional event before it, the comparison would fail. */
const last = post(LEASES, labelled('zz-last', 'yes'));

const bookmarkOf = (path: string): Step[] => [
  watch(
    'w',
    `/api/v1/${path}?watch=true&labelSelector=none%3D$ns&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
  ),
  events('w', 1),
];

const testCase = conformance('watch', [
  widgetFixture(widgetDefinition(ANYTHING, { status: ANYTHING })),
]);

testCase('additions, changes and removals arrive in order', [
  get(LEASES, { as: 'list' }),
  watch('w', `${ALL}&resourceVersion={list.metadata.resourceVersion}`),
  post(LEASES, lease('one')),
  merge(ONE, { spec: { holderIdentity: 'a' } }),
  post(LEASES, lease('two')),
  del(ONE),
  merge(`${LEASES}/two`, { spec: { holderIdentity: 'b' } }),
  last,
  events('w', 6),
]);
testCase('without a resourceVersion the present state comes first', [
  post(LEASES, lease('b')),
  post(LEASES, lease('a')),
  watch('w', ALL),
  last,
  events('w', 3),
]);
testCase('resourceVersion 0 gives the present state first too', [
  post(LEASES, lease('a')),
  watch('w', `${ALL}&resourceVersion=0`),
  last,
  events('w', 2),
]);
testCase('from a revision all later changes come', [
  post(LEASES, lease('one'), { as: 'made' }),
  merge(ONE, { spec: { holderIdentity: 'a' } }),
  del(ONE),
  post(LEASES, lease('one')),
  watch('w', `${ALL}&resourceVersion={made.metadata.resourceVersion}`),
  last,
  events('w', 4),
]);
testCase('a change that changes nothing is no event', [
  post(LEASES, lease('one', { holderIdentity: 'a' }), { as: 'made' }),
  watch('w', `${ALL}&resourceVersion={made.metadata.resourceVersion}`),
  merge(ONE, { spec: { holderIdentity: 'a' } }),
  last,
  events('w', 1),
]);
testCase('a dry run is no event', [
  get(LEASES, { as: 'list' }),
  watch('w', `${ALL}&resourceVersion={list.metadata.resourceVersion}`),
  post(`${LEASES}?dryRun=All`, lease('one')),
  last,
  events('w', 1),
]);
testCase('a label selector turns changes into additions and removals', [
  get(LEASES, { as: 'list' }),
  watch('w', `${ALL}&labelSelector=on%3Dyes&resourceVersion={list.metadata.resourceVersion}`),
  post(LEASES, labelled('one', 'no')),
  merge(ONE, { metadata: { labels: { on: 'yes' } } }),
  merge(ONE, { spec: { holderIdentity: 'a' } }),
  merge(ONE, { metadata: { labels: { on: 'no' } }, spec: { holderIdentity: 'b' } }),
  merge(ONE, { spec: { holderIdentity: 'c' } }),
  del(ONE),
  last,
  events('w', 4),
]);
testCase('a selected object that is deleted is shown as it was last', [
  post(LEASES, labelled('one', 'yes')),
  watch('w', `${ALL}&labelSelector=on%3Dyes`),
  del(ONE),
  last,
  events('w', 3),
]);
testCase('a field selector on the name shows one object', [
  post(LEASES, lease('one')),
  post(LEASES, lease('two')),
  watch('w', `${ALL}&fieldSelector=metadata.name%3Done`),
  merge(`${LEASES}/two`, { spec: { holderIdentity: 'unseen' } }),
  merge(ONE, { spec: { holderIdentity: 'seen' } }),
  del(ONE),
  events('w', 3),
]);
testCase('a watch of one namespace does not see others', [
  watch('w', `${ALL}&resourceVersion=0`),
  post('/apis/coordination.k8s.io/v1/namespaces/default/leases', lease('$id')),
  last,
  events('w', 1),
]);
testCase('a watch over all namespaces', [
  watch('w', '/apis/coordination.k8s.io/v1/leases?watch=1&labelSelector=case%3D$id'),
  post(LEASES, lease('one', {}, { labels: { case: '$id' } })),
  post(
    '/apis/coordination.k8s.io/v1/namespaces/default/leases',
    lease('$id', {}, { labels: { case: '$id' } }),
  ),
  events('w', 2),
]);
testCase('the deleted and the new object of one name are told apart', [
  post(LEASES, lease('one')),
  watch('w', ALL),
  del(ONE),
  post(LEASES, lease('one')),
  last,
  events('w', 4),
]);
testCase('finalizers: a deletion is a change first', [
  post(WIDGETS, widget('w', {}, { finalizers: ['example.com/f'] })),
  watch('w', `${WIDGETS}?watch=true`),
  del(`${WIDGETS}/w`),
  merge(`${WIDGETS}/w`, { metadata: { finalizers: null } }),
  post(WIDGETS, widget('zz')),
  events('w', 4),
]);
testCase(
  'sendInitialEvents ends the state with a bookmark',
  [
    post(LEASES, lease('b')),
    post(LEASES, lease('a')),
    watch(
      'w',
      `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=`,
    ),
    events('w', 3),
    last,
    events('w', 1),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'sendInitialEvents of nothing is a bookmark',
  [
    watch(
      'w',
      `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    ),
    events('w', 1),
    last,
    events('w', 1),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'sendInitialEvents with selectors',
  [
    post(LEASES, labelled('one', 'yes')),
    post(LEASES, labelled('two', 'no')),
    watch(
      'w',
      `${ALL}&labelSelector=on%3Dyes&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    ),
    events('w', 2),
  ],
  WHY_NO_WATCH_LISTS,
);
// The case uses the newest revision. For an older revision, a real server sends the state of any later revision that
// its cache has.
testCase(
  'sendInitialEvents from a revision',
  [
    post(LEASES, lease('one')),
    merge(ONE, { spec: { holderIdentity: 'a' } }, { as: 'changed' }),
    watch(
      'w',
      `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={changed.metadata.resourceVersion}`,
    ),
    events('w', 2),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'sendInitialEvents without bookmarks has no end',
  [
    post(LEASES, lease('one')),
    watch('w', `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`),
    last,
    events('w', 2),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'sendInitialEvents=false starts now',
  [
    post(LEASES, lease('one')),
    watch('w', `${ALL}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`),
    last,
    events('w', 1),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'bookmarks of custom objects and of nodes carry what the kind makes of nothing',
  [
    watch(
      'w',
      `${WIDGETS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    ),
    events('w', 1),
    watch(
      'n',
      `${NODES}?watch=true&fieldSelector=metadata.name%3D$id&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    ),
    events('n', 1),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase('a bookmark of pods', bookmarkOf('pods'), WHY_NO_WATCH_LISTS);
testCase('a bookmark of events', bookmarkOf('events'), WHY_NO_WATCH_LISTS);
testCase(
  'a bookmark of pods in a namespace',
  bookmarkOf('namespaces/$ns/pods'),
  WHY_NO_WATCH_LISTS,
);
testCase(
  'a watch with bookmarks that asks for the state gets the bookmark too',
  [post(LEASES, lease('one')), watch('w', `${ALL}&allowWatchBookmarks=true`), events('w', 2)],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'combinations of watch options that are refused',
  [
    get(`${ALL}&sendInitialEvents=true`),
    get(`${ALL}&resourceVersionMatch=NotOlderThan`),
    get(`${ALL}&resourceVersionMatch=Exact&resourceVersion=1`),
    get(`${ALL}&sendInitialEvents=true&resourceVersionMatch=Exact`),
    get(`${ALL}&labelSelector=a%3D%3D%3D`, { anyMessage: true }),
    get(`${ALL}&fieldSelector=spec.x%3D1`),
    get(`${ALL}&resourceVersion=soon`),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase(
  'timeoutSeconds ends the watch',
  [
    post(LEASES, lease('one')),
    watch('w', `${ALL}&timeoutSeconds=1&resourceVersion=0`),
    end('w'),
    watch('b', `${ALL}&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=0`),
    end('b'),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase('a revision that is too old is an ERROR event with status 410', [
  watch('w', `${WIDGETS}?watch=true&resourceVersion=1&timeoutSeconds=5`),
  end('w'),
]);
testCase(
  'a future revision is waited for in vain when the state is wanted',
  [
    watch(
      'w',
      `${ALL}&resourceVersion=99999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=9`,
    ),
    end('w'),
  ],
  WHY_NO_WATCH_LISTS,
);
testCase('a PUT is a change as well', [
  post(WIDGETS, widget('w', { a: 1 }), { as: 'made' }),
  watch('w', `${WIDGETS}?watch=true&resourceVersion={made.metadata.resourceVersion}`),
  put(
    `${WIDGETS}/w`,
    widget('w', { a: 2 }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  ),
  merge(`${WIDGETS}/w/status`, { status: { ok: true } }),
  post(WIDGETS, widget('zz')),
  events('w', 3),
]);
