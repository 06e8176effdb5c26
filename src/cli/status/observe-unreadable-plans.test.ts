/** Proves that a plan that Refit cannot read does not affect other plans: they are shown and controlled as usual. */
import { expect, test } from 'vitest';
import { buildPlan } from '../../../test/support/builders/plans.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { previewOpen } from '../preview/preview-command.ts';
import type { Loaded } from './load.ts';
import { inspectAll, observe } from './observe.ts';
import type { PlanFilter } from './plan-names.ts';

const NOW = T0 + MINUTE;

/** A dialect with a bug that only the plan `bad` triggers. */
const faulty: typeof autopilot = {
  ...autopilot,
  resolve: (plan, world, now) => {
    if (plan.metadata.name === 'bad') throw new TypeError('path.trim is not a function');
    return autopilot.resolve(plan, world, now);
  },
};

function named(name: string): Plan {
  const plan = buildPlan();
  return { ...plan, metadata: { ...plan.metadata, name } };
}

const LOADED: Loaded = {
  dialect: faulty,
  plans: () => [named('bad'), named('good')],
  world: buildWorld([], []),
};
const partsFor = (filter: PlanFilter) => ({ ...buildViewParts(), filter });
const FAULT = 'Refit cannot read the plan autopilot/bad: path.trim is not a function';

test('status shows the fault as the reason of this plan, and the other plans', async () => {
  const plans = await observe(LOADED, partsFor({}), NOW);
  expect(plans.map(({ name, reason }) => [name, reason === FAULT])).toEqual([
    ['bad', true],
    ['good', false],
  ]);
});

test('preview shows the fault as the reason of this plan, and the other plans', async () => {
  const previews = await previewOpen([LOADED], partsFor({}), NOW);
  expect(previews.map(({ name, reason }) => [name, reason === FAULT])).toEqual([
    ['bad', true],
    ['good', false],
  ]);
});

test.each<[PlanFilter, string[], number]>([
  [{}, ['good'], 1],
  [{ plan: 'good' }, ['good'], 0],
  [{ plan: 'autopilot/good' }, ['good'], 0],
  [{ plan: 'bad' }, [], 1],
])('%j: only the plans that are asked for are read', async (filter, names, faults) => {
  const { inspections, unreadable } = await inspectAll([LOADED], partsFor(filter), NOW);
  expect(inspections.map(({ plan }) => plan.metadata.name)).toEqual(names);
  expect(unreadable.map(({ message }) => message)).toEqual(Array<string>(faults).fill(FAULT));
});
