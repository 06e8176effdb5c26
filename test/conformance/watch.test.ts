/** Conformance of watches: where they start, what they show, and how they end. */
import { type Case, del, end, events, get, merge, post, put, watch } from './harness/case.ts';
import { ANYTHING, LEASES, lease, NODES, WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ALL = `${LEASES}?watch=true`;
const ONE = `${LEASES}/one`;
const labelled = (name: string, value: string): object => lease(name, {}, { labels: { on: value } });
/** The last change of a case: an event too many before it would be seen. */
const last = post(LEASES, labelled('zz-last', 'yes'));

const cases: readonly Case[] = [
  {
    name: 'additions, changes and removals arrive in order',
    steps: [
      get(LEASES, { as: 'list' }),
      watch('w', `${ALL}&resourceVersion={list.metadata.resourceVersion}`),
      post(LEASES, lease('one')),
      merge(ONE, { spec: { holderIdentity: 'a' } }),
      post(LEASES, lease('two')),
      del(ONE),
      merge(`${LEASES}/two`, { spec: { holderIdentity: 'b' } }),
      last,
      events('w', 6),
    ],
  },
  {
    name: 'without a resourceVersion the present state comes first',
    steps: [post(LEASES, lease('b')), post(LEASES, lease('a')), watch('w', ALL), last, events('w', 3)],
  },
  {
    name: 'resourceVersion 0 gives the present state first too',
    steps: [post(LEASES, lease('a')), watch('w', `${ALL}&resourceVersion=0`), last, events('w', 2)],
  },
  {
    name: 'from a revision all later changes come',
    steps: [
      post(LEASES, lease('one'), { as: 'made' }),
      merge(ONE, { spec: { holderIdentity: 'a' } }),
      del(ONE),
      post(LEASES, lease('one')),
      watch('w', `${ALL}&resourceVersion={made.metadata.resourceVersion}`),
      last,
      events('w', 4),
    ],
  },
  {
    name: 'a change that changes nothing is no event',
    steps: [
      post(LEASES, lease('one', { holderIdentity: 'a' }), { as: 'made' }),
      watch('w', `${ALL}&resourceVersion={made.metadata.resourceVersion}`),
      merge(ONE, { spec: { holderIdentity: 'a' } }),
      last,
      events('w', 1),
    ],
  },
  {
    name: 'a dry run is no event',
    steps: [
      get(LEASES, { as: 'list' }),
      watch('w', `${ALL}&resourceVersion={list.metadata.resourceVersion}`),
      post(`${LEASES}?dryRun=All`, lease('one')),
      last,
      events('w', 1),
    ],
  },
  {
    name: 'a label selector turns changes into additions and removals',
    steps: [
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
    ],
  },
  {
    name: 'a selected object that is deleted is shown as it was last',
    steps: [
      post(LEASES, labelled('one', 'yes')),
      watch('w', `${ALL}&labelSelector=on%3Dyes`),
      del(ONE),
      last,
      events('w', 3),
    ],
  },
  {
    name: 'a field selector on the name shows one object',
    steps: [
      post(LEASES, lease('one')),
      post(LEASES, lease('two')),
      watch('w', `${ALL}&fieldSelector=metadata.name%3Done`),
      merge(`${LEASES}/two`, { spec: { holderIdentity: 'unseen' } }),
      merge(ONE, { spec: { holderIdentity: 'seen' } }),
      del(ONE),
      events('w', 3),
    ],
  },
  {
    name: 'a watch of one namespace does not see others',
    steps: [
      watch('w', `${ALL}&resourceVersion=0`),
      post('/apis/coordination.k8s.io/v1/namespaces/default/leases', lease('$id')),
      last,
      events('w', 1),
    ],
  },
  {
    name: 'a watch over all namespaces',
    steps: [
      watch('w', '/apis/coordination.k8s.io/v1/leases?watch=1&labelSelector=case%3D$id'),
      post(LEASES, lease('one', {}, { labels: { case: '$id' } })),
      post('/apis/coordination.k8s.io/v1/namespaces/default/leases', lease('$id', {}, { labels: { case: '$id' } })),
      events('w', 2),
    ],
  },
  {
    name: 'the deleted and the new object of one name are told apart',
    steps: [post(LEASES, lease('one')), watch('w', ALL), del(ONE), post(LEASES, lease('one')), last, events('w', 4)],
  },
  {
    name: 'finalizers: a deletion is a change first',
    steps: [
      post(WIDGETS, widget('w', {}, { finalizers: ['example.com/f'] })),
      watch('w', `${WIDGETS}?watch=true`),
      del(`${WIDGETS}/w`),
      merge(`${WIDGETS}/w`, { metadata: { finalizers: null } }),
      post(WIDGETS, widget('zz')),
      events('w', 4),
    ],
  },
  {
    name: 'sendInitialEvents ends the state with a bookmark',
    steps: [
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
  },
  {
    name: 'sendInitialEvents of nothing is a bookmark',
    steps: [
      watch('w', `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`),
      events('w', 1),
      last,
      events('w', 1),
    ],
  },
  {
    name: 'sendInitialEvents with selectors',
    steps: [
      post(LEASES, labelled('one', 'yes')),
      post(LEASES, labelled('two', 'no')),
      watch(
        'w',
        `${ALL}&labelSelector=on%3Dyes&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
      ),
      events('w', 2),
    ],
  },
  {
    name: 'sendInitialEvents from a revision',
    steps: [
      post(LEASES, lease('one'), { as: 'made' }),
      merge(ONE, { spec: { holderIdentity: 'a' } }),
      watch(
        'w',
        `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={made.metadata.resourceVersion}`,
      ),
      events('w', 2),
    ],
  },
  {
    name: 'sendInitialEvents without bookmarks has no end',
    steps: [
      post(LEASES, lease('one')),
      watch('w', `${ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`),
      last,
      events('w', 2),
    ],
  },
  {
    name: 'sendInitialEvents=false starts now',
    steps: [
      post(LEASES, lease('one')),
      watch('w', `${ALL}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`),
      last,
      events('w', 1),
    ],
  },
  {
    name: 'bookmarks of custom objects and of nodes carry what the kind makes of nothing',
    steps: [
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
  },
  ...['pods', 'events', 'namespaces/$ns/pods'].map(
    (path): Case => ({
      name: `a bookmark of ${path}`,
      steps: [
        watch(
          'w',
          `/api/v1/${path}?watch=true&labelSelector=none%3D$ns&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
        ),
        events('w', 1),
      ],
    }),
  ),
  {
    name: 'a watch with bookmarks that asks for the state gets the bookmark too',
    steps: [post(LEASES, lease('one')), watch('w', `${ALL}&allowWatchBookmarks=true`), events('w', 2)],
  },
  {
    name: 'combinations of watch options that are refused',
    steps: [
      get(`${ALL}&sendInitialEvents=true`),
      get(`${ALL}&resourceVersionMatch=NotOlderThan`),
      get(`${ALL}&resourceVersionMatch=Exact&resourceVersion=1`),
      get(`${ALL}&sendInitialEvents=true&resourceVersionMatch=Exact`),
      get(`${ALL}&labelSelector=a%3D%3D%3D`, { anyMessage: true }),
      get(`${ALL}&fieldSelector=spec.x%3D1`),
      get(`${ALL}&resourceVersion=soon`),
    ],
  },
  {
    name: 'timeoutSeconds ends the watch',
    steps: [
      post(LEASES, lease('one')),
      watch('w', `${ALL}&timeoutSeconds=1&resourceVersion=0`),
      end('w'),
      watch('b', `${ALL}&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=0`),
      end('b'),
    ],
  },
  {
    name: 'a revision that is too old is an ERROR event with status 410',
    steps: [watch('w', `${WIDGETS}?watch=true&resourceVersion=1&timeoutSeconds=5`), end('w')],
  },
  {
    name: 'a future revision is waited for in vain when the state is wanted',
    steps: [
      watch(
        'w',
        `${ALL}&resourceVersion=99999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=9`,
      ),
      end('w'),
    ],
  },
  {
    name: 'a PUT is a change as well',
    steps: [
      post(WIDGETS, widget('w', { a: 1 }), { as: 'made' }),
      watch('w', `${WIDGETS}?watch=true&resourceVersion={made.metadata.resourceVersion}`),
      put(`${WIDGETS}/w`, widget('w', { a: 2 }, { resourceVersion: '{made.metadata.resourceVersion}' })),
      merge(`${WIDGETS}/w/status`, { status: { ok: true } }),
      post(WIDGETS, widget('zz')),
      events('w', 3),
    ],
  },
];

conformance('watch', cases, [widgetFixture(widgetDefinition(ANYTHING, { status: ANYTHING }))]);
