/** Conformance of merge patches, JSON patches and strategic merge patches. */
import { type Case, get, jsonPatch, merge, post, strategic } from './harness/case.ts';
import { ANYTHING, LEASES, lease, PODS, WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const W = `${WIDGETS}/w`;
const START = { a: 1, list: [1, 2, 3], map: { x: 'y', z: { deep: true } }, 'sl/ash': 'a', 'til~de': 'b' };

const merging = (name: string, ...patches: unknown[]): Case => ({
  name: `merge patch: ${name}`,
  steps: [post(WIDGETS, widget('w', START)), ...patches.map((patch) => merge(W, patch))],
});

const patching = (name: string, ...patches: unknown[]): Case => ({
  name: `JSON patch: ${name}`,
  steps: [post(WIDGETS, widget('w', START)), ...patches.map((patch) => jsonPatch(W, patch))],
});

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

const cases: readonly Case[] = [
  merging('adds, changes and removes members', { spec: { a: 2, b: 3, list: null } }),
  merging('goes into maps', { spec: { map: { x: null, z: { deeper: 1 } } } }),
  merging('replaces lists as a whole', { spec: { list: [9] } }),
  merging('puts a value where a map was', { spec: { map: 5 } }, { spec: { map: { fresh: true } } }),
  merging('removing what is not there is no change', { spec: { nothing: null } }),
  merging('an empty patch is no change', {}, { spec: {} }),
  merging('nulls within new members are dropped', { spec: { fresh: { a: null, b: 1 } } }),
  merging('nulls in lists stay', { spec: { list: [null, 1] } }),
  merging('what is no object is refused', [1], '"text"', '5'),
  merging('text that is no JSON is refused', '{', ''),
  merging('a spec can be taken away', { spec: null }),
  merging('the kind cannot be changed', { kind: 'Gadget' }),
  patching(
    'adds to maps and lists',
    [{ op: 'add', path: '/spec/b', value: { c: [] } }],
    [{ op: 'add', path: '/spec/list/-', value: 4 }],
    [{ op: 'add', path: '/spec/list/0', value: 0 }],
  ),
  patching('adds over what is there', [{ op: 'add', path: '/spec/a', value: 'new' }]),
  patching('removes', [
    { op: 'remove', path: '/spec/list/1' },
    { op: 'remove', path: '/spec/map/x' },
  ]),
  patching('replaces', [
    { op: 'replace', path: '/spec/list/0', value: 'first' },
    { op: 'replace', path: '/spec/map', value: {} },
  ]),
  patching('moves and copies', [
    { op: 'move', from: '/spec/map/x', path: '/spec/moved' },
    { op: 'copy', from: '/spec/list', path: '/spec/copied' },
    { op: 'add', path: '/spec/copied/-', value: 'only here' },
  ]),
  patching('escapes in paths', [
    { op: 'replace', path: '/spec/sl~1ash', value: 'one' },
    { op: 'replace', path: '/spec/til~0de', value: 'two' },
  ]),
  patching('tests', [{ op: 'test', path: '/spec/map', value: { z: { deep: true }, x: 'y' } }]),
  patching(
    'a failed test fails all of it',
    [
      { op: 'replace', path: '/spec/a', value: 2 },
      { op: 'test', path: '/spec/list', value: [] },
    ],
    [{ op: 'test', path: '/spec/a', value: 1 }],
  ),
  patching('removing what is not there fails', [{ op: 'remove', path: '/spec/nothing' }]),
  patching('replacing what is not there fails', [{ op: 'replace', path: '/spec/nothing', value: 1 }]),
  patching('adding below what is not there fails', [{ op: 'add', path: '/spec/nothing/a', value: 1 }]),
  patching('an index beyond the end fails', [{ op: 'add', path: '/spec/list/9', value: 1 }]),
  patching('an index that is no number fails', [{ op: 'remove', path: '/spec/list/first' }]),
  patching('an operation that is none fails', [{ op: 'ponder', path: '/spec/a' }]),
  patching('what is no list is refused', { op: 'add', path: '/spec/b', value: 1 }),
  patching('an empty patch is no change', []),
  {
    name: 'patches of an object that does not exist',
    steps: [merge(W, {}), jsonPatch(W, []), strategic(`${LEASES}/none`, {})],
  },
  {
    name: 'a patch needs a media type that is known',
    steps: [
      post(WIDGETS, widget('w')),
      merge(W, {}, { contentType: 'application/json' }),
      merge(W, {}, { contentType: 'text/plain' }),
      strategic(W, { spec: { a: 1 } }),
    ],
  },
  {
    name: 'a patch whose result has the wrong type is refused',
    steps: [
      post(LEASES, lease('one', { leaseDurationSeconds: 3 })),
      merge(`${LEASES}/one`, { spec: { leaseDurationSeconds: 'long' } }, { anyMessage: true }),
      merge(`${LEASES}/one`, { spec: 5 }, { anyMessage: true }),
      merge(`${LEASES}/one`, { spec: { leaseDurationSeconds: -1 } }),
    ],
  },
  {
    name: 'strategic merge patch: maps merge, null removes',
    steps: [
      post(LEASES, lease('one', { holderIdentity: 'a', leaseDurationSeconds: 3 }, { labels: { a: 'b', c: 'd' } })),
      strategic(`${LEASES}/one`, { metadata: { labels: { a: null, e: 'f' } }, spec: { holderIdentity: null } }),
    ],
  },
  {
    name: 'strategic merge patch: finalizers are a set',
    steps: [
      post(LEASES, lease('one', {}, { finalizers: ['example.com/a'] })),
      strategic(`${LEASES}/one`, { metadata: { finalizers: ['example.com/b', 'example.com/a'] } }),
      strategic(`${LEASES}/one`, { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] } }),
    ],
  },
  {
    name: 'strategic merge patch: conditions of a pod merge by type',
    steps: [
      post(PODS, pod()),
      strategic(`${P}/status`, { status: { conditions: [{ type: 'A', status: 'True' }] } }),
      strategic(`${P}/status`, { status: { conditions: [{ type: 'B', status: 'False', reason: 'Why' }] } }),
      strategic(`${P}/status`, { status: { conditions: [{ type: 'A', status: 'False' }] } }),
      strategic(`${P}/status`, { status: { conditions: [{ type: 'B', $patch: 'delete' }] } }),
      get(P),
    ],
  },
  {
    name: 'strategic merge patch: $patch replaces or deletes a map',
    steps: [
      post(LEASES, lease('one', { holderIdentity: 'a' }, { labels: { a: 'b' }, annotations: { x: 'y' } })),
      strategic(`${LEASES}/one`, { metadata: { labels: { $patch: 'replace', c: 'd' } } }),
      strategic(`${LEASES}/one`, { metadata: { annotations: { $patch: 'delete' } } }),
    ],
  },
];

conformance('patch', cases, [widgetFixture(widgetDefinition(ANYTHING))]);
