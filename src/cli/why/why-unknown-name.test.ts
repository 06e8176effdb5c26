/** Shows what `refit why` says without a plan, and about a name that is no node of a plan, or that is a plan. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { DIALECTS } from '../../../test/support/builders/dialects.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { buildViewParts, lookAt } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { jobs, nodes } from '../../kube/resources.ts';
import { mediumOf } from '../output.ts';
import type { ShownPlan } from '../status/json-form.ts';
import type { LeaderView } from '../status/load.ts';
import { observe } from '../status/observe.ts';
import { whyLines, whyView } from './why-command.ts';

const NOW = T0 + MINUTE;
const LEADER: LeaderView = { state: 'held', holder: 'a', since: later(0) };
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });

function why(plans: readonly ShownPlan[], node?: string): string[] {
  return whyLines({ leader: LEADER, plans }, node, NOW, PIPE);
}

async function rancherPlans(): Promise<ShownPlan[]> {
  const dialect = DIALECTS.find(({ name }) => name === 'cattle');
  if (!dialect) throw new Error('there is no dialect cattle');
  const world = buildWorldOf([nodes, [buildNode('s1')]], [jobs, []]);
  const plans = () => [buildCattlePlan('server')];
  return await observe({ dialect, plans, world }, buildViewParts(), NOW);
}

test('why says that there is no plan, and refuses a node that no plan has', async () => {
  expect(why([])).toEqual(['There is no plan.']);
  const plans = await lookAt([buildPlan()], [], [buildNode('w1')], NOW);
  for (const given of [plans, []])
    expect(() => why(given, 'w9')).toThrow(
      expect.objectContaining({
        code: 'REFIT_CONTROL',
        message: 'no plan has w9 among its targets',
      }),
    );
});

test.each(['autopilot', 'Plan/autopilot', 'plan/autopilot'])(
  'why explains the plan %s as without a name',
  async (name) => {
    const plans = await lookAt([buildPlan()], [], [buildNode('w1')], NOW);
    expect(why(plans, name)).toEqual(why(plans));
    expect(whyView({ leader: LEADER, plans }, name)).toEqual({ leader: LEADER, plans });
  },
);

test.each(['server', 'system-upgrade/server', 'cattle/system-upgrade/server'])(
  'why knows a Plan of Rancher by the name %s',
  async (name) => {
    expect(() => whyView({ leader: LEADER, plans: [] }, name)).toThrow('no plan has');
    const plans = await rancherPlans();
    expect(why(plans, name)).toEqual(why(plans));
  },
);
