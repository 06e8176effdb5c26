/** Tests what a report writes in addition to its status: the cordon that the leader requested, and nothing else. */
import { expect, test } from 'vitest';
import { CORDON_ANNOTATION } from '../../drain/cordon-marks.ts';
import type { Node } from '../../kube/resources.ts';
import { encodeAgentPolicy, encodeSignal, type SignalData } from '../../signal/annotations.ts';
import { ROLLOUT_ANNOTATION } from '../../signal/names.ts';
import { IDLE } from '../journal.ts';
import { withReport } from './report-writer.ts';

const SIGNAL: SignalData = {
  planId: 'p1',
  created: '2026-11-20T08:00:00Z',
  command: { id: 0, kind: 'k0supdate', url: 'https://example.com/k0s', version: 'v1.36.3+k0s.2' },
};
const OWNER = 'plan-uid/2026-11-20T08:00:00Z';

function node(more: Partial<Node> = {}, cordonFor = OWNER, rolloutMark = OWNER): Node {
  const annotations = {
    ...encodeSignal(SIGNAL),
    [ROLLOUT_ANNOTATION]: rolloutMark,
    ...encodeAgentPolicy(cordonFor === '' ? {} : { cordonFor }),
    other: 'x',
  };
  return { kind: 'Node', metadata: { name: 'w1', annotations, labels: { pool: 'blue' } }, ...more };
}

test.each<[string, Node, 'Cordoning' | 'Restart', boolean | undefined, string | undefined]>([
  ['ready to be drained: cordoned in the same write', node(), 'Cordoning', true, OWNER],
  ['not if it reports another step', node(), 'Restart', undefined, undefined],
  ['not if nobody asked for it', node({}, ''), 'Cordoning', undefined, undefined],
  [
    "somebody else's cordon stays theirs",
    node({ spec: { unschedulable: true } }),
    'Cordoning',
    true,
    undefined,
  ],
  [
    'asked for beside an earlier signal, which another leader has written over: not',
    node({}, OWNER, 'plan-uid/2026-11-19T08:00:00Z'),
    'Cordoning',
    undefined,
    undefined,
  ],
  ['an object that is no Node', node({ kind: 'ControlNode' }), 'Cordoning', undefined, undefined],
])('whether a report cordons the node: %s', (_name, object, status, unschedulable, owner) => {
  const written: Node = withReport(
    object,
    SIGNAL,
    { kind: 'report', status },
    IDLE,
    Date.parse(SIGNAL.created),
  );
  expect([written.spec?.unschedulable, written.metadata.annotations?.[CORDON_ANNOTATION]]).toEqual([
    unschedulable,
    owner,
  ]);
  expect([written.metadata.labels, written.metadata.annotations?.['other']]).toEqual([
    { pool: 'blue' },
    'x',
  ]);
});
