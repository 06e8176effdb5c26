/**
 * Tests the conformance of limits: the size of a body, the size of a stored object, and the message if a limit is
 * exceeded.
 */
import { apply, get, jsonPatch, merge, post, put } from './harness/case.ts';
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

const testCase = conformance('sizes', [
  widgetFixture(widgetDefinition(ANYTHING, { status: ANYTHING })),
]);

const KIB = 1024;
const MIB = 1024 * KIB;
const text = (bytes: number, letter = 'x'): string => letter.repeat(bytes);

testCase('a custom object just below what etcd takes', [
  post(WIDGETS, widget('w', { text: text(1.5 * MIB - 2 * KIB) })),
  get(`${WIDGETS}/w`),
]);
testCase(
  'a custom object of just what etcd takes, which leaves nothing for the request around it',
  [post(WIDGETS, widget('w', { text: text(1.5 * MIB) })), get(`${WIDGETS}/w`)],
);
testCase('a custom object that grows too large, by any kind of write', [
  post(WIDGETS, widget('w', { text: text(900 * KIB) }), { as: 'made' }),
  put(
    `${WIDGETS}/w`,
    widget('w', { text: text(1600 * KIB) }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  ),
  merge(`${WIDGETS}/w`, { spec: { more: text(700 * KIB, 'y') } }),
  jsonPatch(`${WIDGETS}/w`, [{ op: 'add', path: '/spec/more', value: text(700 * KIB, 'y') }]),
  apply(`${WIDGETS}/w?fieldManager=me`, widget('w', { more: text(700 * KIB, 'y') })),
  get(`${WIDGETS}/w`),
]);
testCase('a status that does not fit beside its spec', [
  post(WIDGETS, widget('w', { text: text(900 * KIB) }), { as: 'made' }),
  put(
    `${WIDGETS}/w/status`,
    widget(
      'w',
      {},
      { resourceVersion: '{made.metadata.resourceVersion}' },
      { status: { text: text(700 * KIB, 'y') } },
    ),
  ),
  merge(`${WIDGETS}/w/status`, { status: { text: text(700 * KIB, 'y') } }),
  merge(`${WIDGETS}/w/status`, { status: { text: text(500 * KIB, 'y') } }),
]);
testCase('a dry run of what is too large stores nothing, and is told nothing', [
  post(`${WIDGETS}?dryRun=All`, widget('w', { text: text(1600 * KIB) })),
]);
testCase('an object that not even the connection to etcd takes', [
  post(WIDGETS, widget('w', { text: text(2.2 * MIB) }), { anyMessage: true }),
  post(LEASES, lease('one', { holderIdentity: text(2.2 * MIB) }), { anyMessage: true }),
]);
testCase('a body beyond what is read, whatever it is for', [
  post(WIDGETS, widget('w', { text: text(10) })),
  post(WIDGETS, widget('v', { text: text(3 * MIB) })),
  put(`${WIDGETS}/w`, widget('w', { text: text(3 * MIB) })),
  merge(`${WIDGETS}/w`, { spec: { text: text(3 * MIB) } }),
  jsonPatch(`${WIDGETS}/w`, [{ op: 'add', path: '/spec/text', value: text(3 * MIB) }]),
]);
