/** Conformance of creating, reading, replacing and naming objects. */
import { type Case, del, get, merge, post, put } from './harness/case.ts';
import { LEASES, lease } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ONE = `${LEASES}/one`;

const cases: readonly Case[] = [
  {
    name: 'what is created can be read, replaced and deleted',
    steps: [
      post(LEASES, lease('one', { holderIdentity: 'me' }), { as: 'made' }),
      get(ONE),
      put(ONE, lease('one', { holderIdentity: 'you' }, { resourceVersion: '{made.metadata.resourceVersion}' })),
      get(ONE),
      del(ONE),
      get(ONE),
      del(ONE),
    ],
  },
  { name: 'a name can be used once', steps: [post(LEASES, lease('one')), post(LEASES, lease('one'))] },
  {
    name: 'a name can be used again after its object is gone',
    steps: [post(LEASES, lease('one')), del(ONE), post(LEASES, lease('one'))],
  },
  {
    name: 'generateName gets five random characters',
    steps: [post(LEASES, { metadata: { generateName: 'some-' } }), get(LEASES)],
  },
  { name: 'a name is required', steps: [post(LEASES, { metadata: {} }), post(LEASES, {})] },
  {
    name: 'names follow RFC 1123',
    steps: ['Upper', 'a_b', '-a', 'a-', 'a..b', 'x'.repeat(254)].map((name) => post(LEASES, lease(name))),
  },
  {
    name: 'kind and apiVersion may be left out of a built-in object',
    steps: [post(LEASES, { metadata: { name: 'one' } })],
  },
  {
    name: 'another kind or version is refused',
    steps: [
      post(LEASES, { ...lease('one'), kind: 'Nonsense' }, { anyMessage: true }),
      post(LEASES, { ...lease('one'), apiVersion: 'coordination.k8s.io/v9' }, { anyMessage: true }),
      post(LEASES, { ...lease('one'), apiVersion: 'v1', kind: 'Pod' }, { anyMessage: true }),
    ],
  },
  {
    name: 'the namespace of the object is that of the path',
    steps: [
      post(LEASES, lease('one', {}, { namespace: 'other' })),
      post(LEASES, lease('one', {}, { namespace: '$ns' })),
      put(ONE, lease('one', {}, { namespace: 'other' })),
    ],
  },
  {
    name: 'nothing can be made in a namespace that does not exist',
    steps: [post('/apis/coordination.k8s.io/v1/namespaces/$id-none/leases', lease('one'))],
  },
  {
    name: 'an object in a namespace is not created without one',
    steps: [post('/apis/coordination.k8s.io/v1/leases', lease('one'))],
  },
  {
    name: 'what the server sets cannot be given',
    steps: [
      post(
        LEASES,
        lease(
          'one',
          {},
          {
            uid: 'mine',
            creationTimestamp: '2001-01-01T00:00:00Z',
            deletionTimestamp: '2001-01-01T00:00:00Z',
            deletionGracePeriodSeconds: 7,
            generation: 9,
            selfLink: '/x',
          },
        ),
      ),
    ],
  },
  {
    name: 'a resourceVersion cannot be given to a new object',
    steps: [post(LEASES, lease('one', {}, { resourceVersion: '1' }))],
  },
  {
    name: 'labels and annotations must be well formed',
    steps: [
      post(LEASES, lease('one', {}, { labels: { 'a b': 'c' } })),
      post(LEASES, lease('one', {}, { labels: { a: 'b c' } })),
      post(LEASES, lease('one', {}, { labels: { 'UPPER.dev/a': 'b' } })),
      post(LEASES, lease('one', {}, { labels: { '/a': 'b' } })),
      post(LEASES, lease('one', {}, { labels: { 'example.com/': 'b' } })),
      post(LEASES, lease('one', {}, { labels: { ['a'.repeat(64)]: 'b' } })),
      post(LEASES, lease('one', {}, { labels: { a: 'b'.repeat(64) } })),
      post(LEASES, lease('one', {}, { annotations: { 'a b': 'anything goes here' } })),
    ],
  },
  {
    name: 'annotations may have 256 KiB together',
    steps: [
      post(LEASES, lease('one', {}, { annotations: { big: 'x'.repeat(262_141) } }), { as: 'fits' }),
      post(LEASES, lease('two', {}, { annotations: { big: 'x'.repeat(262_142) } })),
    ],
  },
  {
    name: 'finalizers must be qualified names',
    steps: [
      post(LEASES, lease('one', {}, { finalizers: ['unqualified'] })),
      post(LEASES, lease('one', {}, { finalizers: ['a b/c'] })),
    ],
  },
  {
    name: 'owners must be named completely',
    steps: [
      post(LEASES, lease('one', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: '', uid: '' }] })),
    ],
  },
  {
    name: 'a PUT needs the name of the path',
    steps: [put(ONE, lease('two')), put(ONE, { metadata: {} })],
  },
  {
    name: 'a PUT creates a Lease that does not exist',
    steps: [put(ONE, lease('one', { leaseDurationSeconds: 3 })), get(ONE)],
  },
  {
    name: 'a PUT that changes nothing leaves the revision alone',
    steps: [
      post(LEASES, lease('one', { holderIdentity: 'me' }), { as: 'made' }),
      put(ONE, lease('one', { holderIdentity: 'me' }, { resourceVersion: '{made.metadata.resourceVersion}' })),
      put(ONE, lease('one', { holderIdentity: 'you' }, { resourceVersion: '{made.metadata.resourceVersion}' })),
    ],
  },
  {
    name: 'a dry run answers as if, and stores nothing',
    steps: [
      post(`${LEASES}?dryRun=All`, lease('one')),
      get(ONE),
      post(LEASES, lease('one'), { as: 'made' }),
      merge(`${ONE}?dryRun=All`, { metadata: { labels: { a: 'b' } } }),
      del(`${ONE}?dryRun=All`),
      get(ONE),
    ],
  },
  {
    name: 'options have to make sense',
    steps: [
      post(`${LEASES}?dryRun=Some`, lease('one')),
      post(`${LEASES}?fieldValidation=Perhaps`, lease('one')),
      merge(`${ONE}?dryRun=Some`, {}),
    ],
  },
  {
    name: 'unknown members are dropped with a warning, or refused if that is wanted',
    steps: [
      post(LEASES, { ...lease('one', { color: 'red' }), extra: 1 }),
      post(`${LEASES}?fieldValidation=Strict`, lease('two', { color: 'red' }, { shape: 'round' })),
      post(`${LEASES}?fieldValidation=Ignore`, lease('three', { color: 'red' })),
    ],
  },
  {
    name: 'lists come in the order of names, empty ones too',
    steps: [get(LEASES), ...['b', 'a', 'c'].map((name) => post(LEASES, lease(name))), get(LEASES)],
  },
  {
    name: 'resources that do not exist',
    steps: [
      get('/apis/coordination.k8s.io/v1/nonsense'),
      get('/api/v1/nonsense'),
      get('/apis/nonsense.example.com/v1/things'),
      get('/nonsense'),
      get('/apis/coordination.k8s.io/v9/leases'),
    ],
  },
  {
    name: 'paths with a namespace too many or too few',
    steps: [
      get('/api/v1/namespaces/$ns/nodes'),
      get('/api/v1/namespaces/$ns/nodes/n'),
      get('/apis/coordination.k8s.io/v1/leases/one'),
      get('/apis/coordination.k8s.io/v1/namespaces/$ns/leases/one/two/three'),
    ],
  },
  {
    name: 'a long generateName is cut',
    steps: [post(LEASES, { metadata: { generateName: 'x'.repeat(70) } })],
  },
  {
    name: 'methods that a path does not have',
    steps: [
      post(ONE, lease('one')),
      put(LEASES, lease('one')),
      merge(LEASES, {}),
      { do: 'request', method: 'OPTIONS', path: LEASES },
    ],
  },
];

conformance('crud', cases);
