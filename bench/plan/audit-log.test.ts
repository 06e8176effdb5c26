/** Tests which calls count: the calls of the processes of Refit that change something, since the creation of the plan. */
import { expect, test } from 'vitest';
import { type AuditEvent, countMutatingCalls, parseAuditLog, sinceCreation } from './audit-log.ts';

function event(username: string, verb: string, resource: string, code = 200): AuditEvent {
  const [plural = '', subresource] = resource.split('/');
  const objectRef = {
    resource: plural,
    ...(subresource === undefined ? {} : { subresource }),
    name: 'n',
  };
  return { verb, user: { username }, objectRef, responseStatus: { code } };
}

test('every whole line is an event; one that is being written is none yet', () => {
  const line = JSON.stringify(event('admin', 'get', 'nodes'));
  expect(parseAuditLog(`${line}\n${line}\n{"verb":"up`)).toHaveLength(2);
  expect(parseAuditLog('')).toEqual([]);
});

test('what came before the plan was created, and the creation itself, do not count', () => {
  const after = event('refit-controller', 'update', 'plans/status');
  const events = [event('x', 'create', 'nodes'), event('admin', 'create', 'plans', 201), after];
  expect(sinceCreation(events, 'n')).toEqual([after]);
  expect(sinceCreation(events, 'another')).toEqual([]);
});

test('calls are counted by side, verb and resource, most first, with those that were refused', () => {
  const events = [
    event('refit-controller', 'update', 'plans/status'),
    event('system:node:worker1', 'update', 'nodes'),
    event('system:node:worker2', 'update', 'nodes', 409),
    event('refit:controlnode:controller1', 'update', 'controlnodes'),
    event('refit-controller', 'create', 'events', 201),
    event('system:node:worker1', 'update', 'nodes'),
  ];
  const once = { calls: 1, refused: 0 };
  expect(countMutatingCalls(events)).toEqual([
    { side: 'agents on workers', verb: 'update', resource: 'nodes', calls: 3, refused: 1 },
    { side: 'controller', verb: 'update', resource: 'plans/status', ...once },
    { side: 'agents on controllers', verb: 'update', resource: 'controlnodes', ...once },
  ]);
});

test.each([
  ['reads', event('refit-controller', 'watch', 'nodes')],
  ['leases', event('refit-controller', 'update', 'leases')],
  ['Events', event('refit-controller', 'create', 'events', 201)],
  ["the rig's kubelet", event('admin', 'patch', 'nodes/status')],
  ['viewers', event('refit-viewer', 'update', 'nodes', 403)],
  ['what is about no object', { verb: 'create', user: { username: 'refit-controller' } }],
])('not counted: %s', (_, other) => {
  expect(countMutatingCalls([other])).toEqual([]);
});
