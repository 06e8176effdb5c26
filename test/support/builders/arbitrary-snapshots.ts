/**
 * Makes random snapshots, policies and times, for tests of the properties of a decision. They include likely and
 * unlikely cases.
 */

import * as fc from 'fast-check';
import { answered, UNASKED, unanswered } from '../../../src/engine/model/asked.ts';
import type { Observation, TargetFacts } from '../../../src/engine/model/facts.ts';
import { because } from '../../../src/engine/model/reasons.ts';
import type { Role, Rollout, Stage, Target } from '../../../src/engine/model/rollout.ts';
import type { Snapshot } from '../../../src/engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { HOUR, later, MINUTE, T0 } from '../clock/times.ts';
import { failed, NONE, sent, succeeded, working } from './observations.ts';
import { buildPolicy } from './rollout-policies.ts';
import { buildRollout } from './rollouts.ts';
import { buildFacts, buildTargets, NOTHING_KNOWN } from './snapshots.ts';
import { buildStage } from './stages.ts';
import { buildTarget } from './targets.ts';

export interface Situation {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  readonly now: number;
}

/** `calm` gives only what one leader and healthy nodes produce. `wild` gives whatever the types allow. */
type Mood = 'calm' | 'wild';

/** The random minutes are often 0, so that intents are fresh and deadlines are far away. */
const minutes = fc.oneof(
  { arbitrary: fc.constant(0), weight: 2 },
  fc.integer({ min: 0, max: 4 * 60 }),
);
const moment = minutes.map((count) => later(count * MINUTE));

const SEEN: Readonly<Record<Observation['kind'], fc.Arbitrary<Observation>>> = {
  none: fc.constant(NONE),
  sent: moment.map((at) => sent(at)),
  working: fc
    .tuple(fc.constantFrom('Downloading', 'Restart'), moment)
    .map(([step, at]) => working(step, at)),
  succeeded: moment.map((at) => succeeded(at)),
  failed: moment.map((at) => failed('404', at)),
};
const anything = fc.oneof(...Object.values(SEEN));
const watchedMs = minutes.map((count) => count * MINUTE);

const ofMood = {
  calm: {
    facts: ({ state }: Target): fc.Arbitrary<TargetFacts> =>
      fc
        .record({
          ready: fc.constantFrom(true, true, true, false, undefined),
          watchedMs,
          observation:
            state === 'intended'
              ? fc.oneof(SEEN.none, SEEN.sent, SEEN.working, SEEN.succeeded)
              : SEEN.none,
        })
        .map(buildFacts),
    states: fc.oneof(
      fc.array(fc.constant('done' as const), { maxLength: 3 }),
      fc.array(fc.constantFrom('pending', 'pending', 'pending', 'intended', 'done'), {
        maxLength: 6,
      }),
    ),
  },
  wild: {
    facts: (): fc.Arbitrary<TargetFacts> =>
      fc
        .record({
          exists: fc.constantFrom(true, true, true, false),
          platform: fc.constantFrom('linux-amd64', 'linux-amd64', 'linux-arm64', undefined),
          ready: fc.constantFrom(true, false, undefined),
          watchedMs,
          observation: anything,
        })
        .map(buildFacts),
    states: fc.array(
      fc.constantFrom('pending', 'pending', 'intended', 'done', 'failed', 'missing', 'unsupported'),
      {
        maxLength: 6,
      },
    ),
  },
} as const;

function stage(command: number, role: Role, mood: Mood): fc.Arbitrary<Stage> {
  const drawn = fc.record({
    maxInFlight: fc.integer({ min: 1, max: 4 }),
    states: ofMood[mood].states,
    since: moment,
  });
  return drawn.map(({ maxInFlight, states, since }) => {
    const targets = states.map((state, index) => buildTarget(`${role}${index}`, state, { since }));
    return buildStage(role, targets, { command, maxInFlight });
  });
}

function rollout(mood: Mood): fc.Arbitrary<Rollout> {
  return fc
    .record({
      stages: fc.tuple(
        stage(0, 'controller', mood),
        stage(0, 'worker', mood),
        stage(1, 'controller', mood),
        stage(1, 'worker', mood),
      ),
      phase: fc.constantFrom<Rollout['phase'][]>(
        'new',
        'running',
        'running',
        'running',
        'running',
        'failed',
      ),
      blocked: fc.boolean(),
      problems: fc.constantFrom<Rollout['problems'][]>(
        [],
        [],
        [],
        [{ code: 'InvalidPlan', message: 'spec.id' }],
      ),
    })
    .map(({ stages, ...more }) =>
      more.phase === 'new'
        ? buildRollout(stages.map(unbegun), { ...more, blocked: false })
        : buildRollout(stages, more),
    );
}

function unbegun(made: Stage): Stage {
  return { ...made, targets: made.targets.map((target) => ({ ...target, state: 'pending' })) };
}

function situation(mood: Mood): fc.Arbitrary<Situation> {
  return rollout(mood).chain((made) => {
    const targets = made.stages.flatMap((each) => each.targets);
    return fc
      .record({
        facts: fc.tuple(...targets.map((target) => ofMood[mood].facts(target))),
        controlPlane: fc.constantFrom(
          UNASKED,
          unanswered({ reason: because('CannotDecide', 'no answer'), recheckMs: 2000 }),
          answered([{ name: 'c1', ready: true }]),
          answered([{ name: 'c1', ready: false }]),
        ),
        maxFailures: fc.integer({ min: 0, max: 2 }),
        targetDeadlineMs: fc.constantFrom(MINUTE, 2 * HOUR, Number.POSITIVE_INFINITY),
        now: minutes.map((count) => T0 + count * MINUTE),
      })
      .map(({ facts, controlPlane, maxFailures, targetDeadlineMs, now }) => {
        const byKey = Object.fromEntries(
          facts.map((fact, index) => [targets[index]?.key ?? '', fact]),
        );
        return {
          snapshot: {
            rollout: made,
            ...NOTHING_KNOWN,
            cluster: { ...NOTHING_KNOWN.cluster, controlPlane },
            targets: buildTargets(byKey),
          },
          policy: buildPolicy({ maxFailures, targetDeadlineMs }),
          now,
        };
      });
  });
}

export function arbitrarySituation(): fc.Arbitrary<Situation> {
  return fc.oneof({ arbitrary: situation('calm'), weight: 3 }, situation('wild'));
}
