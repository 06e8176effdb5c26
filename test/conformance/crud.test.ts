/** Tests the conformance of the requests that create, read, replace and name objects. */
import { whyNotUntil } from '../testenv/since.ts';
import { del, get, merge, post, put } from './harness/case.ts';
import { LEASES, lease } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ONE = `${LEASES}/one`;

const testCase = conformance('crud');

testCase('what is created can be read, replaced and deleted', [
  post(LEASES, lease('one', { holderIdentity: 'me' }), { as: 'made' }),
  get(ONE),
  put(
    ONE,
    lease('one', { holderIdentity: 'you' }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  ),
  get(ONE),
  del(ONE),
  get(ONE),
  del(ONE),
]);
testCase('a name can be used once', [post(LEASES, lease('one')), post(LEASES, lease('one'))]);
testCase('a name can be used again after its object is gone', [
  post(LEASES, lease('one')),
  del(ONE),
  post(LEASES, lease('one')),
]);
testCase('generateName gets five random characters', [
  post(LEASES, { metadata: { generateName: 'some-' } }),
  get(LEASES),
]);
testCase('a name is required', [post(LEASES, { metadata: {} }), post(LEASES, {})]);
testCase(
  'names follow RFC 1123',
  ['Upper', 'a_b', '-a', 'a-', 'a..b', 'x'.repeat(254)].map((name) => post(LEASES, lease(name))),
);
testCase('kind and apiVersion may be left out of a built-in object', [
  post(LEASES, { metadata: { name: 'one' } }),
]);
testCase('another kind or version is refused', [
  post(LEASES, { ...lease('one'), kind: 'Nonsense' }, { anyMessage: true }),
  post(LEASES, { ...lease('one'), apiVersion: 'coordination.k8s.io/v9' }, { anyMessage: true }),
  post(LEASES, { ...lease('one'), apiVersion: 'v1', kind: 'Pod' }, { anyMessage: true }),
]);
testCase('the namespace of the object is that of the path', [
  post(LEASES, lease('one', {}, { namespace: 'other' })),
  post(LEASES, lease('one', {}, { namespace: '$ns' })),
  put(ONE, lease('one', {}, { namespace: 'other' })),
]);
testCase('nothing can be made in a namespace that does not exist', [
  post('/apis/coordination.k8s.io/v1/namespaces/$id-none/leases', lease('one')),
]);
testCase('an object in a namespace is not created without one', [
  post('/apis/coordination.k8s.io/v1/leases', lease('one')),
]);
testCase('what the server sets cannot be given', [
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
]);
testCase('a resourceVersion cannot be given to a new object', [
  post(LEASES, lease('one', {}, { resourceVersion: '1' })),
]);
testCase('labels and annotations must be well formed', [
  post(LEASES, lease('one', {}, { labels: { 'a b': 'c' } })),
  post(LEASES, lease('one', {}, { labels: { a: 'b c' } })),
  post(LEASES, lease('one', {}, { labels: { 'UPPER.dev/a': 'b' } })),
  post(LEASES, lease('one', {}, { labels: { '/a': 'b' } })),
  post(LEASES, lease('one', {}, { labels: { 'example.com/': 'b' } })),
  post(LEASES, lease('one', {}, { labels: { ['a'.repeat(64)]: 'b' } })),
  post(LEASES, lease('one', {}, { labels: { a: 'b'.repeat(64) } })),
  post(LEASES, lease('one', {}, { annotations: { 'a b': 'anything goes here' } })),
]);
testCase('annotations may have 256 KiB together', [
  post(LEASES, lease('one', {}, { annotations: { big: 'x'.repeat(262_141) } }), { as: 'fits' }),
  post(LEASES, lease('two', {}, { annotations: { big: 'x'.repeat(262_142) } })),
]);
testCase('finalizers must be qualified names', [
  post(LEASES, lease('one', {}, { finalizers: ['unqualified'] })),
  post(LEASES, lease('one', {}, { finalizers: ['a b/c'] })),
]);
testCase(
  'owners must be named completely',
  [
    post(
      LEASES,
      lease(
        'one',
        {},
        { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: '', uid: '' }] },
      ),
    ),
  ],
  whyNotUntil(36, 'names a wrong owner without its place in the list'),
);
testCase('a PUT needs the name of the path', [put(ONE, lease('two')), put(ONE, { metadata: {} })]);
testCase('a PUT creates a Lease that does not exist', [
  put(ONE, lease('one', { leaseDurationSeconds: 3 })),
  get(ONE),
]);
testCase('a PUT that changes nothing leaves the revision alone', [
  post(LEASES, lease('one', { holderIdentity: 'me' }), { as: 'made' }),
  put(
    ONE,
    lease('one', { holderIdentity: 'me' }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  ),
  put(
    ONE,
    lease('one', { holderIdentity: 'you' }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  ),
]);
testCase('a dry run answers as if, and stores nothing', [
  post(`${LEASES}?dryRun=All`, lease('one')),
  get(ONE),
  post(LEASES, lease('one'), { as: 'made' }),
  merge(`${ONE}?dryRun=All`, { metadata: { labels: { a: 'b' } } }),
  del(`${ONE}?dryRun=All`),
  get(ONE),
]);
testCase('options have to make sense', [
  post(`${LEASES}?dryRun=Some`, lease('one')),
  post(`${LEASES}?fieldValidation=Perhaps`, lease('one')),
  merge(`${ONE}?dryRun=Some`, {}),
]);
testCase('unknown members are dropped with a warning, or refused if that is wanted', [
  post(LEASES, { ...lease('one', { color: 'red' }), extra: 1 }),
  post(`${LEASES}?fieldValidation=Strict`, lease('two', { color: 'red' }, { shape: 'round' })),
  post(`${LEASES}?fieldValidation=Ignore`, lease('three', { color: 'red' })),
]);
testCase('lists come in the order of names, empty ones too', [
  get(LEASES),
  ...['b', 'a', 'c'].map((name) => post(LEASES, lease(name))),
  get(LEASES),
]);
testCase('resources that do not exist', [
  get('/apis/coordination.k8s.io/v1/nonsense'),
  get('/api/v1/nonsense'),
  get('/apis/nonsense.example.com/v1/things'),
  get('/nonsense'),
  get('/apis/coordination.k8s.io/v9/leases'),
]);
testCase('paths with a namespace too many or too few', [
  get('/api/v1/namespaces/$ns/nodes'),
  get('/api/v1/namespaces/$ns/nodes/n'),
  get('/apis/coordination.k8s.io/v1/leases/one'),
  get('/apis/coordination.k8s.io/v1/namespaces/$ns/leases/one/two/three'),
]);
testCase('a long generateName is cut', [
  post(LEASES, { metadata: { generateName: 'x'.repeat(70) } }),
]);
testCase('methods that a path does not have', [
  post(ONE, lease('one')),
  put(LEASES, lease('one')),
  merge(LEASES, {}),
  { do: 'request', method: 'OPTIONS', path: LEASES },
]);
