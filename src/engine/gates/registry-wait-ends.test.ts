/**
 * Tests, for each wait of a gate, the text about what ends the wait, the time until the gate is evaluated again, and
 * the start of the wait.
 */

import { expect, test } from 'vitest';
import {
  among,
  CLEAR,
  DOWN,
  input,
  judged,
  NODE,
  OBSTACLE,
  other,
  refusedPods,
  resting,
  waitingForBudgets,
} from '../../../test/support/builders/gate-inputs.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { PAYLOAD } from '../../../test/support/builders/stages.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered, UNASKED } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import { agentAllowed } from './agent-allowed.ts';
import { agentKnown } from './agent-known.ts';
import { apiServersFirst } from './api-servers-first.ts';
import { apiServersReady } from './api-servers-ready.ts';
import { downloadsAllowed } from './downloads-allowed.ts';
import { drainPossible } from './drain-possible.ts';
import { foreignWork } from './foreign-work.ts';
import { nodeReady } from './node-ready.ts';
import { nodesAvailable } from './nodes-available.ts';
import { notPaused } from './not-paused.ts';
import { planHooksBefore } from './plan-hooks.ts';
import { policyReadable } from './policy-readable.ts';
import { restOver } from './rest-over.ts';
import type { Gate, GateInput } from './types.ts';
import { writeAllowed } from './write-allowed.ts';

const blocked = { ...CLEAR, obstacles: [OBSTACLE] };
const refused = { ...CLEAR, refused: refusedPods(1) };
const paused = { ...NO_CONTROLS, paused: true, pausedSince: later(0) };

const FREEZE = {
  name: 'freeze',
  when: 'beforePlan',
  action: { kind: 'webhook', url: 'https://a.example', secretName: 's' },
  timeoutMs: MINUTE,
} as const;

test.each<[Gate, string, GateInput, object]>([
  [
    foreignWork,
    'several',
    among('controller', [
      { ...other('c3', 'controller', later(MINUTE)), leftMs: 9 },
      { ...other('c2', 'controller', later(0)), leftMs: 7 },
      { ...other('c4', 'controller', later(HOUR)), leftMs: 8 },
    ]),
    {
      ends: 'those nodes have finished that work, or two hours have passed since the leader first observed it',
      since: later(0),
      recheckMs: 7,
    },
  ],
  [
    apiServersReady,
    'nobody has asked',
    input('controller'),
    { ends: 'every API server answers that it is ready', probe: { kind: 'control-plane' } },
  ],
  [
    agentKnown,
    'an agent in doubt: its announcement is watched',
    input('worker', { agent: { ours: false, title: 'unknown', doubt: 'x' } }),
    {
      ends: 'the agent on n1 reports whether it acts or leaves the host to another agent, or its annotation is removed because no agent runs there any more',
    },
  ],
  [
    apiServersReady,
    'one is down: no watch tells when it is ready',
    input('controller', {}, [DOWN]),
    { ends: 'every API server answers that it is ready', recheckMs: 1000 },
  ],
  [
    nodeReady,
    'not Ready',
    input('worker', { ready: false, readySince: later(0) }),
    { ends: 'the node is Ready', since: later(0) },
  ],
  [
    writeAllowed,
    'refused',
    input('worker', { refusal: { reason: because('TargetRefused', 'x'), recheckMs: 7 } }),
    { ends: expect.stringMatching(/^the API server allows the change/) as string, recheckMs: 7 },
  ],
  [
    downloadsAllowed,
    'two platforms without https',
    {
      ...input('worker', {}, undefined, {
        'linux-amd64': { ...PAYLOAD, url: 'http://example.com/file' },
        'linux-arm64': { ...PAYLOAD, url: 'http://example.com/file' },
      }),
      policy: buildPolicy({ requireHttps: true }),
    },
    {
      ends: 'the downloads of the plan meet the rules of the UpgradePolicy, or the rules are relaxed',
      reason: {
        code: 'Unverified',
        message: expect.stringMatching(/linux-amd64.*; .*linux-arm64/) as string,
      },
    },
  ],
  [
    downloadsAllowed,
    'an image without a digest',
    {
      ...input('worker'),
      stage: { ...input('worker').stage, images: [{ field: 'spec.upgrade.image', image: 'a' }] },
      policy: buildPolicy({ requireImageDigest: true }),
    },
    {
      ends: 'the images of the plan meet the rules of the UpgradePolicy, or the rules are relaxed',
      reason: { code: 'Unverified' },
    },
  ],
  [
    drainPossible,
    'nobody looked yet',
    input('worker', { node: NODE, drainPreview: UNASKED }),
    { ends: 'the API server answers', probe: { kind: 'drain-preview', node: 'n1' } },
  ],
  [
    drainPossible,
    'a budget: no watch shows when it lets go',
    waitingForBudgets(input('worker', { node: NODE, drainPreview: answered(blocked) })),
    {
      ends: 'the budget allows the eviction: change the budget, run more replicas, or set drain.zeroDisruptionBudgets to Try if an operator changes the budget when it sees the cordon',
      recheckMs: 5000,
    },
  ],
  [
    drainPossible,
    'a pod that may not go: no watch shows when it is gone',
    input('worker', { node: NODE, drainPreview: answered(refused) }),
    {
      ends: 'those pods are gone, or an UpgradePolicy has spec.drain.force: true',
      recheckMs: 5000,
    },
  ],
  [
    notPaused,
    'the plan',
    withParts(input('worker'), { plan: { controls: paused } }),
    {
      ends: 'the plan is resumed (refit resume, or refit resume --plan NAME if there are several plans)',
      since: later(0),
    },
  ],
  [
    notPaused,
    'the policy',
    { ...input('worker'), policy: buildPolicy({ name: 'p', paused: true }) },
    {
      ends: `UpgradePolicy p is no longer paused (kubectl patch upgradepolicy p --type=merge -p '{"spec":{"paused":false}}')`,
    },
  ],
  [
    policyReadable,
    'unreadable',
    {
      ...input('worker'),
      policy: buildPolicy({ name: 'p', problems: [because('PolicyUnreadable', 'x')] }),
    },
    { ends: 'UpgradePolicy p is corrected' },
  ],
  [
    restOver,
    'resting',
    resting(MINUTE, T0 + 30_000),
    {
      ends: `the rest period is over, at ${later(MINUTE)}`,
      recheckMs: 30_000,
      until: later(MINUTE),
    },
  ],
  [
    nodesAvailable,
    'too many',
    {
      ...input('worker'),
      policy: buildPolicy({ maxUnavailable: { nodes: 1 } }),
      census: {
        all: new Set(['n1', 'n2']),
        unavailable: new Set(['n2']),
        cordoned: new Set<string>(),
        busy: new Set(['n2']),
      },
    },
    {
      ends: 'one of those nodes is available again, or maxUnavailable of the UpgradePolicy is raised',
    },
  ],
  [
    agentAllowed,
    "another's agent",
    {
      ...input('worker', { agent: { ours: false, title: "another's" } }),
      policy: buildPolicy({ name: 'p', requireAgent: true }),
    },
    {
      ends: "Refit's agent runs on n1, or spec.agents.require is removed from UpgradePolicy p",
    },
  ],
  [
    planHooksBefore,
    'a hook before the plan',
    { ...input('worker'), policy: buildPolicy({ name: 'p', hooks: [FREEZE] }) },
    { ends: 'the hook has succeeded, or its deadline of 1 min has passed' },
  ],
  [
    apiServersFirst,
    'behind',
    judged('v1.35.9'),
    { ends: 'those API servers are upgraded, or the plan is corrected' },
  ],
])('the gate $0.name says what ends its wait: $1', (gate, _situation, given, wanted) => {
  expect(gate.evaluate(given)).toMatchObject({ kind: 'wait', ...wanted });
});
