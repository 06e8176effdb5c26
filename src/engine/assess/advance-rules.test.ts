/** Tests which rules of a policy change a whole rollout: edits, refusals before the start, and kubelets left behind. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { NONE, sent, succeeded } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { advance, choose, refusalsOf, versionVerdict } from './advance.ts';
import { assess } from './assess.ts';

const UNREAD = because('CannotDecide', 'a status shard is missing');

interface Scene {
  readonly targets?: readonly (string | Target)[];
  readonly facts?: Readonly<Record<string, Partial<TargetFacts>>>;
  readonly rollout?: Partial<Rollout>;
  readonly parts?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
}

function sceneOf({ targets = ['w1'], facts, rollout, parts, policy }: Scene) {
  const stage = buildStage('worker', targets);
  const snapshot = withParts(buildSnapshot(buildRollout([stage], rollout), facts), parts);
  return { stage, snapshot, policy: buildPolicy(policy), now: T0 + MINUTE };
}

function after(scene: Scene): Rollout {
  const { snapshot, policy, now } = sceneOf(scene);
  return advance(assess(snapshot, policy, now));
}

describe('the rule for edits', () => {
  const PAUSED = { paused: true };
  const IGNORING: Scene = {
    policy: { ...PAUSED, ignoresEdits: true },
    parts: { abilities: { canIgnoreEdits: true } },
  };

  test.each<[string, true | undefined, Scene]>([
    ['is recorded while the plan runs', true, IGNORING],
    [
      'is removed once the policy follows edits',
      undefined,
      { policy: PAUSED, parts: IGNORING.parts ?? {}, rollout: { ignoresEdits: true } },
    ],
    ['needs a dialect that supports it', undefined, { policy: { ...PAUSED, ignoresEdits: true } }],
    [
      'is removed at the end of the plan',
      undefined,
      { ...IGNORING, rollout: { phase: 'done', ignoresEdits: true } },
    ],
    [
      'stays if the record cannot be read',
      true,
      { rollout: { ignoresEdits: true, unread: UNREAD } },
    ],
    [
      'is not added to a record that cannot be read',
      undefined,
      { ...IGNORING, rollout: { unread: UNREAD } },
    ],
  ])('%s', (_title, expected, scene) => {
    expect(after(scene).ignoresEdits).toBe(expected);
  });

  test('changes nothing if the record has it already', () => {
    const { snapshot, policy, now } = sceneOf({
      ...IGNORING,
      rollout: { ignoresEdits: true, blocked: true },
    });
    expect(advance(assess(snapshot, policy, now))).toBe(snapshot.rollout);
  });
});

describe('an attempt without a recorded time', () => {
  const lacking = buildTarget('w1', 'intended', { lacksAttempt: true, since: later(0) });
  const stateAfter = (scene: Scene) => {
    const [target] = after({ targets: [lacking], ...scene }).stages[0]?.targets ?? [];
    return [target?.state, target?.since, target?.lacksAttempt];
  };

  test('is recorded with the time of its signal', () => {
    const facts = { w1: { observation: sent(later(7000)) } };
    expect(stateAfter({ facts })).toEqual(['intended', later(7000), undefined]);
  });

  test.each<[string, Scene]>([
    [
      'an aborted plan',
      {
        facts: { w1: { observation: sent() } },
        parts: { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } },
      },
    ],
    [
      'a refused write',
      {
        facts: {
          w1: {
            observation: sent(),
            refusal: { reason: because('TargetRefused', 'no'), recheckMs: 5000 },
          },
        },
      },
    ],
    [
      'a target without a signal under a pause',
      { facts: { w1: { observation: NONE } }, policy: { paused: true } },
    ],
  ])('stays unrecorded with %s', (_title, scene) => {
    expect(stateAfter(scene)[2]).toBe(true);
  });
});

test('a target at rest keeps its record, although its object reports a success', () => {
  const skipped = buildTarget('w1', 'skipped');
  const scene: Scene = { targets: [skipped, 'w2'], facts: { w1: { observation: succeeded() } } };
  expect(after(scene).stages[0]?.targets[0]).toMatchObject({ state: 'skipped', since: later(0) });
});

test('nothing is chosen while nothing new starts', () => {
  const { snapshot, policy, now, stage } = sceneOf({
    rollout: { problems: [because('InvalidPlan', 'no version')] },
  });
  expect(choose(assess(snapshot, policy, now), stage)).toEqual({
    chosen: [],
    waiting: [],
    stopped: [],
  });
});

test('targets are skipped only while no other target starts', () => {
  const hold = { by: 'ann', reason: 'disk' };
  const scene: Scene = {
    targets: ['w1', 'w2'],
    facts: { w1: { hold } },
    policy: { leavesOutHeld: true },
    parts: { abilities: { canSkip: true } },
  };
  expect(after(scene).stages[0]?.targets.map(({ state }) => state)).toEqual([
    'pending',
    'intended',
  ]);
  const alone = after({ ...scene, targets: ['w1'] });
  expect(alone.stages[0]?.targets.map(({ state }) => state)).toEqual(['skipped']);
});

describe('the reasons to refuse a plan', () => {
  const missing = { w1: { exists: false } };
  const broken = { rollout: { problems: [because('InvalidPlan', 'it has no version')] } };
  const codesOf = (scene: Scene) =>
    refusalsOf(sceneOf({ ...scene, rollout: { phase: 'new', ...scene.rollout } })).map(
      ({ code }) => code,
    );

  test('are those of the plan, of its preconditions and of each target', () => {
    const unmet = because('InvalidPlan', 'another plan has the same nodes');
    const parts = { plan: { preconditions: answered([unmet]) } };
    expect(codesOf({ ...broken, facts: missing, parts })).toEqual([
      'InvalidPlan',
      'InvalidPlan',
      'TargetMissing',
    ]);
  });

  test('leave out the targets if the policy cannot be read', () => {
    const policy = { problems: [because('PolicyUnreadable', 'a bad window')] };
    expect(codesOf({ ...broken, facts: missing, policy })).toEqual(['InvalidPlan']);
  });

  test('a plan under a policy that cannot be read stays new', () => {
    const policy = { problems: [because('PolicyUnreadable', 'a bad window')] };
    expect(after({ facts: missing, rollout: { phase: 'new' }, policy }).phase).toBe('new');
  });
});

describe('kubelets that a plan leaves behind', () => {
  const kubelet = (name: string, version: string, labels: Record<string, string> = {}) => {
    const node = buildNode(name, { labels });
    return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: version } } };
  };
  const VIRTUAL = { type: 'virtual-kubelet' };

  function problemsOf(policy: Partial<RolloutPolicy>, parts: SnapshotChanges): string[] {
    const target = 'v1.37.0';
    const rollout = buildRollout([
      buildStage('controller', ['c1'], { version: target }),
      buildStage('worker', ['w1'], { version: target }),
    ]);
    const facts = { c1: { version: 'v1.36.0' }, w1: { version: 'v1.36.0' } };
    const snapshot = withParts(
      buildSnapshot(rollout, facts),
      {
        cluster: {
          apiServers: [{ name: 'c1', version: 'v1.36.0' }],
          fleet: [
            kubelet('c1', 'v1.33.0'),
            kubelet('w1', 'v1.36.0'),
            kubelet('old', 'v1.33.0'),
            kubelet('cloud', 'v1.30.0', VIRTUAL),
          ],
        },
        abilities: { mostBehind: 3 },
      },
      parts,
    );
    return versionVerdict(snapshot, buildPolicy(policy)).problems.map(({ message }) => message);
  }

  test('are workers of no stage whose version is too old, without virtual Nodes', () => {
    const [problem = '', ...others] = problemsOf({}, {});
    expect(others).toEqual([]);
    expect(problem).toMatch(/^old would still have a kubelet of v1\.33\.0 when the API server/);
  });

  test('leave out a controller of the plan that no API server has as its name', () => {
    const parts = { cluster: { apiServers: [{ name: 'api', version: 'v1.36.0' }] } };
    const names = problemsOf({}, parts).map((message) => message.split(' ', 1)[0]);
    expect(names).toContain('old');
    expect(names).not.toContain('c1');
  });

  test('include virtual Nodes if the policy counts them', () => {
    expect(problemsOf({ countsVirtual: true }, {}).join(' ')).toContain('cloud');
  });

  test('are allowed by the policy, by a distribution without a limit, and without Nodes', () => {
    expect(problemsOf({ allow: new Set(['KubeletBehind']) }, {})).toEqual([]);
    expect(problemsOf({}, { abilities: { mostBehind: undefined } })).toEqual([]);
    expect(problemsOf({}, { cluster: { fleet: undefined } })).toEqual([]);
  });

  test('are not judged while nobody knows the API servers, or while gates judge each target', () => {
    expect(problemsOf({}, { cluster: { apiServers: undefined } })).toEqual([]);
    expect(problemsOf({}, { abilities: { waitsForVersions: true } })).toEqual([]);
  });
});
