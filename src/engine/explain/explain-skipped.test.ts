/** Tests why skipped targets wait, for each gate that checks single targets. */

import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { needsOf } from '../assess/needs.ts';
import { UNASKED } from '../model/asked.ts';
import type { Wait } from '../model/decision.ts';
import type { Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { explainToPeople } from './explain.ts';

const NOW = T0 + MINUTE;
const moving = buildTarget('w3', 'intended');
const sick = { ready: false, readySince: later(0) };

interface Situation {
  readonly stages?: readonly Stage[];
  readonly facts?: Parameters<typeof buildSnapshot>[1];
  readonly more?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
}

/**
 * Returns the targets that are reported as held, each with its gate. A `*` means that the gate holds other targets of
 * the stage as well.
 */
function told({
  stages = [buildStage('worker', ['w1', 'w2', moving, 'w4'])],
  facts,
  more,
  policy,
}: Situation): string[] {
  const w3 = { observation: working('Restart') };
  const snapshot = withParts(buildSnapshot(buildRollout(stages), { w3, ...facts }), more);
  const line = ({ target = '', gate, ofStage }: Wait): string =>
    `${target} ${gate}${ofStage ? '*' : ''}`.trim();
  return explainToPeople(assess(snapshot, buildPolicy(policy), NOW)).waits.map(line);
}

const MOVING = 'w3 working';
const SLOT = 'slots*';
const two = [buildStage('worker', ['w1', 'w2', moving, 'w4'], { maxInFlight: 2 })];
const OLD = 'v1.34.9+x.0';
const brought = buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w3', 'done')], {
  version: 'v1.35.4+x.0',
});
const follow = [brought, buildStage('worker', ['w1', moving], { command: 1 })];

test.each<[string, Situation, string[]]>([
  ['nothing but the slot', {}, [MOVING, SLOT]],
  ['a node that is not Ready', { facts: { w1: sick } }, [MOVING, SLOT, 'w1 node-ready']],
  ['a node that is not Ready, whose turn has not come', { facts: { w4: sick } }, [MOVING, SLOT]],
  [
    'a node that is asked anyway, since a slot is free',
    { stages: two, facts: { w1: sick } },
    [MOVING, 'w1 node-ready', SLOT],
  ],
  [
    'a node that does not tell yet what an earlier command brought',
    { stages: follow, facts: { w1: { version: OLD } }, more: { cluster: { apiServers: [] } } },
    [MOVING, SLOT, 'w1 versions-follow'],
  ],
  [
    'as many nodes as may be are unavailable: once, of all that it holds',
    {
      more: { cluster: { fleet: ['w1', 'w2', 'w3', 'w4'].map((name) => buildNode(name)) } },
      policy: { name: 'careful', maxUnavailable: { nodes: 1 } },
    },
    [MOVING, SLOT, 'w1 nodes-available*'],
  ],
  [
    'a gate that says the same of all: instead of the queue, which would not end it',
    { facts: { w1: sick }, policy: { paused: true } },
    [MOVING, 'w1 not-paused*'],
  ],
])('the waits of a plan whose slots are taken: %s', (_name, situation, lines) => {
  expect(told(situation)).toEqual(lines);
});

test('read-only commands ask why a few of the passed nodes wait, and the leader asks about none', () => {
  const names = Array.from({ length: 12 }, (_, index) => `a${index}`);
  const facts = Object.fromEntries(
    names.map((name) => [name, { node: nodeOf(name), drainPreview: UNASKED }]),
  );
  const snapshot = buildSnapshot(buildRollout([buildStage('worker', [...names, moving])]), {
    ...facts,
    w3: { observation: working('Restart') },
  });
  expect(explainToPeople(assess(snapshot, buildPolicy(), NOW)).probes).toHaveLength(10);
  expect(needsOf(assess(snapshot, buildPolicy(), NOW)).probes).toEqual([]);
});

function nodeOf(name: string) {
  return { name, unschedulable: false, cordonOwner: undefined, taintOwner: undefined };
}
