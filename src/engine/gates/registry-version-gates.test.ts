/** Tests the version gates before each target: their messages, and waits that end by themselves. */

import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import {
  buildFacts,
  buildTargets,
  NOTHING_KNOWN,
} from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { VersionRule } from '../../versions/plan-rules.ts';
import type { Stage } from '../model/rollout.ts';
import { apiServersFirst } from './api-servers-first.ts';
import type { GateInput, Verdict } from './types.ts';
import { versionsFollow } from './versions-follow.ts';

const OLD = 'v1.35.4+x.0';
const NOW = 'v1.36.3+x.0';
const NEXT = 'v1.37.1+x.0';
const NODE = { name: 'n1', unschedulable: false, cordonOwner: undefined, taintOwner: undefined };

const workers = (version: string, more: Partial<Stage> = {}): Stage =>
  buildStage('worker', ['n1', 'n2'], { command: 1, version, ...more });
const controllers = (version: string): Stage =>
  buildStage('controller', ['n1', 'c2'], { command: 1, version });
/**
 * Returns a function that builds a stage of the earlier command, whose targets have been in this state since the start.
 */
const over =
  (state: 'done' | 'failed') =>
  (role: Stage['role'], version: string, more: Partial<Stage> = {}): Stage => {
    const targets = ['n1', 'c2'].map((name) => buildTarget(name, state));
    return buildStage(role, targets, { version, ...more });
  };
const done = over('done');
const failed = over('failed');

interface Given {
  readonly stage: Stage;
  readonly has?: string;
  readonly servers?: Readonly<Record<string, string>> | 'unchecked';
  readonly earlier?: readonly Stage[];
  readonly hasNode?: boolean;
  readonly now?: number;
  readonly allow?: readonly VersionRule[];
}

function input({
  stage,
  has,
  servers = {},
  earlier = [],
  hasNode,
  now = T0 + MINUTE,
  allow = [],
}: Given): GateInput {
  const known = { version: has, node: hasNode === true ? NODE : undefined };
  const target = buildTarget('n1');
  const named = servers === 'unchecked' ? undefined : Object.entries(servers);
  const apiServers = named?.map(([name, version]) => ({ name, version }));
  return {
    ...NOTHING_KNOWN,
    cluster: { ...NOTHING_KNOWN.cluster, apiServers },
    stage,
    target,
    rollout: buildRollout([stage]),
    facts: buildFacts(known),
    targets: buildTargets({ [target.key]: known }),
    run: 'plan-uid/id1',
    earlier,
    isBegun: false,
    room: 1,
    policy: buildPolicy({ allow: new Set(allow) }),
    census: undefined,
    checked: [],
    unfit: new Map(),
    expectedMs: undefined,
    now,
  };
}

/** Returns one line: `pass`, or the effect on the target, with the code and the message. */
function said(verdict: Verdict): string {
  if (verdict.kind === 'pass') return 'pass';
  const kind = verdict.kind === 'stop' && verdict.ofPlan ? 'end' : verdict.kind;
  const passing =
    verdict.kind === 'wait' && verdict.isPassing ? ` for ${verdict.recheckMs} ms` : '';
  return `${kind}${passing} ${verdict.reason.code}: ${verdict.reason.message}`;
}

const SKIPPED = `SkippedMinor: n1 would go from ${OLD} past 1.36 to ${NEXT} (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)`;
const LOWERED = `Downgrade: n1 would go from ${NEXT} down to ${NOW} (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)`;
const NOT_YET_SIGNALLED = `an earlier command brought it to ${NOW}, which it does not report yet`;

test.each<[string, Given, string]>([
  ['the next minor version', { stage: workers(NEXT), has: NOW }, 'pass'],
  ['a version that nobody told', { stage: workers(NEXT) }, 'pass'],
  ['a minor version left out', { stage: workers(NEXT), has: OLD }, `end ${SKIPPED}`],
  ['an older version', { stage: workers(NOW), has: NEXT }, `end ${LOWERED}`],
  ['allowed by the policy', { stage: workers(NEXT), has: OLD, allow: ['SkippedMinor'] }, 'pass'],
  [
    'another rule is allowed',
    { stage: workers(NEXT), has: OLD, allow: ['Downgrade'] },
    `end ${SKIPPED}`,
  ],
  ['forced', { stage: workers(NEXT, { forced: true }), has: OLD }, 'pass'],
  [
    'nothing of the version changes',
    { stage: workers(NEXT, { keepsVersion: true }), has: OLD },
    'pass',
  ],
  [
    'versions that are not judged',
    { stage: workers(NEXT), has: OLD, servers: 'unchecked' },
    'pass',
  ],
  ['a controller', { stage: controllers(NEXT), has: OLD }, `end ${SKIPPED}`],
  [
    'an object that does not tell yet what an earlier command brought',
    { stage: workers(NEXT), has: OLD, earlier: [done('worker', NOW)], now: T0 + 1000 },
    `wait for 9000 ms ${SKIPPED}; ${NOT_YET_SIGNALLED}`,
  ],
  [
    'an object that does not tell it after a while either',
    { stage: workers(NEXT), has: OLD, earlier: [done('worker', NOW)] },
    `wait ${SKIPPED}; ${NOT_YET_SIGNALLED}`,
  ],
  [
    'an earlier command that brought too little',
    { stage: workers(NEXT), has: OLD, earlier: [done('worker', OLD)] },
    `end ${SKIPPED}`,
  ],
  [
    'an earlier command that brought something else',
    { stage: workers(NEXT), has: OLD, earlier: [done('worker', NOW, { keepsVersion: true })] },
    `end ${SKIPPED}`,
  ],
  [
    'an earlier command for controllers of its name',
    { stage: workers(NEXT), has: OLD, earlier: [done('controller', NOW)] },
    `end ${SKIPPED}`,
  ],
  [
    'an earlier command in which it failed: the plan is right, and the budget decides',
    { stage: workers(NEXT), has: OLD, earlier: [failed('worker', NOW)] },
    `stop ${SKIPPED}`,
  ],
  [
    'an earlier command in which a controller of its name failed',
    { stage: workers(NEXT), has: OLD, earlier: [failed('controller', NOW)] },
    `end ${SKIPPED}`,
  ],
  [
    'the last of two earlier commands counts',
    { stage: workers(NEXT), has: OLD, earlier: [done('worker', OLD), done('worker', NOW)] },
    `wait ${SKIPPED}; ${NOT_YET_SIGNALLED}`,
  ],
])('versions-follow: %s', (_name, given, answer) => {
  expect(said(versionsFollow.evaluate(input(given)))).toBe(answer);
});

const ahead = (...behind: readonly string[]): string =>
  `KubeletAhead: n1 would have a kubelet of ${NEXT}, newer than the API server of ${behind.join(', ')} (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)`;
const MIXED = { c1: NEXT, c2: NOW };

test.each<[string, Given, string]>([
  [
    'API servers of the same minor version',
    { stage: workers(NEXT), servers: { c1: NEXT } },
    'pass',
  ],
  ['one that is behind', { stage: workers(NEXT), servers: MIXED }, `wait ${ahead(`c2 (${NOW})`)}`],
  [
    'one that is behind and has the name of a worker of the stage',
    { stage: workers(NEXT), servers: { n2: NOW } },
    `wait ${ahead(`n2 (${NOW})`)}`,
  ],
  [
    'allowed by the policy',
    { stage: workers(NEXT), servers: MIXED, allow: ['KubeletAhead'] },
    'pass',
  ],
  ['forced', { stage: workers(NEXT, { forced: true }), servers: MIXED }, 'pass'],
  [
    'nothing of the version changes',
    { stage: workers(NEXT, { keepsVersion: true }), servers: MIXED },
    'pass',
  ],
  ['versions that are not judged', { stage: workers(NEXT), servers: 'unchecked' }, 'pass'],
  ['a controller without kubelet', { stage: controllers(NEXT), servers: { c3: NOW } }, 'pass'],
  [
    'a controller with one, before the others of its stage',
    { stage: controllers(NEXT), hasNode: true, servers: { n1: NOW, c2: NOW } },
    'pass',
  ],
  [
    'a controller with one, and another controller outside of the plan',
    { stage: controllers(NEXT), hasNode: true, servers: { n1: NOW, c2: NOW, c3: NOW } },
    `wait ${ahead(`c3 (${NOW})`)}`,
  ],
  [
    'one that does not tell yet what it was brought to',
    { stage: workers(NEXT), servers: MIXED, earlier: [done('controller', NEXT)], now: T0 + 1000 },
    `wait for 9000 ms ${ahead(`c2 (${NOW})`)}`,
  ],
  [
    'one that does not tell it after a while either',
    { stage: workers(NEXT), servers: MIXED, earlier: [done('controller', NEXT)] },
    `wait ${ahead(`c2 (${NOW})`)}`,
  ],
  [
    'one that the plan never touched, beside one that does not tell yet',
    {
      stage: workers(NEXT),
      servers: { c2: NOW, c3: NOW },
      earlier: [done('controller', NEXT)],
      now: T0 + 1000,
    },
    `wait ${ahead(`c2 (${NOW})`, `c3 (${NOW})`)}`,
  ],
])('api-servers-first: %s', (_name, given, answer) => {
  expect(said(apiServersFirst.evaluate(input(given)))).toBe(answer);
});

test('a record with a future time extends no deadline', () => {
  const earlier = [done('worker', NOW)].map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => ({ ...target, since: later(2 * MINUTE) })),
  }));
  expect(said(versionsFollow.evaluate(input({ stage: workers(NEXT), has: OLD, earlier })))).toBe(
    `wait ${SKIPPED}; ${NOT_YET_SIGNALLED}`,
  );
});
