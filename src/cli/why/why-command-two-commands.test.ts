/** Shows what `refit why` and the wide table print about nodes of an ended plan and of a plan with two commands. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import type { Node } from '../../kube/resources.ts';
import { mediumOf } from '../output.ts';
import { render } from '../status/render.ts';
import { whyLines, whyView } from './why-command.ts';

const NOW = T0 + 3 * MINUTE;
const PIPE = { hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) };
const atWork = (name: string, status: string): Node =>
  signalled(buildNode(name), { created: later(MINUTE), status, timestamp: later(2 * MINUTE) });

async function viewOf(plan: Plan, workers: readonly Node[]) {
  const plans = await lookAt([plan], [], workers, NOW);
  return { leader: { state: 'held', holder: 'a', since: later(0) } as const, plans };
}

test("why says that a node still works for a Plan that k0s's own leader has ended", async () => {
  const update = buildUpdate({
    targets: { workers: { ...listed('w1', 'w2'), limits: { concurrent: 2 } } },
  });
  const status = statusOf(
    'ApplyFailed',
    [],
    recorded({ w1: 'SignalApplyFailed', w2: 'SignalSent' }, later(MINUTE)),
  );
  const view = await viewOf(buildPlan({ commands: [{ k0supdate: update }] }, status), [
    atWork('w1', 'Failed'),
    atWork('w2', 'Restart'),
  ]);
  const lines = whyLines(view, 'w2', NOW, mediumOf(PIPE)).join('\n');
  expect(lines).not.toContain('not started');
  expect(lines).toContain('w2 Restart (1 min)');
});

test('why says that the second command of a node waits while the node works for the first', async () => {
  const first = buildUpdate({
    targets: { workers: { ...listed('w1'), limits: { concurrent: 1 } } },
  });
  const one = statusOf('SchedulableWait', [], recorded({ w1: 'SignalSent' }, later(MINUTE)));
  const workers = recorded({ w1: 'SignalPending' }, later(MINUTE));
  const two = { id: 1, state: 'SchedulableWait', k0supdate: { controllers: [], workers } };
  const commands = [{ k0supdate: first }, { k0supdate: { ...first, version: 'v1.37.0+k0s.0' } }];
  const status = { ...one, commands: [...one.commands, two] };
  const view = await viewOf(buildPlan({ commands }, status), [atWork('w1', 'Restart')]);
  const [, second = ''] = whyLines(view, 'w1', NOW, mediumOf(PIPE)).join('\n').split('\n\n');
  expect(second).toContain('until the workers are done');
  expect(render(view, 'wide', NOW, PIPE)).not.toMatch(/w1 +pending.*InFlight/);
});

test('the JSON form of one node has only what concerns it, in the fields of refit status', async () => {
  const update = buildUpdate({
    targets: { workers: { ...listed('w1', 'w2'), limits: { concurrent: 1 } } },
  });
  const status = statusOf(
    'SchedulableWait',
    [],
    recorded({ w1: 'SignalSent', w2: 'SignalPending' }, later(MINUTE)),
  );
  const plan = buildPlan({ commands: [{ k0supdate: update }] }, status);
  const view = await viewOf(plan, [atWork('w1', 'Restart'), buildNode('w2')]);
  expect(whyView(view, undefined)).toBe(view);
  const { plans } = whyView(view, 'w1');
  expect(
    plans.map(({ stages }) => stages.map(({ targets }) => targets.map(({ name }) => name))),
  ).toEqual([[['w1']]]);
  expect(plans[0]?.waits.map(({ target }) => target)).toContain('w1');
  expect(plans[0]?.next).toEqual([]);
  expect(() => whyView(view, 'w9')).toThrow('no plan has w9 among its targets');
});
