/** Shows which remedy the user gets for a failed plan whose nodes failed because of a hook. */

import { expect, test } from 'vitest';
import { withTexts } from '../../../test/support/builders/dialects.ts';
import { blockedByBudget } from '../../drain/budgets.ts';
import type { SituatedTarget } from '../../engine/explain/situations.ts';
import { situationsOf } from '../../engine/explain/situations.ts';
import type { ShownPlan, TargetJson } from '../status/json-form.ts';
import { toDo } from './advice.ts';

/** Returns the first advice about a plan of which only these fields are known. */
function firstAdvice(fields: object): string {
  const plan = withTexts(fields as { dialect: string }) as unknown as ShownPlan;
  const { phase, reasonCode, abort, paused, startsAgain = false, waits, rollsBackRun } = plan;
  const situations = situationsOf({
    phase,
    cause: reasonCode === undefined ? undefined : { code: reasonCode },
    abort,
    paused,
    startsAgain,
    isRollBack: rollsBackRun !== undefined,
    isRecordedRollBack: rollsBackRun !== undefined,
    targets: plan.stages.flatMap(({ targets }) => targets.map(situated)),
    waits,
    failedHoldSlots: false,
    failedChecks: plan.failedChecks ?? [],
  });
  return toDo({ ...plan, situations })[0] ?? '';
}

function situated({ name, phase, ...target }: TargetJson): SituatedTarget {
  const { failure = '', failureReason: code, isThere = false, gone = false } = target;
  const cause = code === undefined ? undefined : { code, message: failure };
  const none = { differs: false, held: undefined, pinned: undefined };
  return { name, phase, isThere, exists: !gone, cause, ...none };
}

const HOOK = 'the hook detach of UpgradePolicy nightly failed: Job a/b failed';

const BAD = 'the health check errors fails: the value is 0.1, above max 0.05';

test.each<[string, object, string]>([
  ['of the node', { failure: HOOK, failureReason: 'HookFailed' }, 'Repair what the hook reports'],
  ['of another node', { failure: 'no space left' }, 'Fix the cause'],
])('the advice about a hook that failed %s', (_when, failure, remedy) => {
  const stages = [{ targets: [{ name: 'w1', phase: 'failed', ...failure }] }];
  const plan = { dialect: 'autopilot', name: 'autopilot', phase: 'failed', stages, waits: [] };
  const fix = firstAdvice(plan);
  expect(fix).toContain(`Failed. ${remedy}`);
  expect(fix).toContain('run: refit retry w1');
});

test.each<[string, string | undefined, string]>([
  ['autopilot', undefined, 'delete the Plan and apply it again'],
  ['autopilot', 'id1@2026-11-20T08:00:00Z', '--run id1@2026-11-20T08:00:00Z --reason'],
  ['autopilot', "it's mine", "--run 'it'\\''s mine' --reason"],
  ['kubeadm', 'id1', 'run `refit kubeadm apply` again'],
])(
  'the advice about a plan of %s that rolls run %j back names what starts it again',
  (dialect, rollsBackRun, again) => {
    const plan = withTexts({ dialect, name: 'autopilot', rollsBackRun });
    expect(plan.texts.advice.again(plan).clause).toContain(again);
    expect(plan.texts.advice.startOver(plan).clause).toContain(again);
  },
);

test.each([
  [true, 'run `refit kubeadm apply --back` again'],
  [undefined, 'run `refit kubeadm apply` again'],
])(
  'the advice about kubeadm hosts that go back (%j) names the command that starts it again',
  (goesBack, again) => {
    const stages = [{ targets: [{ name: 'w1', phase: 'failed', failureReason: 'TargetFailed' }] }];
    const plan = {
      dialect: 'kubeadm',
      name: 'refit-kubeadm',
      phase: 'failed',
      stages,
      waits: [],
      goesBack,
    };
    expect(firstAdvice(plan)).toContain(again);
    expect(firstAdvice({ ...plan, abort: 'no' })).toContain(`To start again: ${again}`);
  },
);

test('the advice about a failed kubeadm host whose Node is gone names the host', () => {
  const gone = { name: 'w1', phase: 'failed', failureReason: 'TargetGone', gone: true };
  const plan = { dialect: 'kubeadm', name: 'refit-kubeadm', phase: 'failed', waits: [] };
  expect(firstAdvice({ ...plan, stages: [{ targets: [gone] }] })).toBe(
    'Failed. When w1 is back, or out of the manifest: run `refit kubeadm apply` again: it continues where it stopped.',
  );
});

test('the advice about an edited Plan that goes back names the version of the record', () => {
  const plan = { dialect: 'autopilot', name: 'autopilot', phase: 'edited', stages: [] };
  expect(firstAdvice({ ...plan, rollsBackRun: 'id1' })).toBe(
    'The edit is not carried out, because the plan had ended. To go back as recorded: run refit rollback autopilot --run id1 --reason TEXT, which replaces this Plan by another one.',
  );
});

interface Failure {
  readonly failureReason?: string;
  readonly isThere?: boolean;
  readonly failure?: string;
}

function fixFor(dialect: string, failures: readonly Failure[], more: object = {}): string {
  const targets = failures.map((failure, index) => ({
    name: `w${index + 1}`,
    phase: 'failed',
    failure: BAD,
    ...failure,
  }));
  const stages = [{ targets: [...targets, { name: 'w9', phase: 'pending' }] }];
  const plan = { dialect, name: 'agents', phase: 'failed', stages, waits: [], ...more };
  return firstAdvice(plan);
}

const REFUSED = { isThere: true, failureReason: 'HealthCheckFailing' };
const DRAIN = { isThere: false, failureReason: 'DrainTooLong' };
const RETRY = {
  gate: 'retry',
  reason: { code: 'RetryPause', message: 'paused' },
  target: 'w1',
  until: '2026-11-20T08:10:00Z',
};
const LATE = { isThere: true, failureReason: 'DeadlineExceeded' };

test.each<[string, string, readonly Failure[], string, object?]>([
  [
    'a node of k0s whose drain took too long',
    'autopilot',
    [DRAIN],
    'Failed. Remove what blocked the drain, or raise `deadlines.drain` in the policy, then run: refit retry w1',
  ],
  [
    'a node of k0s whose drain a budget blocked',
    'autopilot',
    [
      {
        ...DRAIN,
        failure: `1 pod is left: ${blockedByBudget('shop/web', 'shop/web-1', 'none may go')}`,
      },
    ],
    'Failed. Let PodDisruptionBudget shop/web allow an eviction: run more replicas, make its pods healthy, or change the budget; or raise `deadlines.drain` in the policy if its operator needs more time, then run: refit retry w1',
  ],
  [
    'a node that Refit tries again by itself',
    'autopilot',
    [{ failureReason: 'TargetFailed' }],
    'Refit tries w1 again by itself, at 2026-11-20T08:10:00Z. Fix the cause (the node, or the version, url or sha256 in the Plan) before that. To try it sooner, run: refit retry w1',
    { phase: 'running', waits: [RETRY] },
  ],
  [
    'two nodes, of which Refit tries only the first again',
    'autopilot',
    [{ failureReason: 'TargetFailed' }, { failureReason: 'TargetFailed' }],
    'Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run: refit retry w2',
    { phase: 'running', waits: [RETRY] },
  ],
  [
    'a node on which the release of an ended Plan does not work',
    'autopilot',
    [{ isThere: false, failureReason: 'TargetFailed' }],
    'then run: refit retry w1. If the release is bad: run refit upgrade VERSION, which replaces this Plan.',
  ],
  [
    'a node on which the release of a running Plan does not work',
    'autopilot',
    [{ isThere: false, failureReason: 'TargetFailed' }],
    'If the release is bad: run refit abort, and refit upgrade VERSION once the Plan has ended.',
    { phase: 'running' },
  ],
  [
    'a node on which the release of a Plan of Rancher does not work',
    'cattle',
    [{ isThere: false, failureReason: 'TargetFailed' }],
    'If the release is bad: run refit upgrade VERSION --plan cattle/system-upgrade/agents, and the same for each other Plan that installs this release.',
    { namespace: 'system-upgrade' },
  ],
  [
    'a node whose agent refused the signal',
    'capi',
    [{ isThere: false, failureReason: 'TargetRefused' }],
    'Failed. Correct what the plan asks for, such as its URL, or change the rule that the message names: a flag or the file of the agent, or an admission rule of the API server, then run: refit retry w1',
  ],
  [
    'two nodes that failed for different reasons',
    'autopilot',
    [DRAIN, { isThere: false, failureReason: 'TargetFailed' }],
    'Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run for each of w1, w2: refit retry NODE',
  ],
  [
    'a node of k0s that a health check refused',
    'autopilot',
    [REFUSED],
    'Failed. w1 runs the version, but failed afterwards. If the release is bad: run refit rollback agents --reason TEXT. If the cause is elsewhere: repair it, then run: refit retry w1',
  ],
  [
    'a node of a Plan of Rancher in a namespace',
    'cattle',
    [REFUSED],
    'Failed. w1 runs the version, but failed afterwards. If the release is bad: run refit rollback cattle/system-upgrade/agents --image IMAGE --reason TEXT. If the cause is elsewhere: repair it, then run: refit retry w1 --plan cattle/system-upgrade/agents',
    { namespace: 'system-upgrade' },
  ],
  [
    'a host of kubeadm, which has no retry',
    'kubeadm',
    [REFUSED],
    'Failed. w1 runs the version, but failed afterwards. If the release is bad: write the older patch and its binaries into the manifest, then run refit kubeadm apply --back. If the cause is elsewhere: repair it, then run `refit kubeadm apply` again: it continues where it stopped',
  ],
  [
    'a node whose reason nobody recorded: the release may be bad',
    'autopilot',
    [{ isThere: true }],
    'If the release is bad: run refit rollback agents',
  ],
  [
    'one node that was refused and one that never got the version',
    'autopilot',
    [REFUSED, { failureReason: 'TargetFailed' }],
    'Failed. w1 runs the version, but failed afterwards. If the release is bad: run refit rollback agents --reason TEXT. If the cause is elsewhere: repair it, then run for each of w1, w2: refit retry NODE',
  ],
  [
    'one node that was refused and one that was only late',
    'autopilot',
    [REFUSED, LATE],
    'repair it, then run: refit retry w1',
  ],
  ['a node that was only late', 'autopilot', [LATE], 'Nothing to fix: w1 runs the version now.'],
  [
    'a node of a plan that goes back itself',
    'autopilot',
    [REFUSED],
    'Failed. w1 runs the version, but failed afterwards. Find the cause: repair it, then run: refit retry w1',
    { rollsBackRun: 'uid/id1' },
  ],
  [
    'a node of k0s that a health check refused, with the wait of the roll-back for this check',
    'autopilot',
    [REFUSED],
    'If the release is bad: run refit rollback agents --reason TEXT. No node goes back while the health check errors fails. If only the release makes it fail, run this as soon as the plan that goes back waits for it: refit accept agents --check errors. If the cause is elsewhere: repair it, then run: refit retry w1',
    { failedChecks: ['errors'] },
  ],
  [
    'a node of a Plan of Rancher that a health check refused, with the whole name of the Plan',
    'cattle',
    [REFUSED],
    'refit accept cattle/system-upgrade/agents --check errors',
    { failedChecks: ['errors'], namespace: 'system-upgrade' },
  ],
  [
    'a node of a plan that still runs, which must be aborted before it can go back',
    'autopilot',
    [REFUSED],
    'If the release is bad: run refit abort agents and wait until the nodes in progress have finished, then run refit rollback agents --reason TEXT.',
    { phase: 'running' },
  ],
  [
    'a refused node of an aborted plan',
    'autopilot',
    [REFUSED],
    'Aborted. To start again: delete the Plan and apply it again. To take the upgraded nodes back: run refit rollback agents --reason TEXT. No node goes back while the health check errors fails.',
    { abort: 'wrong release', failedChecks: ['errors'] },
  ],
])('what to do about %s', (_name, dialect, failures, expected, more) => {
  const fix = fixFor(dialect, failures, more);
  expect(fix).toContain(expected);
  expect(fix.includes('Nothing to fix')).toBe(expected.includes('Nothing to fix'));
});

const DAMAGED = [{ targets: [{ name: 'w1', phase: 'failed', gone: true, failure: 'x' }] }];

test.each<[string, object]>([
  ['edited after its end', { phase: 'edited', stages: [] }],
  ['whose nodes were changed afterwards', { phase: 'differs', stages: [] }],
  ['with mixed versions', { phase: 'differs', reasonCode: 'MixedVersions', stages: [] }],
  ['that was aborted', { phase: 'failed', abort: 'by me', stages: [] }],
  ['without a target', { phase: 'empty', stages: [] }],
  ['that is refused', { phase: 'invalid', stages: [] }],
  ['whose failed node is gone', { phase: 'failed', stages: DAMAGED }],
])(
  'a Plan of an UpdateConfig %s is applied again only if the UpdateConfig was deleted',
  (_state, scene) => {
    const plan = { dialect: 'autopilot', name: 'autopilot', waits: [], ...scene };
    const ofUser = firstAdvice(plan);
    expect(ofUser).toMatch(/apply (?:it again|one)/);
    const fix = firstAdvice({ ...plan, updateConfig: 'stable' });
    const anew = 'apply it again only if UpdateConfig stable does not exist any more';
    expect(fix).toContain(anew);
    expect(fix.replaceAll(anew, '')).not.toMatch(/apply/);
  },
);

test('the way back from a release of an UpdateConfig begins with the UpdateConfig, which would install it again', () => {
  const plan = { dialect: 'autopilot', name: 'autopilot', reasonCode: 'MixedVersions', stages: [] };
  expect(firstAdvice({ ...plan, updateConfig: 'stable' })).toContain(
    'To go back: delete UpdateConfig stable, if it still exists, then run refit rollback autopilot',
  );
});

test('the way back from a plan that still runs begins with its abort', () => {
  const targets = [{ name: 'w1', phase: 'failed', isThere: true }];
  const stages = [{ targets }, { targets: [{ name: 'w2', phase: 'pending' }] }];
  const plan = { dialect: 'autopilot', name: 'autopilot', phase: 'running', stages, waits: [] };
  expect(firstAdvice({ ...plan, updateConfig: 'stable' })).toContain(
    'If the release is bad: run refit abort autopilot and wait until the nodes in progress have finished, then delete UpdateConfig stable, if it still exists, then run refit rollback autopilot --reason TEXT.',
  );
});
