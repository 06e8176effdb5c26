/** Shows what a request for an eviction contains, and how its state is read and told to people. */
import { describe, expect, test } from 'vitest';
import { buildPod } from '../../test/support/builders/pods.ts';
import type { Condition } from '../kube/resources.ts';
import {
  drainedNode,
  type EvictionRequest,
  foreign,
  judgeRequest,
  type RequestedEviction,
  requestFor,
} from './eviction-request-objects.ts';

const POD = buildPod('web-0', { uid: 'uid-0' });
const NOW = Date.UTC(2026, 0, 1, 12);

/** Returns a request that the controller of Kubernetes has seen. */
function seen(change: Partial<EvictionRequest> = {}): EvictionRequest {
  return { ...requestFor(POD, 'n1'), status: { observedGeneration: 1 }, ...change };
}

function evictionWith(status?: NonNullable<RequestedEviction['status']>): RequestedEviction {
  return {
    metadata: { name: 'pod-uid-0', namespace: 'default' },
    spec: { target: { pod: { name: 'web-0', uid: 'uid-0' } } },
    ...(status === undefined ? {} : { status }),
  };
}

/** Returns the state and what people read about it. */
function toldOf(...[request, evictions, now]: Parameters<typeof judgeRequest>): string {
  const verdict = judgeRequest(request, evictions, now);
  if (verdict.kind === 'absent') return 'absent';
  if (verdict.kind === 'failed') return `failed: ${verdict.reason}`;
  const kind = verdict.kind === 'idle' && !verdict.isObserved ? 'idle, not observed' : verdict.kind;
  return `${kind}: ${verdict.describe('default/web-0')}`;
}

test('the request for a pod names the pod, its node and Refit, and is deleted together with the pod', () => {
  expect(requestFor(POD, 'n1')).toEqual({
    apiVersion: 'lifecycle.k8s.io/v1alpha1',
    kind: 'EvictionRequest',
    metadata: {
      name: 'refit-drain-uid-0',
      namespace: 'default',
      labels: {
        'upgrade.refit.dev/drain': 'requester',
        'app.kubernetes.io/managed-by': 'refit',
      },
      annotations: { 'upgrade.refit.dev/drained-node': 'n1' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'uid-0' }],
    },
    spec: {
      target: { pod: { name: 'web-0', uid: 'uid-0' } },
      requester: 'upgrade.refit.dev/drain',
      intent: 'Eviction',
    },
  });
});

test('the request names the drained node, and a request without annotations names none', () => {
  expect(drainedNode(requestFor(POD, 'n1'))).toBe('n1');
  expect(drainedNode(seen({ metadata: { name: 'r' } }))).toBeUndefined();
});

test('a text of another component is cut only if it has more than 300 characters', () => {
  expect(foreign('x'.repeat(300))).toBe('x'.repeat(300));
  expect(foreign('x'.repeat(301))).toBe(`${'x'.repeat(300)}…`);
});

describe('a request without an active responder', () => {
  test('is absent if it does not exist', () => {
    expect(toldOf(undefined, [], NOW)).toBe('absent');
  });

  test('has not been seen if the controller of Kubernetes has written no status', () => {
    const text =
      'idle, not observed: the EvictionRequest of default/web-0 has not been seen by the controller of Kubernetes yet';
    expect(toldOf(requestFor(POD, 'n1'), [], NOW)).toBe(text);
    expect(toldOf(seen({ status: {} }), [], NOW)).toBe(text);
  });

  test('counts as observed if somebody else deletes it', () => {
    const { metadata } = seen();
    const deleted = { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    const text = 'idle: the EvictionRequest of default/web-0 is being deleted by somebody else';
    expect(toldOf(seen({ metadata: deleted }), [], NOW)).toBe(text);
    const { status: _unseen, ...unseen } = seen({ metadata: deleted });
    expect(toldOf(unseen, [], NOW)).toBe(text);
  });

  test.each<[string, RequestedEviction[]]>([
    ['there is no Eviction', []],
    ['the Eviction has no status', [evictionWith()]],
    ['the Eviction has no responders', [evictionWith({})]],
    [
      'no responder is active',
      [
        evictionWith({
          targetResponders: [{ name: 'acme.example/move', state: 'Completed' }],
          responders: [{ name: 'acme.example/move', message: 'moved' }],
        }),
      ],
    ],
  ])('has no active responder if %s', (_what, evictions) => {
    expect(toldOf(seen(), evictions, NOW)).toBe(
      'idle: the EvictionRequest of default/web-0 has no active responder yet',
    );
  });

  test('is accepted if its Eviction cannot be read, and people read why', () => {
    expect(toldOf(seen(), { problem: 'evictions is forbidden' }, NOW)).toBe(
      'active: the EvictionRequest of default/web-0 is accepted; its Eviction cannot be read: evictions is forbidden',
    );
  });

  test('has failed if somebody has changed its intent', () => {
    const { spec } = seen();
    expect(toldOf(seen({ spec: { ...spec, intent: 'Withdrawn' } }), [], NOW)).toBe(
      'failed: somebody has set its intent to Withdrawn',
    );
  });
});

test.each<[string, Condition[], string]>([
  [
    'a reason and a message',
    [{ type: 'Failed', status: 'True', reason: 'Invalid', message: 'no such pod' }],
    'failed: it failed: Invalid, no such pod',
  ],
  [
    'a message alone',
    [{ type: 'Failed', status: 'True', message: 'no such pod' }],
    'failed: it failed: no such pod',
  ],
  [
    'an empty reason',
    [{ type: 'Failed', status: 'True', reason: '', message: 'no such pod' }],
    'failed: it failed: no such pod',
  ],
  [
    'an empty message',
    [{ type: 'Failed', status: 'True', reason: 'Invalid', message: '' }],
    'failed: it failed: Invalid',
  ],
  [
    'the status False',
    [{ type: 'Failed', status: 'False', reason: 'Invalid' }],
    'idle: the EvictionRequest of default/web-0 has no active responder yet',
  ],
  [
    'another condition that is True',
    [{ type: 'Accepted', status: 'True', reason: 'Valid' }],
    'idle: the EvictionRequest of default/web-0 has no active responder yet',
  ],
])('a request whose condition has %s is told so', (_what, conditions, expected) => {
  expect(toldOf(seen({ status: { observedGeneration: 1, conditions } }), [], NOW)).toBe(expected);
});

describe('a request with an active responder', () => {
  const targetResponders = [
    { name: 'first.example/a', state: 'Interrupted' },
    { name: 'second.example/b', state: 'Active' },
  ];
  type Report = NonNullable<NonNullable<RequestedEviction['status']>['responders']>[number];
  const toldBy = (report?: Omit<Report, 'name'>): string => {
    const responders = [
      { name: 'first.example/a', message: 'it gave up', heartbeatTime: '2026-01-01T12:00:00Z' },
      ...(report === undefined ? [] : [{ name: 'second.example/b', ...report }]),
    ];
    return toldOf(seen(), [evictionWith(), evictionWith({ targetResponders, responders })], NOW);
  };

  test('names the responder that is active, also if another one has reported', () => {
    expect(toldBy()).toBe(
      'active: responder second.example/b evicts default/web-0 (it has not reported yet)',
    );
  });

  test('names the responder if no responder has reported', () => {
    expect(toldOf(seen(), [evictionWith({ targetResponders })], NOW)).toBe(
      'active: responder second.example/b evicts default/web-0 (it has not reported yet)',
    );
  });

  test('shows the message of the active responder', () => {
    expect(toldBy({ heartbeatTime: '2026-01-01T12:00:00Z', message: 'it copies data' })).toBe(
      'active: responder second.example/b evicts default/web-0: it copies data',
    );
  });

  test('shows nothing more than the name if the report is recent and says nothing', () => {
    expect(toldBy({ heartbeatTime: '2026-01-01T11:55:00.001Z', message: '' })).toBe(
      'active: responder second.example/b evicts default/web-0',
    );
  });

  test('shows the time of a report that is five minutes old', () => {
    expect(toldBy({ heartbeatTime: '2026-01-01T11:55:00Z' })).toBe(
      'active: responder second.example/b evicts default/web-0 (it reported last at 2026-01-01T11:55:00Z)',
    );
  });

  test.each([
    ['2026-01-01T12:30:01Z', 'done by 2026-01-01T12:31Z'],
    ['2026-01-01T12:30:00Z', 'done by 2026-01-01T12:30Z'],
    ['soon', 'done by soon'],
  ])('shows the expected end %s as "%s"', (expectedCompletionTime, text) => {
    expect(toldBy({ heartbeatTime: '2026-01-01T12:00:00Z', expectedCompletionTime })).toBe(
      `active: responder second.example/b evicts default/web-0 (${text})`,
    );
  });
});
