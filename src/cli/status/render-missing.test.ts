/**
 * Shows what status and why say of a node that was deleted before its turn: it is missing, and it is not next. If it
 * has joined again, no policy is given as the reason why it is a target.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from '../why/why-command.ts';
import type { ShownStatus } from './json-form.ts';
import { render } from './render.ts';

const NOW = T0 + 10 * MINUTE;
const LOOK = { hasColours: false, size: () => ({ columns: 200, rows: 24 }) };
const update = buildUpdate({ targets: { workers: listed('w1', 'w2', 'w3') } });

async function look(
  state: string,
  present: readonly string[],
  policy?: UpgradePolicySpec,
): Promise<ShownStatus> {
  const states = { w1: 'SignalSent', w2: 'SignalPending', w3: 'SignalPending' };
  const plan = buildPlan(
    { commands: [{ k0supdate: update }] },
    statusOf(state, [], recorded(states)),
  );
  const plans = await lookAt(
    [plan],
    [],
    present.map((name) => buildNode(name)),
    NOW,
    policy === undefined
      ? buildViewParts()
      : buildViewParts({}, [buildUpgradePolicy('nightly', policy)]),
  );
  return { leader: { state: 'held', holder: 'abc', since: later(0) }, plans };
}

function textsOf(status: ShownStatus, ...nodes: readonly string[]): string[] {
  return [
    render(status, 'text', NOW, LOOK),
    render(status, 'wide', NOW, LOOK),
    ...[undefined, ...nodes].map((node) => whyLines(status, node, NOW, mediumOf(LOOK)).join('\n')),
  ];
}

test.each<[readonly string[], string, string]>([
  [['w1', 'w3'], 'w2', 'w2 is not in the cluster: unless it joins again'],
  [['w1'], 'w2', 'w2, w3 are not in the cluster: unless they join again'],
])(
  'with the nodes %j, a node that was deleted before its turn is told as missing and not as next',
  async (present, node, words) => {
    const status = await look('SchedulableWait', present);
    expect(status.plans[0]?.next).toEqual(present.includes('w3') ? ['w3'] : []);
    const [text, wide, why, ofNode] = textsOf(status, node);
    for (const each of [text, wide, why])
      expect(each).toContain(
        `\n  missing ${words} before then, the plan ends as incomplete at the turn of a missing node`,
      );
    expect(ofNode).toContain(
      '\n  missing w2 is not in the cluster: unless it joins again before then',
    );
    expect(ofNode).not.toMatch(/among the next to start|other nodes start before it/);
  },
);

test('with goneNodes: Skip, a missing worker does not end the plan, and every output says so', async () => {
  const status = await look('SchedulableWait', ['w1', 'w3'], { goneNodes: 'Skip' });
  expect(status.plans[0]?.leavesOutGone).toBe(true);
  for (const text of textsOf(status, 'w2'))
    expect(text).toContain(
      '\n  missing w2 is not in the cluster: unless it joins again before then, the plan goes on without a missing node at its turn',
    );
});

test.each([
  ['whose nodes are all there', 'SchedulableWait', ['w1', 'w2', 'w3']],
  ['that has ended', 'ApplyFailed', ['w1', 'w3']],
])('no node is told as missing by a plan %s', async (_case, state, present) => {
  for (const text of textsOf(await look(state, present), 'w3'))
    expect(text).not.toContain('\n  missing');
});

test.each<[string, UpgradePolicySpec]>([
  ['without a policy for new nodes', {}],
  ['with a policy that includes new nodes', { newNodes: 'Include' }],
])(
  'a target whose Node joined again is still called a target, and not included by a policy, %s',
  async (_case, policy) => {
    const states = { w1: 'SignalSent', w2: 'SignalPending', w3: 'SignalPending' };
    const plan = buildPlan(
      { commands: [{ k0supdate: update }] },
      statusOf('SchedulableWait', [], recorded(states)),
    );
    const nodes = ['w1', 'w2', 'w3'].map((name) => buildNode(name));
    const remade = nodes.map((node) =>
      node.metadata.name === 'w2'
        ? { ...node, metadata: { ...node.metadata, creationTimestamp: later(5 * MINUTE) } }
        : node,
    );
    const parts = buildViewParts({}, [buildUpgradePolicy('nightly', policy)]);
    const [shown] = await lookAt([plan], [], remade, NOW, parts);
    expect(shown?.joined).toEqual([
      {
        name: 'w2',
        included: true,
        message: 'w2 joined after the plan began, and is one of its targets',
      },
    ]);
  },
);
