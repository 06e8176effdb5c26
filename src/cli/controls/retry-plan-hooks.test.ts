/** Shows what `refit retry PLAN` and `refit why` do with failed hooks of a whole plan. */

import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { buildViewParts, recorded, statusOf } from '../../../test/support/builders/views.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { planHookRuns } from '../../engine/gates/hook-runs.ts';
import { ABORT_ANNOTATION, RETRY_HOOKS_ANNOTATION } from '../../engine/model/controls.ts';
import type { HookResult, HookState } from '../../hooks/rules.ts';
import { messageOf } from '../../util/errors.ts';
import { mediumOf } from '../output.ts';
import { type Inspection, inspect, shownAt } from '../status/observe.ts';
import { whyLines } from '../why/why-command.ts';
import { retry } from './retry.ts';

const NOW = T0 + 10 * MINUTE;
const SAID = 'hooks.example answered 422: the pager is silent';
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });

interface Case {
  readonly when?: 'BeforePlan' | 'AfterPlan';
  readonly state?: HookState;
  readonly onFailure?: 'Stop' | 'Ignore';
  readonly isDone?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
  /** True if the result belongs to an attempt before the last retry. */
  readonly isOld?: boolean;
}

async function inspected(given: Case): Promise<Inspection> {
  const { when = 'BeforePlan', state = 'failed', onFailure = 'Stop', isDone = false } = given;
  const webhook = { url: 'https://hooks.example', secretName: 's' };
  const hooks = [{ name: 'freeze', when, webhook, timeout: '5m', onFailure }];
  const policy = buildUpgradePolicy('careful', { hooks });
  const targets = { w1: isDone ? 'SignalCompleted' : 'SignalPending' };
  const status = statusOf(
    isDone ? 'Completed' : 'SchedulableWait',
    [],
    recorded(targets, later(MINUTE)),
  );
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const made = buildPlan({ commands: [{ k0supdate }] }, status);
  const { annotations = {} } = given;
  const plan = { ...made, metadata: { ...made.metadata, annotations } };
  const world = buildWorld([buildControlNode('c1')], [buildNode('w1')]);
  const at = { dialect: autopilot, world };
  const first = await inspect(at, plan, buildViewParts({}, [policy]), NOW);
  const { snapshot, policy: read } = first;
  const named = given.isOld
    ? withParts(snapshot, {
        plan: { controls: { ...snapshot.plan.controls, hooksRetried: later(0) } },
      })
    : snapshot;
  const results = planHookRuns(named, read, 'beforePlan', 'afterPlan').map(
    ({ id }): HookResult => ({ id, hook: 'freeze', state, message: SAID, since: T0 + 2 * MINUTE }),
  );
  const sources = { hooks: async () => await Promise.resolve(results) };
  return await inspect(at, plan, buildViewParts(sources, [policy]), NOW);
}

async function said(given: Case, name = 'autopilot'): Promise<string> {
  const inspection = await inspected(given);
  try {
    const change = retry(name)({ ...inspection, view: shownAt(inspection, NOW) }, NOW);
    const at = change.annotations?.[RETRY_HOOKS_ANNOTATION];
    return [at === later(10 * MINUTE) ? 'written' : `written ${at}`, ...change.said].join(': ');
  } catch (error) {
    return messageOf(error);
  }
}

const TITLE = 'Plan autopilot (id1)';

test.each<[string, Case, string]>([
  ['before the plan failed', {}, `written: The hooks of ${TITLE} will run again: freeze failed.`],
  [
    'after the plan failed',
    { when: 'AfterPlan', isDone: true },
    `written: The hooks of ${TITLE} will run again: freeze failed.`,
  ],
  [
    'runs',
    { state: 'running' },
    `no hook of ${TITLE} has failed: BeforePlan and AfterPlan hooks run again only after a failure`,
  ],
  [
    'failed, and the policy ignores that',
    { onFailure: 'Ignore' },
    `no hook of ${TITLE} has failed: BeforePlan and AfterPlan hooks run again only after a failure`,
  ],
  [
    'was tried again already',
    { annotations: { [RETRY_HOOKS_ANNOTATION]: later(5 * MINUTE) }, isOld: true },
    `no hook of ${TITLE} has failed since its hooks were tried again at ${later(5 * MINUTE)}`,
  ],
])('what retry says of a plan whose hook %s', async (_what, given, expected) => {
  expect(await said(given)).toBe(expected);
});

test.each<[string, Case, readonly string[] | undefined]>([
  ['a hook that failed', {}, ['freeze']],
  ['a failure that the policy ignores', { onFailure: 'Ignore' }, undefined],
  [
    'a failure from before the last retry',
    { annotations: { [RETRY_HOOKS_ANNOTATION]: later(5 * MINUTE) }, isOld: true },
    undefined,
  ],
  ['an aborted plan', { annotations: { [ABORT_ANNOTATION]: 'no' } }, undefined],
])('the view offers to retry what retry accepts: %s', async (_what, given, expected) => {
  const { hooks, retryableHooks } = shownAt(await inspected(given), NOW);
  expect(hooks).toHaveLength(1);
  expect(retryableHooks).toEqual(expected);
});

test('a retry of hooks is refused for an aborted plan and for a name that is no target', async () => {
  expect(await said({ annotations: { [ABORT_ANNOTATION]: 'no' } })).toMatch(
    /^Plan autopilot \(id1\) was aborted, so its hooks cannot run again; to start again: /,
  );
  expect(await said({}, 'w9')).toBe(`w9 is not a target of ${TITLE}`);
});

test.each<[string, Case, string]>([
  [
    'before the plan',
    {},
    `no node starts, because the hook freeze of UpgradePolicy careful failed: ${SAID}`,
  ],
  [
    'after the plan',
    { when: 'AfterPlan', isDone: true },
    `freeze of the plan failed 8 min ago: ${SAID}`,
  ],
])(
  'why says which command repeats the hook of a plan that failed %s',
  async (_what, given, expected) => {
    const plans = [shownAt(await inspected(given), NOW)];
    const leader = { state: 'held', holder: 'a', since: later(0) } as const;
    const lines = whyLines({ leader, plans }, undefined, NOW, PIPE).join('\n');
    expect(lines.split(SAID)).toHaveLength(2);
    expect(lines).toContain(expected);
  },
);
