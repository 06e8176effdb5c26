/** Tests a running rollout whose versions change: that it breaks no version rule, and how it ends. */

import { expect, test } from 'vitest';
import type { Decision } from '../../../test/support/builders/decisions.ts';
import { decide } from '../../../test/support/builders/decisions.ts';
import { succeeded, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { ApiServer } from '../../versions/plan-rules.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState, Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const OLD = 'v1.34.9+x.0';
const NOW = 'v1.35.4+x.0';
const WANTED = 'v1.36.3+x.2';
const LATER = T0 + 10 * MINUTE;
const SERVERS: readonly ApiServer[] = [{ name: 'c1', version: WANTED }];

interface Situation {
  readonly stages: readonly Stage[];
  readonly facts: Readonly<Record<string, Partial<TargetFacts>>>;
  readonly apiServers?: readonly ApiServer[];
  readonly policy?: Partial<RolloutPolicy>;
}

function decided({ stages, facts, apiServers = SERVERS, policy }: Situation): [Snapshot, Decision] {
  const snapshot = withParts(buildSnapshot(buildRollout(stages), facts), {
    cluster: { apiServers },
  });
  return [snapshot, decide(snapshot, buildPolicy(policy), LATER)];
}

/**
 * Returns the phase of the rollout after the decision, the state of each target, the signals, and what makes the
 * targets wait.
 */
function told(situation: Situation): string[] {
  const [snapshot, { record, signals, waits }] = decided(situation);
  const { phase, blocked, reason, stages } = record ?? snapshot.rollout;
  const states = stages.flatMap(({ targets }) =>
    targets.map(({ name, state }) => `${name} ${state}`),
  );
  return [
    [blocked ? 'blocked' : phase, ...(reason ? [reason.code] : [])].join(' '),
    ...states,
    ...signals.map(({ target }) => `signal ${target.name}`),
    ...waits
      .filter(({ gate }) => gate !== 'slots')
      .map(({ gate, reason: { code } }) => `${gate}: ${code}`),
  ];
}

const done = buildTarget('w1', 'done');
const moving = buildTarget('w1', 'intended');
const stage = (...targets: Parameters<typeof buildStage>[1]): Stage[] => [
  buildStage('worker', targets, { maxInFlight: 2 }),
];
const ATWORK = { version: NOW, observation: working('Restart') };

test.each<[string, Situation, string[]]>([
  [
    'a running plan ends as invalid if its next node would skip a minor version',
    { stages: stage(done, 'w2', 'w3'), facts: { w2: { version: OLD }, w3: { version: NOW } } },
    ['invalid SkippedMinor', 'w1 done', 'w2 pending', 'w3 pending'],
  ],
  [
    'a node that comes later would: those before it do not start either, since the plan is about to end',
    { stages: stage('w1', 'w2'), facts: { w1: { version: NOW }, w2: { version: OLD } } },
    ['invalid SkippedMinor', 'w1 pending', 'w2 pending'],
  ],
  [
    'the last of many nodes would, and there is one slot: the first does not start',
    {
      stages: [buildStage('worker', ['w1', 'w2', 'w3'])],
      facts: { w1: { version: NOW }, w2: { version: NOW }, w3: { version: OLD } },
    },
    ['invalid SkippedMinor', 'w1 pending', 'w2 pending', 'w3 pending'],
  ],
  [
    'another node is in flight: it finishes, and nothing new starts',
    {
      stages: stage(moving, 'w2', 'w3'),
      facts: { w1: ATWORK, w2: { version: OLD }, w3: { version: NOW } },
    },
    [
      'blocked',
      'w1 intended',
      'w2 pending',
      'w3 pending',
      'working: InFlight',
      'versions-follow: FinishingInFlight',
    ],
  ],
  [
    'the node that was in flight is done: the plan ends',
    {
      stages: stage(moving, 'w2'),
      facts: { w1: { version: WANTED, observation: succeeded() }, w2: { version: OLD } },
    },
    ['invalid SkippedMinor', 'w1 done', 'w2 pending'],
  ],
  [
    'another node is recorded, and not signalled yet: it is never signalled',
    { stages: stage(moving), facts: { w1: { version: OLD } } },
    ['invalid SkippedMinor', 'w1 pending'],
  ],
  [
    'somebody upgraded the node further by hand',
    { stages: stage(done, 'w2'), facts: { w2: { version: 'v1.36.4+x.0' } } },
    ['invalid Downgrade', 'w1 done', 'w2 pending'],
  ],
  [
    'while it is paused nothing ends, so that it can be put right',
    { stages: stage(done, 'w2'), facts: { w2: { version: OLD } }, policy: { paused: true } },
    ['blocked', 'w1 done', 'w2 pending', 'not-paused: Paused'],
  ],
  [
    'an API server that is behind holds all nodes back for as long as it is behind',
    {
      stages: stage(done, 'w2', 'w3'),
      facts: { w2: { version: NOW }, w3: { version: NOW } },
      apiServers: [...SERVERS, { name: 'c2', version: NOW }],
    },
    ['blocked', 'w1 done', 'w2 pending', 'w3 pending', 'api-servers-first: KubeletAhead'],
  ],
  [
    'a node that was just upgraded and does not report it yet blocks nothing',
    {
      stages: [
        buildStage('controller', [buildTarget('c1', 'done', { since: later(10 * MINUTE - 1000) })]),
        ...stage('w1'),
      ],
      facts: { w1: { version: NOW } },
      apiServers: [{ name: 'c1', version: NOW }],
    },
    ['running', 'c1 done', 'w1 pending', 'api-servers-first: KubeletAhead'],
  ],
])('a plan whose node would break a version rule: %s', (_name, situation, wanted) => {
  expect(told(situation)).toEqual(wanted);
});

const SECOND = 'v1.37.1+x.0';
/** Returns the stages of the first command, in which w3 failed, and of the second command with these states. */
const second = (...states: readonly RecordedState[]): Stage[] => [
  buildStage('worker', [done, buildTarget('w2', 'done'), buildTarget('w3', 'failed')]),
  buildStage(
    'worker',
    states.map((state, index) => buildTarget(`w${index + 1}`, state)),
    { command: 1, maxInFlight: 3, version: SECOND },
  ),
];
const AFTER_FIRST = {
  facts: { w1: { version: WANTED }, w2: { version: WANTED }, w3: { version: NOW } },
  apiServers: [{ name: 'c1', version: SECOND }],
};

test.each<[string, Situation, string[]]>([
  [
    'the other nodes start, and the failed node is not charged twice',
    { ...AFTER_FIRST, stages: second('pending', 'pending', 'pending'), policy: { maxFailures: 1 } },
    ['running SkippedMinor', 'w1 intended', 'w2 intended', 'w3 failed'],
  ],
  [
    'once the other nodes are done the plan ends, and says which node failed',
    { ...AFTER_FIRST, stages: second('done', 'done', 'failed'), policy: { maxFailures: 1 } },
    ['failed DoneWithFailures', 'w1 done', 'w2 done', 'w3 failed'],
  ],
  [
    'a second node that fails is more than the budget allows',
    { ...AFTER_FIRST, stages: second('pending', 'failed', 'failed'), policy: { maxFailures: 1 } },
    ['failed', 'w1 pending', 'w2 failed', 'w3 failed'],
  ],
  [
    'a second node that fails is within a larger budget',
    { ...AFTER_FIRST, stages: second('pending', 'failed', 'failed'), policy: { maxFailures: 2 } },
    ['running', 'w1 intended', 'w2 failed', 'w3 failed'],
  ],
])(
  'one failed in the first command within the budget, and would skip a minor version in the second: %s',
  (_name, situation, wanted) => {
    const [rollout, ...states] = told(situation);
    expect([rollout, ...states.slice(3, 6)]).toEqual(wanted);
  },
);

test('the end of a plan for a version rule names the target, both versions and the rule', () => {
  const [, { record }] = decided({ stages: stage(done, 'w2'), facts: { w2: { version: OLD } } });
  expect(record?.reason?.message).toBe(
    'w2 would go from v1.34.9+x.0 past 1.35 to v1.36.3+x.2 (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)',
  );
});

test('a plan that is about to end for a version rule says so while other nodes finish', () => {
  const [, { waits }] = decided({
    stages: stage(moving, 'w2'),
    facts: { w1: ATWORK, w2: { version: OLD } },
  });
  expect(waits.find(({ target }) => target === 'w2')?.reason.message).toBe(
    'Refit starts nothing new: w2 would go from v1.34.9+x.0 past 1.35 to v1.36.3+x.2 (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)',
  );
});
