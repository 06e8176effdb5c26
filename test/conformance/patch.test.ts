/** Tests the conformance of merge patches, JSON patches and strategic merge patches. */
import { get, jsonPatch, merge, post, type Step, strategic } from './harness/case.ts';
import {
  ANYTHING,
  LEASES,
  lease,
  PODS,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const W = `${WIDGETS}/w`;
const START = {
  a: 1,
  list: [1, 2, 3],
  map: { x: 'y', z: { deep: true } },
  'sl/ash': 'a',
  'til~de': 'b',
};

const merging = (...patches: unknown[]): Step[] => [
  post(WIDGETS, widget('w', START)),
  ...patches.map((patch) => merge(W, patch)),
];

const patching = (...patches: unknown[]): Step[] => [
  post(WIDGETS, widget('w', START)),
  ...patches.map((patch) => jsonPatch(W, patch)),
];

const pod = (metadata: object = {}, spec: object = {}): object => ({
  metadata: { name: 'p', ...metadata },
  spec: {
    schedulerName: 'nobody',
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: 'example.com/main:1' }],
    ...spec,
  },
});
const P = `${PODS}/p`;

const testCase = conformance('patch', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase(
  'merge patch: adds, changes and removes members',
  merging({ spec: { a: 2, b: 3, list: null } }),
);
testCase('merge patch: goes into maps', merging({ spec: { map: { x: null, z: { deeper: 1 } } } }));
testCase('merge patch: replaces lists as a whole', merging({ spec: { list: [9] } }));
testCase(
  'merge patch: puts a value where a map was',
  merging({ spec: { map: 5 } }, { spec: { map: { fresh: true } } }),
);
testCase(
  'merge patch: removing what is not there is no change',
  merging({ spec: { nothing: null } }),
);
testCase('merge patch: an empty patch is no change', merging({}, { spec: {} }));
testCase(
  'merge patch: nulls within new members are dropped',
  merging({ spec: { fresh: { a: null, b: 1 } } }),
);
testCase('merge patch: nulls in lists stay', merging({ spec: { list: [null, 1] } }));
testCase('merge patch: what is no object is refused', merging([1], '"text"', '5'));
testCase('merge patch: text that is no JSON is refused', merging('{', ''));
testCase('merge patch: a spec can be taken away', merging({ spec: null }));
testCase('merge patch: the kind cannot be changed', merging({ kind: 'Gadget' }));
testCase(
  'JSON patch: adds to maps and lists',
  patching(
    [{ op: 'add', path: '/spec/b', value: { c: [] } }],
    [{ op: 'add', path: '/spec/list/-', value: 4 }],
    [{ op: 'add', path: '/spec/list/0', value: 0 }],
  ),
);
testCase(
  'JSON patch: adds over what is there',
  patching([{ op: 'add', path: '/spec/a', value: 'new' }]),
);
testCase(
  'JSON patch: removes',
  patching([
    { op: 'remove', path: '/spec/list/1' },
    { op: 'remove', path: '/spec/map/x' },
  ]),
);
testCase(
  'JSON patch: replaces',
  patching([
    { op: 'replace', path: '/spec/list/0', value: 'first' },
    { op: 'replace', path: '/spec/map', value: {} },
  ]),
);
testCase(
  'JSON patch: moves and copies',
  patching([
    { op: 'move', from: '/spec/map/x', path: '/spec/moved' },
    { op: 'copy', from: '/spec/list', path: '/spec/copied' },
    { op: 'add', path: '/spec/copied/-', value: 'only here' },
  ]),
);
testCase(
  'JSON patch: escapes in paths',
  patching([
    { op: 'replace', path: '/spec/sl~1ash', value: 'one' },
    { op: 'replace', path: '/spec/til~0de', value: 'two' },
  ]),
);
testCase(
  'JSON patch: tests',
  patching([{ op: 'test', path: '/spec/map', value: { z: { deep: true }, x: 'y' } }]),
);
testCase(
  'JSON patch: a failed test fails all of it',
  patching(
    [
      { op: 'replace', path: '/spec/a', value: 2 },
      { op: 'test', path: '/spec/list', value: [] },
    ],
    [{ op: 'test', path: '/spec/a', value: 1 }],
  ),
);
testCase(
  'JSON patch: removing what is not there fails',
  patching([{ op: 'remove', path: '/spec/nothing' }]),
);
testCase(
  'JSON patch: replacing what is not there fails',
  patching([{ op: 'replace', path: '/spec/nothing', value: 1 }]),
);
testCase(
  'JSON patch: adding below what is not there fails',
  patching([{ op: 'add', path: '/spec/nothing/a', value: 1 }]),
);
testCase(
  'JSON patch: an index beyond the end fails',
  patching([{ op: 'add', path: '/spec/list/9', value: 1 }]),
);
testCase(
  'JSON patch: an index that is no number fails',
  patching([{ op: 'remove', path: '/spec/list/first' }]),
);
testCase(
  'JSON patch: an operation that is none fails',
  patching([{ op: 'ponder', path: '/spec/a' }]),
);
testCase(
  'JSON patch: what is no list is refused',
  patching({ op: 'add', path: '/spec/b', value: 1 }),
);
testCase('JSON patch: an empty patch is no change', patching([]));
testCase('patches of an object that does not exist', [
  merge(W, {}),
  jsonPatch(W, []),
  strategic(`${LEASES}/none`, {}),
]);
testCase('a patch needs a media type that is known', [
  post(WIDGETS, widget('w')),
  merge(W, {}, { contentType: 'application/json' }),
  merge(W, {}, { contentType: 'text/plain' }),
  strategic(W, { spec: { a: 1 } }),
]);
testCase('a patch whose result has the wrong type is refused', [
  post(LEASES, lease('one', { leaseDurationSeconds: 3 })),
  merge(`${LEASES}/one`, { spec: { leaseDurationSeconds: 'long' } }, { anyMessage: true }),
  merge(`${LEASES}/one`, { spec: 5 }, { anyMessage: true }),
  merge(`${LEASES}/one`, { spec: { leaseDurationSeconds: -1 } }),
]);
testCase('strategic merge patch: maps merge, null removes', [
  post(
    LEASES,
    lease('one', { holderIdentity: 'a', leaseDurationSeconds: 3 }, { labels: { a: 'b', c: 'd' } }),
  ),
  strategic(`${LEASES}/one`, {
    metadata: { labels: { a: null, e: 'f' } },
    spec: { holderIdentity: null },
  }),
]);
testCase('strategic merge patch: finalizers are a set', [
  post(LEASES, lease('one', {}, { finalizers: ['example.com/a'] })),
  strategic(`${LEASES}/one`, { metadata: { finalizers: ['example.com/b', 'example.com/a'] } }),
  strategic(`${LEASES}/one`, {
    metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] },
  }),
]);
testCase('strategic merge patch: conditions of a pod merge by type', [
  post(PODS, pod()),
  strategic(`${P}/status`, { status: { conditions: [{ type: 'A', status: 'True' }] } }),
  strategic(`${P}/status`, {
    status: { conditions: [{ type: 'B', status: 'False', reason: 'Why' }] },
  }),
  strategic(`${P}/status`, { status: { conditions: [{ type: 'A', status: 'False' }] } }),
  strategic(`${P}/status`, { status: { conditions: [{ type: 'B', $patch: 'delete' }] } }),
  get(P),
]);
testCase('strategic merge patch: $patch replaces or deletes a map', [
  post(
    LEASES,
    lease('one', { holderIdentity: 'a' }, { labels: { a: 'b' }, annotations: { x: 'y' } }),
  ),
  strategic(`${LEASES}/one`, { metadata: { labels: { $patch: 'replace', c: 'd' } } }),
  strategic(`${LEASES}/one`, { metadata: { annotations: { $patch: 'delete' } } }),
]);
