/** Shows that the advice about a Plan that an UpdateConfig created does not compete with the UpdateConfig. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { ORIGIN_ANNOTATION, type Plan } from '../../api/autopilot/plan.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { nodes } from '../../kube/resources.ts';
import { controlNodes } from '../../signal/names.ts';
import { toDo } from '../advice/advice.ts';
import { observe } from './observe.ts';

/** Returns the view of a Plan whose only worker has left the cluster after its failure. */
async function viewOfGone(annotations: Record<string, string>) {
  const update = buildUpdate({ targets: { workers: listed('w1') } });
  const made = buildPlan({ commands: [{ k0supdate: update }] });
  const workers = [{ name: 'w1', state: 'SignalMissingNode', lastUpdatedTimestamp: later(0) }];
  const command = { id: 0, state: 'ApplyFailed', k0supdate: { workers } };
  const plan: Plan = {
    ...made,
    metadata: { ...made.metadata, annotations },
    status: { state: 'ApplyFailed', commands: [command] },
  };
  const world = buildWorldOf([controlNodes, []], [nodes, [buildNode('w2')]]);
  const scene = { dialect: autopilot, plans: () => [plan], world };
  const [view] = await observe(scene, buildViewParts(), T0);
  if (!view) throw new Error('the plan has no view');
  return view;
}

test('a Plan that an UpdateConfig created names it, and the advice leaves the next Plan to it', async () => {
  const origin = JSON.stringify({ config: 'stable', version: 'v1.36.4+k0s.0' });
  const view = await viewOfGone({ [ORIGIN_ANNOTATION]: origin });
  expect(view.updateConfig).toBe('stable');
  expect(toDo(view)[0]).toContain('only if UpdateConfig stable does not exist any more');
});

test('a Plan whose annotation names no possible UpdateConfig has none, and the user applies it again', async () => {
  const hostile = JSON.stringify({ config: 'run `rm -rf /`', version: 'v1.36.4+k0s.0' });
  for (const annotations of [
    {},
    { [ORIGIN_ANNOTATION]: 'broken' },
    { [ORIGIN_ANNOTATION]: hostile },
  ]) {
    const view = await viewOfGone(annotations);
    expect(view).not.toHaveProperty('updateConfig');
    expect(toDo(view)[0]).toContain('delete the Plan and apply');
  }
});
