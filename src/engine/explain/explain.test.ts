/** Tests what waits, what it waits for, since when, until when, and what ends the wait. */
import { describe, expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { failed, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { agentOf } from '../../signal/agent-presence.ts';
import { assess, phaseOf } from '../assess/assess.ts';
import type { Wait } from '../model/decision.ts';
import type { TargetFacts } from '../model/facts.ts';
import { type Rollout, withStages } from '../model/rollout.ts';
import type { EndpointHealth, Snapshot } from '../model/snapshot.ts';
import { explain } from './explain.ts';

const POLICY = buildPolicy();
const NOW = T0 + HOUR;
const DOWN: EndpointHealth[] = [
  { name: 'c1', ready: true },
  { name: 'c2', ready: false, detail: '/readyz says 500' },
  { name: 'c3', ready: false },
];

type Facts = Record<string, Partial<TargetFacts>>;

function waitsOf(
  rollout: Rollout,
  facts: Facts = {},
  controlPlane?: readonly EndpointHealth[],
): readonly Wait[] {
  return decide(buildSnapshot(rollout, facts, controlPlane), POLICY, NOW).waits;
}

/** Returns one line for each wait: target and gate, start of the wait, reason, and end. */
function linesOf(waits: readonly Wait[]): string[] {
  return waits.map(({ target, gate, reason, since, until: end }) => {
    const who = target === undefined ? gate : `${target} (${gate})`;
    return `${who} since ${since.slice(11, 16)}: ${reason.message}${end === undefined ? '' : `; until ${end.slice(11, 16)}`}`;
  });
}

const flying = (name: string, since = later(0)) => buildTarget(name, 'intended', { since });

describe('what is in flight', () => {
  const stage = buildStage('worker', [flying('w1')]);
  test.each<[string, Partial<TargetFacts>, string]>([
    [
      'an agent that has not answered: since the signal, until the deadline',
      { observation: sent(), agent: agentOf(buildNode('w1')) },
      'w1 (signalled) since 08:00: w1 is signalled; its agent has not answered yet; until 10:00',
    ],
    [
      'work that has not begun, in a dialect without agents',
      { observation: sent() },
      'w1 (signalled) since 08:00: w1 is signalled; its work has not begun yet; until 10:00',
    ],
    [
      'an agent at work: since it began this step',
      { observation: working('Downloading', later(0), later(5 * MINUTE)) },
      'w1 (working) since 08:05: w1 is at Downloading; until 10:00',
    ],
    [
      'a verifier that says wait: since the agent was done',
      { observation: succeeded(later(0), later(9 * MINUTE)), ready: false },
      'w1 (node-ready) since 08:09: node w1 is not Ready; until 10:00',
    ],
  ])('%s', (_name, facts, line) => {
    expect(linesOf(waitsOf(buildRollout([stage]), { w1: facts }))).toEqual([line]);
  });

  test('the decision is taken again at the first deadline of all', () => {
    const stages = [
      buildStage('worker', [flying('w1'), flying('w2', later(-MINUTE))], { maxInFlight: 2 }),
    ];
    const facts = { w1: { observation: sent() }, w2: { observation: sent() } };
    const { recheckAfterMs } = decide(buildSnapshot(buildRollout(stages), facts), POLICY, NOW);
    expect(recheckAfterMs).toBe(HOUR - MINUTE);
  });
});

test('an expired deadline with no effect needs no recheck', () => {
  const stage = buildStage('worker', [flying('w1', later(-3 * HOUR))], { restMs: 2 * HOUR });
  const snapshot = buildSnapshot(buildRollout([stage]), {
    w1: { observation: succeeded(later(-3 * HOUR), later(0)) },
  });
  expect(decide(snapshot, POLICY, NOW).recheckAfterMs).toBe(HOUR);
});

describe('what has not begun', () => {
  test('all targets that only lack a slot share one line', () => {
    const stage = buildStage('worker', [flying('w1'), flying('w2', later(MINUTE)), 'w3', 'w4'], {
      maxInFlight: 2,
    });
    const facts = { w1: { observation: sent() }, w2: { observation: sent(later(MINUTE)) } };
    expect(linesOf(waitsOf(buildRollout([stage]), facts)).at(-1)).toBe(
      'slots since 08:01: 2 workers queued (2 at a time)',
    );
  });

  test('a failed target that still works is named, with the time until it no longer counts', () => {
    const stage = buildStage('worker', [buildTarget('w1', 'failed'), buildTarget('w2')]);
    const facts = { w1: { observation: working('ApplyingUpdate', later(0), later(0)) } };
    const { waits, recheckAfterMs } = decide(
      buildSnapshot(buildRollout([stage]), facts),
      buildPolicy({ maxFailures: 1 }),
      NOW,
    );
    expect(linesOf(waits)).toEqual([
      'slots since 08:00: 1 worker queued (1 at a time); these failed nodes are still at work and keep a slot: w1',
    ]);
    expect(recheckAfterMs).toBe(HOUR);
  });

  test('a single target that waits for a single slot is told in the singular', () => {
    const stage = buildStage('controller', [flying('c1'), 'c2']);
    expect(linesOf(waitsOf(buildRollout([stage]), { c1: { observation: sent() } })).at(-1)).toBe(
      'slots since 08:00: 1 controller queued (1 at a time)',
    );
  });

  test('the wait for a slot begins at the latest time, also if leaders wrote it in other time zones', () => {
    const adopted = flying('w2', '2026-11-20T10:01:00+02:00');
    const stage = buildStage('worker', [flying('w1', later(7 * MINUTE)), adopted, 'w3'], {
      maxInFlight: 2,
    });
    const facts = {
      w1: { observation: sent(later(7 * MINUTE)) },
      w2: { observation: sent(adopted.since) },
    };
    expect(waitsOf(buildRollout([stage]), facts).at(-1)?.since).toBe(later(7 * MINUTE));
  });

  test('the wait for a node that is not Ready starts at the last change of its Ready condition', () => {
    const stage = buildStage('worker', [
      buildTarget('w1', 'done', { since: later(50 * MINUTE) }),
      'w2',
    ]);
    const facts = { w2: { ready: false, readySince: later(3 * MINUTE) } };
    expect(linesOf(waitsOf(buildRollout([stage]), facts))).toEqual([
      'w2 (node-ready) since 08:03: node w2 is not Ready',
    ]);
  });

  test('a wait for API servers names those that are not ready and what they say, and they are asked again', () => {
    const rollout = buildRollout([buildStage('controller', ['c1'])], { blocked: true });
    const { waits, recheckAfterMs } = decide(buildSnapshot(rollout, {}, DOWN), POLICY, NOW);
    expect(linesOf(waits)).toEqual([
      'c1 (api-servers-ready) since 08:00: the API server of c2 (/readyz says 500), c3 (not ready) is not ready',
    ]);
    expect(recheckAfterMs).toBe(1000);
  });

  test('each later stage names the stage for which it waits', () => {
    const stages = [
      buildStage('controller', [flying('c1')]),
      buildStage('worker', ['w1', 'w2']),
      buildStage('controller', [], { command: 1 }),
      buildStage('worker', ['w1'], { command: 1 }),
    ];
    expect(
      linesOf(waitsOf(buildRollout(stages), { c1: { observation: sent() } })).slice(1),
    ).toEqual([
      'stages since 08:00: 2 workers of spec.commands[0] wait until the controllers of spec.commands[0] are done',
      'stages since 08:00: 1 worker of spec.commands[1] waits until the controllers of spec.commands[0] are done',
    ]);
  });

  test('the commands of a plan are numbered only if there are several', () => {
    const stages = [buildStage('controller', [flying('c1')]), buildStage('worker', ['w1', 'w2'])];
    expect(
      linesOf(waitsOf(buildRollout(stages), { c1: { observation: sent() } })).slice(1),
    ).toEqual(['stages since 08:00: 2 workers wait until the controllers are done']);
  });
});

describe('what stops everything', () => {
  const failing = [
    buildStage('worker', [buildTarget('w1', 'failed'), flying('w2'), 'w3'], { maxInFlight: 2 }),
  ];

  test('after a failure the wait says why nothing starts, and targets in flight may finish', () => {
    const reason = { code: 'TargetFailed', message: 'w1: FailedDownload: 404' } as const;
    const waits = waitsOf(buildRollout(failing, { reason }), { w2: { observation: sent() } });
    expect(linesOf(waits)).toEqual([
      'w2 (signalled) since 08:00: w2 is signalled; its work has not begun yet; until 10:00',
      'failure-budget since 08:00: nothing new starts: w1: FailedDownload: 404; 1 node failed (w1), more than failureBudget 0 (the default, since no UpgradePolicy applies) allows',
    ]);
  });

  test.each([
    ['with something left to do', [buildStage('worker', ['w1'])]],
    ['with nothing left to do', [buildStage('worker', [buildTarget('w1', 'done')])]],
  ])('a plan that was edited to an invalid one is explained as stopped, %s', (_name, stages) => {
    const problems = [{ code: 'InvalidPlan', message: 'spec.id must name this run' } as const];
    expect(linesOf(waitsOf(buildRollout(stages, { problems })))).toEqual([
      'plan-valid since 08:00: the plan was changed while it ran: spec.id must name this run',
    ]);
  });

  test.each(['done', 'failed', 'incomplete', 'invalid'] as const)(
    'a rollout that is %s waits for nothing',
    (phase) => {
      const snapshot = buildSnapshot(buildRollout(failing, { phase }));
      const { waits, recheckAfterMs } = decide(snapshot, POLICY, NOW);
      expect({ waits, recheckAfterMs }).toEqual({ waits: [], recheckAfterMs: undefined });
    },
  );
});

describe('where each target is', () => {
  const phasesOf = (snapshot: Snapshot): object => {
    const phaseIn = phaseOf.bind(undefined, assess(snapshot, POLICY, NOW));
    return Object.fromEntries(
      withStages(snapshot.rollout).map(({ stage, target }) => [target.key, phaseIn(stage, target)]),
    );
  };
  const stage = buildStage('worker', [
    'w1',
    flying('w2'),
    flying('w3'),
    flying('w4'),
    flying('w5'),
    buildTarget('w6', 'done'),
    flying('w7'),
    buildTarget('w8', 'missing'),
    buildTarget('w9', 'unsupported'),
  ]);
  test('the phase of each target comes from the recorded state and the observed state', () => {
    const facts: Facts = {
      w3: { observation: sent() },
      w4: { observation: working('Restart') },
      w5: { observation: succeeded(), ready: false },
      w6: { observation: failed('an older run') },
      w7: { observation: failed('404') },
    };
    expect(phasesOf(buildSnapshot(buildRollout([stage]), facts))).toEqual({
      '0/worker/w1': 'pending',
      '0/worker/w2': 'intended',
      '0/worker/w3': 'signalled',
      '0/worker/w4': 'working',
      '0/worker/w5': 'verifying',
      '0/worker/w6': 'done',
      '0/worker/w7': 'failed',
      '0/worker/w8': 'missing',
      '0/worker/w9': 'unsupported',
    });
  });
});

test('a gate that blocks all targets is reported once, and none waits for a free slot', () => {
  const stage = buildStage('worker', [buildTarget('w1'), buildTarget('w2'), buildTarget('w3')]);
  const { waits } = explain(
    assess(
      buildSnapshot(buildRollout([stage])),
      buildPolicy({ paused: true, name: 'nightly' }),
      T0,
    ),
  );
  expect(waits.map(({ target, gate }) => ({ target, gate }))).toEqual([
    { target: 'w1', gate: 'not-paused' },
  ]);
});
