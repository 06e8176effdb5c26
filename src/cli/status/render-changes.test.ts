/** Shows what a watch writes to a pipe: the sums first, then each change once. */

import { expect, test } from 'vitest';
import { withTexts } from '../../../test/support/builders/dialects.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import type { Node } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import type { ShownStatus, StageJson } from './json-form.ts';
import type { LeaderView } from './load.ts';
import { changesBetween } from './render.ts';

const NOW = T0 + MINUTE;
const commands = [{ k0supdate: buildUpdate({ targets: { workers: listed('w1', 'w2', 'w3') } }) }];
const W1 = buildNode('w1');
const W2 = buildNode('w2');

function planWith(w1: string, w2: string, state = 'SchedulableWait', why?: string): Plan {
  const targets = recorded({ w1, w2, w3: 'SignalPending' });
  return buildPlan({ commands }, statusOf(state, [], targets, why));
}

async function look(
  plans: readonly Plan[],
  workers: readonly Node[],
  more: Partial<ShownStatus> = {},
) {
  const leader: LeaderView = { state: 'unknown' };
  return { leader, plans: await lookAt(plans, [], [...workers, buildNode('w3')], NOW), ...more };
}

/** Returns the lines between two views without their time. Checks that all lines have the same time. */
function told(before: ShownStatus | undefined, after: ShownStatus): string[] {
  const lines = changesBetween(before, after, NOW);
  expect(lines.filter((line) => !line.startsWith(`${later(MINUTE)} `))).toEqual([]);
  return lines.map((line) => line.slice(later(0).length + 1));
}

test('a watch first tells the sums, what is open, and how the plan is', async () => {
  const view = await look([planWith('SignalCompleted', 'SignalSent')], [W1, signalled(W2)]);
  expect(told(undefined, view)).toEqual([
    'Plan autopilot has 1 of 3 workers done',
    'Plan autopilot worker w2 signalled',
    'Plan autopilot is running',
  ]);
});

test('a watch tells nothing if nothing has changed', async () => {
  const view = await look([planWith('SignalCompleted', 'SignalSent')], [W1, signalled(W2)]);
  expect(told(view, view)).toEqual([]);
});

test('a watch tells the step of a node, then its end, then its wait for a gate', async () => {
  const plan = planWith('SignalCompleted', 'SignalSent');
  const sent = await look([plan], [W1, signalled(W2)]);
  const restart = await look([plan], [W1, signalled(W2, { status: 'Restart' })]);
  const done = await look(
    [plan],
    [W1, signalled(buildNode('w2', {}, 'False'), { status: 'Completed' })],
  );
  expect(told(sent, restart)).toEqual(['Plan autopilot worker w2 Restart']);
  expect(told(restart, done)).toEqual([
    'Plan autopilot worker w2 verifying',
    'Plan autopilot w2 waits (NodeNotReady): node w2 is not Ready',
  ]);
});

const allDone = (stage: StageJson): StageJson => ({
  ...stage,
  targets: stage.targets.map((target) => ({ ...target, phase: 'done' })),
});

test('if a node is done, a watch tells how far the plan is and how long the rest takes', async () => {
  const at = async (w2: string, spent: number): Promise<ShownStatus> => {
    const view = await look([planWith('SignalCompleted', w2)], [W1, W2]);
    const plans = view.plans.map((plan) => ({
      ...plan,
      waits: [],
      stages: plan.stages.map((stage) => ({
        ...stage,
        targets: stage.targets.map((target) => ({ ...target, spent: { all: spent } })),
      })),
    }));
    return { ...view, plans };
  };
  const sent = await at('SignalSent', MINUTE);
  const done = await at('SignalCompleted', MINUTE);
  expect(told(sent, done)).toEqual([
    'Plan autopilot worker w2 done',
    'Plan autopilot 66 %, about 1 min left',
  ]);
  expect(told(done, done)).toEqual([]);
  const soon = [await at('SignalSent', 4000), await at('SignalCompleted', 4000)] as const;
  expect(told(...soon).at(-1)).toBe('Plan autopilot 66 %');
  const nothing = {
    ...done,
    plans: done.plans.map((plan) => ({ ...plan, stages: plan.stages.map(allDone) })),
  };
  expect(told(done, nothing).at(-1)).toBe('Plan autopilot 100 %');
});

test('a node that is done and not recorded yet is no wait', async () => {
  const plan = planWith('SignalCompleted', 'SignalSent');
  const restart = await look([plan], [W1, signalled(W2, { status: 'Restart' })]);
  const done = await look([plan], [W1, signalled(W2, { status: 'Completed' })]);
  expect(told(restart, done)).toEqual(['Plan autopilot worker w2 verifying']);
});

test('what a failed node reports is told once', async () => {
  const message = `sha256 of the download is ${'a'.repeat(64)}, wanted ${'b'.repeat(64)}`;
  const report = encodeReport({ created: later(0), reason: message });
  const bad = signalled(W2, { created: later(0), status: 'FailedDownload' }, report);
  const why = `w2: FailedDownload: ${message}`;
  const sent = await look([planWith('SignalSent', 'SignalSent')], [signalled(W1), signalled(W2)]);
  const finishing = await look(
    [planWith('SignalSent', 'SignalApplyFailed', 'SchedulableWait', why)],
    [signalled(W1), bad],
  );
  const ended = await look(
    [planWith('SignalCompleted', 'SignalApplyFailed', 'ApplyFailed', why)],
    [W1, bad],
  );
  const lines = [...told(sent, finishing), ...told(finishing, ended)];
  expect(lines.filter((line) => line.includes('sha256'))).toEqual([
    `Plan autopilot worker w2 failed: FailedDownload: ${message}`,
  ]);
  expect(lines.at(-1)).toBe('Plan autopilot has failed: w2 failed');
});

test('the lines of a kubeadm upgrade do not name the ConfigMap that records it', async () => {
  const view = await look([planWith('SignalCompleted', 'SignalSent')], [W1, signalled(W2)]);
  const plans = view.plans.map((plan) =>
    withTexts({ ...plan, dialect: 'kubeadm', kind: 'ConfigMap' }),
  );
  expect(told(undefined, { ...view, plans })[0]).toBe('kubeadm has 1 of 3 workers done');
});

test('a watch tells the failure of a node and the end of the plan', async () => {
  const sent = await look([planWith('SignalCompleted', 'SignalSent')], [W1, signalled(W2)]);
  const failed = await look(
    [planWith('SignalCompleted', 'SignalApplyFailed', 'ApplyFailed', 'w2: no socket')],
    [W1, signalled(W2, { status: 'Failed' })],
  );
  expect(told(sent, failed)).toEqual([
    "Plan autopilot worker w2 failed: see the node's log for the reason",
    'Plan autopilot has failed: w2: no socket',
  ]);
});

test('a plan that is replaced under its name is another plan', async () => {
  const plan = planWith('SignalCompleted', 'SignalCompleted');
  const before = await look([plan], [W1, W2]);
  const after = await look([{ ...plan, metadata: { ...plan.metadata, uid: 'another' } }], [W1, W2]);
  expect(told(before, after)).toEqual([
    'Plan autopilot is gone',
    'Plan autopilot has 2 of 3 workers done',
    'Plan autopilot is running',
  ]);
});

test('a watch tells that there is no plan, that one came, and that it is gone again', async () => {
  const none = await look([], []);
  const one = await look([planWith('SignalPending', 'SignalPending')], [W1, W2]);
  expect(told(undefined, none)).toEqual(['There is no plan.']);
  expect(told(none, one)).toEqual([
    'Plan autopilot has 0 of 3 workers done',
    'Plan autopilot is running',
  ]);
  expect(told(one, none)).toEqual(['There is no plan.', 'Plan autopilot is gone']);
});

test('a watch tells once, without the growing age, that nobody leads and that the API server is silent', async () => {
  const plans = [planWith('SignalPending', 'SignalPending')];
  const led = await look(plans, [W1, W2]);
  const silent = await look(plans, [W1, W2], {
    leader: { state: 'silent', holder: 'a', since: later(0) },
  });
  const cut = await look(plans, [W1, W2], { silentSince: later(0) });
  expect(told(led, silent)).toEqual([
    'No renewal by leader a: no new node starts until a refit controller runs.',
  ]);
  expect(told(silent, silent)).toEqual([]);
  expect(told(silent, cut)).toEqual([
    'No answer from the API server: the output below may be out of date.',
  ]);
});
