/** Tests every gate and every verifier, with their messages. */

import { expect, test } from 'vitest';
import { COORDINATION_ROWS } from '../../../test/support/builders/coordination-rows.ts';
import { DRAIN_ROWS } from '../../../test/support/builders/drain-rows.ts';
import {
  among,
  besideNodeAway,
  DOWN,
  held,
  input,
  inZones,
  judged,
  other,
  resting,
  said,
  withWatched,
} from '../../../test/support/builders/gate-inputs.ts';
import { HEALTH_ROWS } from '../../../test/support/builders/health-rows.ts';
import { HOOK_ROWS } from '../../../test/support/builders/hook-rows.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { PIN_ROWS } from '../../../test/support/builders/pin-rows.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage, PAYLOAD } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { DOWNLOAD_ROWS } from '../../../test/support/expectations/download-gate-rows.ts';
import { unanswered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import type { Stage } from '../model/rollout.ts';
import type { EndpointHealth } from '../model/snapshot.ts';
import { agentAllowed } from './agent-allowed.ts';
import { agentKnown } from './agent-known.ts';
import { apiServersFirst } from './api-servers-first.ts';
import { apiServersReady } from './api-servers-ready.ts';
import { apiServersReadyAtStart } from './api-servers-ready-at-start.ts';
import { domainAvailable } from './domain-available.ts';
import { downloadsAllowed } from './downloads-allowed.ts';
import { foreignWork } from './foreign-work.ts';
import { hostsFit } from './hosts-fit.ts';
import { nodeReady } from './node-ready.ts';
import { nodesAvailable } from './nodes-available.ts';
import { notExcluded } from './not-excluded.ts';
import { notHeld } from './not-held.ts';
import { notPaused } from './not-paused.ts';
import { platformSupported } from './platform-supported.ts';
import { policyReadable } from './policy-readable.ts';
import { AFTER_TARGET, BEFORE_ROLLOUT, BEFORE_SIGNAL } from './registry.ts';
import { restOver } from './rest-over.ts';
import { targetExists } from './target-exists.ts';
import type { Gate, GateInput } from './types.ts';
import { versionsFollow } from './versions-follow.ts';
import { windowOpen } from './window-open.ts';
import { workersFirst } from './workers-first.ts';
import { writeAllowed } from './write-allowed.ts';

const OURS_ONLY = buildPolicy({ name: 'strict', requireAgent: true });
const READY: EndpointHealth = { name: 'c1', ready: true };
const SILENT: EndpointHealth = { name: 'c3', ready: false };
const NO_PAYLOADS = { payloads: undefined } as unknown as Partial<Stage>;
const REFUSAL = { reason: because('TargetRefused', 'x'), recheckMs: 1 };

const backAfter = (state: 'done' | 'failed'): GateInput => {
  const stage = buildStage('controller', ['n1'], { goesBack: true });
  const earlier = [buildStage('worker', [buildTarget('w1', state)])];
  return { ...input('controller'), stage, earlier };
};
const rows: [Gate, string, GateInput, string][] = [
  ...COORDINATION_ROWS,
  ...HEALTH_ROWS,
  ...PIN_ROWS,
  ...DRAIN_ROWS,
  ...HOOK_ROWS,
  [hostsFit, 'nothing is known against a host', input('worker'), 'pass'],
  [
    hostsFit,
    'two hosts cannot run the version',
    { ...input('worker'), unfit: new Map([['it is too old', new Set(['w1', 'w2'])]]) },
    'wait HostUnfit: w1, w2: it is too old',
  ],
  [notHeld, 'nobody holds the node', input('worker'), 'pass'],
  [
    notHeld,
    'a reason',
    held({ by: 'ada', reason: 'a job' }),
    'wait Held: n1 is held by ada: a job',
  ],
  ...DOWNLOAD_ROWS,
  [domainAvailable, 'no limit for domains', input('worker'), 'pass'],
  [
    domainAvailable,
    'the zone has a node away',
    inZones({ w1: 'a', w2: 'a' }, ['w2']),
    'wait DomainFull: 1 of 2 nodes with zone=a is not Ready, unschedulable or at work (w2); UpgradePolicy zones allows 1',
  ],
  [writeAllowed, 'nothing was refused', input('worker'), 'pass'],
  [
    writeAllowed,
    'a write was refused',
    input('worker', { refusal: REFUSAL }),
    'wait TargetRefused: x',
  ],
  [foreignWork, 'nobody else', among('controller', []), 'pass'],
  [
    foreignWork,
    'only itself, told by an earlier plan',
    among('controller', [other('n1', 'controller')]),
    'pass',
  ],
  [
    foreignWork,
    'another controller, before a controller',
    among('controller', [other('c2', 'controller'), other('w1', 'worker')]),
    'wait ForeignWork: c2 is still at work for another plan',
  ],
  [
    foreignWork,
    'a controller, before a worker',
    among('worker', [other('c2', 'controller')], 5),
    'wait ForeignWork: c2 is still at work for another plan',
  ],
  [
    foreignWork,
    'a worker, before a controller, whatever room there is',
    among('controller', [other('w1', 'worker')], 5),
    'wait ForeignWork: w1 is still at work for another plan',
  ],
  [
    foreignWork,
    'fewer workers than there is room',
    among('worker', [other('w1', 'worker')], 2),
    'pass',
  ],
  [
    foreignWork,
    'as many workers as there is room',
    among('worker', [other('w1', 'worker'), other('w2', 'worker')], 2),
    'wait ForeignWork: w1, w2 are still at work for another plan',
  ],
  [
    foreignWork,
    'a controller of its name, before a worker',
    among('worker', [other('n1', 'controller')]),
    'wait ForeignWork: n1 is still at work for another plan',
  ],
  [targetExists, 'an object that is there', input('worker'), 'pass'],
  [
    targetExists,
    'a worker that is not',
    input('worker', { exists: false }),
    'stop TargetMissing: n1 does not exist as a worker',
  ],
  [
    targetExists,
    'a controller that is not',
    input('controller', { exists: false }),
    'stop TargetMissing: n1 does not exist as a controller',
  ],
  [
    platformSupported,
    'a platform of the plan',
    input('worker', { platform: 'linux-arm64' }),
    'pass',
  ],
  [
    platformSupported,
    'a plan that downloads nothing, and labels that do not tell',
    {
      ...input('worker', { platform: undefined }),
      stage: buildStage('worker', ['n1'], NO_PAYLOADS),
    },
    'pass',
  ],
  [
    platformSupported,
    'Refit refuses a node if the plan has no download for its platform',
    input('worker', { platform: 'windows-amd64' }),
    'stop PlatformUnsupported: n1 is windows-amd64; the plan has downloads for linux-amd64, linux-arm64: add the platform of the node to the plan, or leave the node out',
  ],
  [
    platformSupported,
    'a plan without platforms',
    input('worker', {}, undefined, {}),
    'stop PlatformUnsupported: n1 is linux-amd64; the plan has downloads for no platform: add the platform of the node to the plan, or leave the node out',
  ],
  [
    platformSupported,
    'labels that do not tell',
    input('worker', { platform: undefined }),
    'stop PlatformUnknown: n1 needs the labels kubernetes.io/os and kubernetes.io/arch, and lacks at least one of them: set them, or leave the node out of the plan',
  ],
  [notExcluded, 'no exclusion', input('worker'), 'pass'],
  [
    notExcluded,
    'the agent excludes its node',
    input('worker', { agent: { ours: true, title: 'Refit 1', excluded: true } }),
    'stop Excluded: n1 is a worker that the agent of n1 excludes from plans by --exclude-from-plans',
  ],
  [
    notExcluded,
    'the leader excludes workers',
    { ...input('worker'), policy: buildPolicy({ excludedRoles: ['worker'] }) },
    'stop Excluded: n1 is a worker that the leader excludes from plans by --exclude-from-plans',
  ],
  [apiServersReady, 'a worker, whatever the API servers say', input('worker', {}, [DOWN]), 'pass'],
  [
    apiServersReadyAtStart,
    'a controller, all API servers ready',
    input('controller', {}, [READY]),
    'pass',
  ],
  [
    apiServersReady,
    'the wait of a controller names every API server that is not ready',
    input('controller', {}, [READY, DOWN, SILENT]),
    'wait ControlPlaneNotReady: the API server of c2 (/readyz says 500), c3 (not ready) is not ready',
  ],
  [
    apiServersReadyAtStart,
    'a controller, nobody has asked',
    input('controller'),
    'wait ControlPlaneUnknown: asking every API server',
  ],
  [
    nodeReady,
    'a controller, which has no such condition',
    input('controller', { ready: undefined }),
    'pass',
  ],
  [
    nodeReady,
    'a controller that has one, and is not Ready',
    input('controller', { ready: false }),
    'wait NodeNotReady: node n1 is not Ready',
  ],
  [nodeReady, 'a Ready controller', input('controller', { ready: true }), 'pass'],
  [nodeReady, 'a Ready worker', input('worker', { ready: true }), 'pass'],
  [
    nodeReady,
    'a worker that is not Ready',
    input('worker', { ready: false }),
    'wait NodeNotReady: node n1 is not Ready',
  ],
  [
    nodeReady,
    'a worker that never told',
    input('worker', { ready: undefined }),
    'wait NodeNotReady: node n1 is not Ready',
  ],
  [restOver, 'no rest is asked for', resting(undefined, T0), 'pass'],
  [restOver, 'nor by a node whose clock is ahead', resting(undefined, T0, later(MINUTE)), 'pass'],
  [restOver, 'at work still', { ...resting(MINUTE, T0), facts: buildFacts() }, 'pass'],
  [
    restOver,
    'at work still, since a moment',
    {
      ...resting(MINUTE, T0),
      facts: buildFacts({
        observation: { kind: 'working', step: 'x', attempt: later(0), since: later(0) },
      }),
    },
    'pass',
  ],
  [
    restOver,
    'in the middle of its rest',
    resting(MINUTE, T0 + 30_000),
    'wait Resting: n1 keeps its slot for 1 min after its success',
  ],
  [
    restOver,
    'a time in the future, once the leader has watched it for the rest',
    withWatched(resting(MINUTE, T0, later(HOUR)), MINUTE),
    'pass',
  ],
  [restOver, 'the moment it is over', resting(MINUTE, T0 + MINUTE), 'pass'],
  [restOver, 'a time that nobody can read', resting(MINUTE, T0, 'once'), 'pass'],
  [
    agentAllowed,
    'nobody said anything',
    input('worker', { agent: { ours: false, title: 'unknown' } }),
    'pass',
  ],
  [
    agentAllowed,
    'a policy that requires our agent, on a node that has it',
    { ...input('worker', { agent: { ours: true, title: 'Refit 1.0.0' } }), policy: OURS_ONLY },
    'pass',
  ],
  [
    agentAllowed,
    'one that requires it, for plans without agents',
    { ...input('worker'), policy: OURS_ONLY },
    'pass',
  ],
  [
    agentAllowed,
    'one that requires it, and a node with another one',
    { ...input('worker', { agent: { ours: false, title: "another's" } }), policy: OURS_ONLY },
    "wait AgentRequired: the agent of n1 is another's, and UpgradePolicy strict requires Refit's",
  ],
  [agentKnown, 'nobody said anything', input('worker'), 'pass'],
  [
    agentKnown,
    'an agent that acts',
    input('worker', { agent: { ours: true, title: 'Refit 1.0.0' } }),
    'pass',
  ],
  [
    agentKnown,
    'an agent that does not know whether another one acts',
    input('worker', { agent: { ours: false, title: 'unknown', doubt: 'a profile has changed' } }),
    'wait AgentInDoubt: n1: a profile has changed',
  ],
  [downloadsAllowed, 'nobody said anything', input('worker'), 'pass'],
  [
    downloadsAllowed,
    'a policy that asks for https, and a plan that was changed to plain http',
    {
      ...input('worker', {}, undefined, {
        'linux-amd64': { ...PAYLOAD, url: 'http://example.com/file' },
      }),
      policy: buildPolicy({ name: 'strict', requireHttps: true }),
    },
    'wait Unverified: the download for linux-amd64 comes over plain http, and UpgradePolicy strict requires https; to allow this, set spec.payloads.requireHttps: false in the policy',
  ],
  [
    downloadsAllowed,
    'a policy that asks for digests, and an image with a tag',
    {
      ...input('worker'),
      stage: {
        ...input('worker').stage,
        images: [{ field: 'spec.upgrade.image', image: 'a/b:v1' }],
      },
      policy: buildPolicy({ name: 'strict', requireImageDigest: true }),
    },
    'wait Unverified: the image "a/b:v1" of spec.upgrade.image has no digest (@sha256: and 64 hexadecimal digits), and UpgradePolicy strict requires one; to allow this, set spec.payloads.requireImageDigest: false in the policy',
  ],
  [policyReadable, 'nobody said anything', input('worker'), 'pass'],
  [notPaused, 'nobody said anything', input('worker'), 'pass'],
  [windowOpen, 'nobody said anything', input('worker'), 'pass'],
  [nodesAvailable, 'nobody said anything', input('worker'), 'pass'],
  [
    notPaused,
    'somebody paused the plan',
    withParts(input('worker'), { plan: { controls: { ...NO_CONTROLS, paused: true } } }),
    'wait Paused: the plan is paused: nothing new starts until it is resumed',
  ],
  [
    notPaused,
    'somebody paused the plan with a reason',
    withParts(input('worker'), {
      plan: { controls: { ...NO_CONTROLS, paused: true, pauseReason: 'the database is moved' } },
    }),
    'wait Paused: the plan is paused (the database is moved): nothing new starts until it is resumed',
  ],
  [
    policyReadable,
    'a policy that cannot be read',
    {
      ...input('worker'),
      policy: buildPolicy({ problems: [because('PolicyUnreadable', 'spec.soak')] }),
    },
    'wait PolicyUnreadable: spec.soak',
  ],
  [
    windowOpen,
    'no node starts during a blackout of an UpgradePolicy',
    {
      ...input('worker'),
      policy: buildPolicy({ name: 'xmas', blackouts: [{ from: T0 - 1, to: T0 + 1000 }] }),
    },
    'wait Blackout: UpgradePolicy xmas has a blackout now: nothing starts before 2026-11-20T08:00:01Z',
  ],
  [
    nodesAvailable,
    'another node is away already',
    besideNodeAway(),
    'wait TooManyUnavailable: 1 of 2 nodes is not Ready, unschedulable or at work (n2); UpgradePolicy one allows 1',
  ],
  [
    apiServersReady,
    'nobody can tell',
    withParts(input('controller'), {
      cluster: {
        controlPlane: unanswered({ reason: because('CannotDecide', 'no answer'), recheckMs: 2000 }),
      },
    }),
    'wait CannotDecide: no answer',
  ],
  [versionsFollow, 'the minor version before', judged('v1.35.9'), 'pass'],
  [
    versionsFollow,
    'one that is too old',
    judged('v1.34.1'),
    'stop SkippedMinor: n1 would go from v1.34.1 past 1.35 to v1.36.3+x.2 (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)',
  ],
  [apiServersFirst, 'the same minor version', judged('v1.36.0'), 'pass'],
  [
    apiServersFirst,
    'one that is behind',
    judged('v1.35.9'),
    'wait KubeletAhead: n1 would have a kubelet of v1.36.3+x.2, newer than the API server of c1 (v1.35.9) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
  ],
  [workersFirst, 'back', backAfter('done'), 'pass'],
  [
    workersFirst,
    'a worker did not go back',
    backAfter('failed'),
    'wait KubeletAhead: w1 did not go back, and controllers go back after all workers',
  ],
];

test.each(
  rows.map(([gate, situation, given, answer]) => ({
    name: gate.name,
    gate,
    situation,
    given,
    answer,
  })),
)('$name: $situation', ({ gate, given, answer }) =>
  expect(said(gate.evaluate(given))).toBe(answer),
);

test('each gate has at least one test in which it passes and one in which it does not pass', () => {
  for (const gate of new Set([...BEFORE_ROLLOUT, ...BEFORE_SIGNAL, ...AFTER_TARGET])) {
    const answers = rows
      .filter(([each]) => each === gate)
      .map(([, , , answer]) => answer === 'pass');
    expect([gate.name, answers.includes(true), answers.includes(false)]).toEqual([
      gate.name,
      true,
      true,
    ]);
  }
});
