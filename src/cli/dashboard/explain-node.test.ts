/** Shows which commands the page offers for a node: those that help, and none for a name that a shell would split. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { buildViewParts, lookAt, recorded } from '../../../test/support/builders/views.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { HOLD_ANNOTATION, writeHold } from '../../signal/holds.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { ShownStatus } from '../status/json-form.ts';
import { explainToPage } from './explain-node.ts';

const NOW = T0 + MINUTE;
const KEY = 'autopilot//autopilot';

async function statusWith(workers: readonly string[]): Promise<ShownStatus> {
  const state = 'SchedulableWait';
  const k0supdate = buildUpdate({ targets: { workers: listed(...workers) } });
  const states = recorded(
    Object.fromEntries(
      workers.map((name) => [name, name === 'w1' ? 'SignalApplyFailed' : 'SignalPending']),
    ),
  );
  const status = { state, commands: [{ id: 0, state, k0supdate: { workers: states } }] };
  const hold = { [HOLD_ANNOTATION]: writeHold({ by: 'ada', since: rfc3339(T0) }) };
  const nodes = workers.map((name) => buildNode(name, { annotations: name === 'w2' ? hold : {} }));
  const policies = [buildUpgradePolicy('careful', { failureBudget: 1 })];
  const plan = buildPlan({ commands: [{ k0supdate }] }, status);
  const plans = await lookAt([plan], [], nodes, NOW, buildViewParts({}, policies));
  return { leader: { state: 'unknown' }, plans };
}

async function commandsOf(node: string, key = KEY): Promise<readonly string[] | undefined> {
  const status = await statusWith(['w1', 'w2', 'w3', 'w4; reboot']);
  const said = explainToPage(status, key, node, NOW);
  return said.find(({ areCommands }) => areCommands)?.lines;
}

test('the page offers to end the hold of a held node', async () => {
  expect((await commandsOf('w2'))?.[0]).toBe('refit unhold w2');
});

test('the page offers to hold a node that has not started, and to explain it', async () => {
  expect(await commandsOf('w3')).toEqual(['refit why w3', 'refit hold w3 --reason TEXT']);
});

test('the page offers to read the logs of a failed node, and not to hold it', async () => {
  const commands = await commandsOf('w1');
  expect(commands).toContain('refit logs w1');
  expect(commands?.join()).not.toContain('hold');
});

test('the page offers no command for a name that a shell would split, and none without the node', async () => {
  expect(await commandsOf('w4; reboot')).toBeUndefined();
  expect(await commandsOf('nosuch')).toBeUndefined();
  expect(await commandsOf('w1', 'autopilot//other')).toBeUndefined();
});

/** Returns the commands for w1, whose drain has these budgets in its way. */
async function commandsWith(budgets: readonly string[]): Promise<string | undefined> {
  const status = await statusWith(['w1']);
  const plans = status.plans.map((plan) => ({
    ...plan,
    stages: plan.stages.map((stage) => ({
      ...stage,
      targets: stage.targets.map((target) => ({ ...target, drain: { left: 1, budgets } })),
    })),
  }));
  const said = explainToPage({ ...status, plans }, KEY, 'w1', NOW);
  return said.find(({ areCommands }) => areCommands)?.lines.join('\n');
}

test('the page offers to describe the budget that blocks a drain, unless a shell would split its name', async () => {
  expect(await commandsWith(['shop/web'])).toContain(
    'kubectl describe poddisruptionbudget web -n shop\n',
  );
  expect(await commandsWith(['shop/web;reboot', 'shop'])).not.toContain('poddisruptionbudget');
});
