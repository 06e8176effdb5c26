/**
 * Tests what `refit why NODE` names as the cause of a wait that has several causes, and which command it proposes
 * first.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import type { Node } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { HOLD_ANNOTATION } from '../../signal/holds.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from './why-command.ts';

const NOW = T0 + MINUTE;
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });

const VERSION = 'v1.36.3+k0s.2';
const NAMES = ['w1', 'w2', 'w3', 'w4', 'w5'];
const CANARY = { selector: { matchLabels: { wave: 'first' } } };
const LABELS: Readonly<Record<string, string>> = { w1: 'first', w2: 'second', w4: 'first' };
const HOLD = { [HOLD_ANNOTATION]: JSON.stringify({ by: 'ann', since: later(0) }) };

/** A cluster whose w5 is cordoned and whose w4 is held. The wave of w3 is the last one, and needs approval. */
function workers({ isHeld = true, isCordoned = true } = {}): Node[] {
  return NAMES.map((name) => {
    const node = buildNode(name, {
      labels: { wave: LABELS[name] ?? 'last' },
      ...(name === 'w4' && isHeld && { annotations: HOLD }),
    });
    return name === 'w5' && isCordoned ? { ...node, spec: { unschedulable: true } } : node;
  });
}

const WAVES: UpgradePolicySpec['waves'] = [
  CANARY,
  { selector: { matchLabels: { wave: 'second' } } },
  { approval: 'Manual' },
];

async function whyOf(
  node: string | undefined,
  spec: UpgradePolicySpec,
  states: Readonly<Record<string, string>> = {},
  fleet = workers(),
): Promise<string> {
  const targets = { workers: { ...listed(...NAMES), limits: { concurrent: 3 } } };
  const pending = Object.fromEntries(NAMES.map((name) => [name, 'SignalPending']));
  const plan = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets }) }] },
    statusOf('SchedulableWait', [], recorded({ ...pending, ...states })),
  );
  const parts = buildViewParts({}, [buildUpgradePolicy('slow', spec)]);
  const plans = await lookAt([plan], [], fleet, NOW, parts);
  const leader = { state: 'held', holder: 'a', since: later(0) } as const;
  return whyLines({ leader, plans }, node, NOW, PIPE).join('\n');
}

const FULL =
  '1 of 5 nodes is not Ready, unschedulable or at work (w5); UpgradePolicy slow allows 1 (TooManyUnavailable';

test('a node of a later wave names the cause of the first wave, its own place and the approval of its own wave', async () => {
  const text = await whyOf('w3', { maxUnavailable: 1, waves: WAVES });
  const [cause, place, approval] = [
    `w1 waits: ${FULL}`,
    'w3 comes after w1 in the waves of UpgradePolicy slow (EarlierNodes',
    'wave 3 needs approval by UpgradePolicy slow (WaveNeedsApproval',
  ].map((line) => text.indexOf(line));
  expect(text).not.toContain('w2');
  expect(cause).toBeGreaterThan(0);
  expect(place).toBeGreaterThan(Number(cause));
  expect(approval).toBeGreaterThan(Number(place));
  expect(text).toContain('you can kubectl uncordon w5, refit approve autopilot/autopilot --wave 3');
});

test('a plan that waits for a node that somebody cordoned proposes to uncordon it, and no end of a hold that would not help', async () => {
  const text = await whyOf(undefined, { maxUnavailable: 1, waves: WAVES });
  expect(text).toContain('\n  you can kubectl uncordon w5\n');
  expect(text).not.toContain('you can refit unhold');
});

test('a zone whose nodes somebody cordoned proposes to uncordon them', async () => {
  const fleet = workers().map((node) => ({
    ...node,
    metadata: { ...node.metadata, labels: { ...node.metadata.labels, zone: 'a' } },
  }));
  const perDomain = { label: 'zone', maxUnavailable: 1 };
  const text = await whyOf('w1', { perDomain }, {}, fleet);
  expect(text).toContain(
    'ends    when one of those nodes is available again (only cordoned: kubectl uncordon w5), or perDomain',
  );
  expect(text).toContain('\n  you can kubectl uncordon w5');
});

test('a node that is not Ready, or at work, is not among the nodes to uncordon', async () => {
  const fleet = workers({ isCordoned: false }).map((node) =>
    node.metadata.name === 'w5'
      ? { ...node, spec: { unschedulable: true }, status: { conditions: [] } }
      : node,
  );
  expect(await whyOf(undefined, { maxUnavailable: 1 }, {}, fleet)).not.toContain('uncordon');
});

test('a plan in which only held nodes are left proposes to end the hold', async () => {
  const done = Object.fromEntries(
    ['w1', 'w2', 'w3', 'w5'].map((name) => [name, 'SignalCompleted']),
  );
  const text = await whyOf(undefined, {}, done, workers({ isCordoned: false }));
  expect(text).toContain('\n  you can refit unhold w4\n');
});

test('a node of a wave that has neither begun nor its approval is not called one of the next to start', async () => {
  const policy = {
    waves: [
      CANARY,
      { selector: { matchLabels: { wave: 'second' } }, approval: 'Manual' as const },
      {},
    ],
  };
  const done = { w1: 'SignalCompleted' };
  const text = await whyOf('w3', policy, done, workers({ isCordoned: false }));
  expect(text).toContain('wave 2 needs approval by UpgradePolicy slow');
  expect(text).toContain('next    not yet: other nodes start before it');
  expect(await whyOf(undefined, policy, done)).toMatch(/\n {2}next {4}w2\n/);
  // The place of a held node in the queue says nothing about its start.
  expect(await whyOf('w4', policy, done)).not.toContain('next  ');
});

test('a node that waits for its maintenance window names the command that opens it', async () => {
  const windows = [{ start: '03:00', length: '1h', timeZone: 'UTC' }];
  expect(await whyOf('w1', { windows })).toContain(
    '\n  you can refit start autopilot/autopilot --now --for 2h',
  );
});

test('a node that has not started in a plan that is about to be refused names why', async () => {
  const fleet = workers().map(({ metadata, ...node }) => ({
    ...node,
    metadata: { ...metadata, labels: {} },
  }));
  const text = await whyOf('w1', {}, {}, fleet);
  expect(text).toContain('\n  why     w1 needs the labels kubernetes.io/os and kubernetes.io/arch');
});

test('a node that ran the version already is not said to have gone from it to itself', async () => {
  const created = later(1000);
  const fleet = workers().map((node) =>
    node.metadata.name === 'w1'
      ? signalled(node, { created, status: 'Completed' }, encodeReport({ created, from: VERSION }))
      : node,
  );
  const text = await whyOf('w1', {}, { w1: 'SignalCompleted' }, fleet);
  expect(text).toContain(`ago, ran ${VERSION} already before its last attempt`);
});
