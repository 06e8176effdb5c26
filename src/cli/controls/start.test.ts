/** Shows what `refit start` writes on a plan, prints and refuses. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { buildViewParts, recorded, statusOf } from '../../../test/support/builders/views.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { controlsOn, OPEN_WINDOW_ANNOTATION } from '../../engine/model/controls.ts';
import { mediumOf } from '../output.ts';
import { previewOpen } from '../preview/preview-command.ts';
import { inspect, shownAt } from '../status/observe.ts';
import { whyLines } from '../why/why-command.ts';
import type { PlanChange } from './control.ts';
import { openWindow } from './start.ts';

const NOW = T0 + MINUTE;
/** T0 is a Friday, 08:00 UTC, so this window is closed until Saturday. */
const SHUT: UpgradePolicy['spec'] = {
  windows: [{ days: ['Saturday'], start: '02:00', length: '3h', timeZone: 'UTC' }],
};
const WINTER: UpgradePolicy['spec'] = { blackouts: [{ from: '2026-11-01', to: '2026-11-30' }] };

async function inspected(spec: UpgradePolicy['spec'], annotations = {}, state = 'SchedulableWait') {
  const nodes = { w1: 'SignalPending', w2: 'SignalPending' };
  const workers = { ...listed('w1', 'w2'), limits: { concurrent: 1 } };
  const bare = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }] },
    statusOf(state, [], recorded(nodes, later(0))),
  );
  const plan = { ...bare, metadata: { ...bare.metadata, annotations } };
  const world = buildWorld([], [buildNode('w1'), buildNode('w2')]);
  const parts = buildViewParts({}, [buildUpgradePolicy('nightly', spec)]);
  return {
    parts,
    world,
    plan,
    inspection: await inspect({ dialect: autopilot, world }, plan, parts, NOW),
  };
}

async function give(
  spec: UpgradePolicy['spec'],
  flags: { reason?: string; blackouts?: boolean } = {},
  annotations = {},
  state?: string,
): Promise<PlanChange> {
  const { inspection } = await inspected(spec, annotations, state);
  const view = shownAt(inspection, NOW);
  return openWindow({ for: 2 * HOUR, ...flags }, 'ada')({ ...inspection, view }, NOW);
}

test('refit start records who opened the window, until when and why, and names the next node', async () => {
  const { annotations = {}, said } = await give(SHUT, { reason: ' security fix ' });
  expect(JSON.parse(annotations[OPEN_WINDOW_ANNOTATION] ?? '')).toEqual({
    until: later(2 * HOUR + MINUTE),
    since: later(MINUTE),
    by: 'ada',
    reason: 'security fix',
  });
  expect(said).toEqual([
    `The maintenance window of Plan autopilot (id1) is open until ${later(2 * HOUR + MINUTE)}.`,
    'After that time, nodes start only when the windows and blackouts allow it; nodes in progress finish.',
    'Next: w1.',
  ]);
});

test('the end of an opening is told in the time zone of the windows, too', async () => {
  const [window] = SHUT.windows ?? [];
  const inBerlin: UpgradePolicy['spec'] = {
    windows: window ? [{ ...window, timeZone: 'Europe/Berlin' }] : [],
  };
  const { said } = await give(inBerlin);
  const until = `${later(2 * HOUR + MINUTE)} (11:01 Europe/Berlin)`;
  expect(said[0]).toBe(`The maintenance window of Plan autopilot (id1) is open until ${until}.`);
  const value = JSON.stringify({ until: later(2 * HOUR + MINUTE), by: 'ada' });
  const { inspection } = await inspected(inBerlin, { [OPEN_WINDOW_ANNOTATION]: value });
  expect(shownAt(inspection, NOW).warnings).toEqual([
    `ada opened the maintenance window until ${until}: nodes start outside of the windows of the policy`,
  ]);
});

test.each<[string, UpgradePolicy['spec'], object, string]>([
  ['outside of the windows', SHUT, {}, 'nodes start outside of the windows of the policy'],
  [
    'during a blackout',
    WINTER,
    { blackouts: true },
    'nodes start although UpgradePolicy nightly has a blackout now',
  ],
  [
    'while a window is open',
    { windows: [{ start: '07:00', length: '3h', timeZone: 'UTC' }] },
    {},
    'until then, no node waits for a maintenance window',
  ],
])('people read what an opening changes: %s', async (_name, spec, more, effect) => {
  const value = JSON.stringify({ until: later(HOUR), by: 'ada', ...more });
  const { inspection } = await inspected(spec, { [OPEN_WINDOW_ANNOTATION]: value });
  expect(shownAt(inspection, NOW).warnings).toEqual([
    `ada opened the maintenance window until ${later(HOUR)}: ${effect}`,
  ]);
});

test('a blackout still holds after the window was opened, unless the opening names it', async () => {
  const held = await give(WINTER);
  const opened = await give(WINTER, { blackouts: true });
  expect(held.said.at(-1)).toContain('It still waits: UpgradePolicy nightly');
  expect(opened.said.at(-1)).toBe('Next: w1.');
});

test.each<[string, UpgradePolicy['spec'], object, string | undefined, string]>([
  ['without windows', {}, {}, undefined, 'has no maintenance window and no blackout'],
  [
    'with a policy that cannot be read',
    { windows: [{ start: '02:00' }] } as never,
    {},
    undefined,
    'starts nothing, because UpgradePolicy nightly: spec.windows[0]',
  ],
  ['that has ended', SHUT, {}, 'Completed', 'nothing is left to start'],
  [
    'that was aborted',
    SHUT,
    { 'upgrade.refit.dev/abort': 'wrong' },
    undefined,
    'was aborted (wrong): nothing is left to start',
  ],
])('a plan %s is refused', async (_, spec, annotations, state, message) => {
  await expect(give(spec, {}, annotations, state)).rejects.toThrow(message);
});

test('why and preview name the opening while it holds, and count with it', async () => {
  const value = JSON.stringify({ until: later(HOUR), by: 'ada', reason: 'security fix' });
  const { inspection, parts, plan, world } = await inspected(SHUT, {
    [OPEN_WINDOW_ANNOTATION]: value,
  });
  const sentence = `ada opened the maintenance window until ${later(HOUR)} (security fix): nodes start outside of the windows of the policy`;
  const leader = { state: 'unknown' } as const;
  const medium = mediumOf({ hasColours: false, size: () => ({ columns: 200, rows: 50 }) });
  const linesAt = (now: number) =>
    whyLines({ leader, plans: [shownAt(inspection, now)] }, undefined, now, medium).join('\n');
  expect(linesAt(NOW)).toContain(sentence);
  expect(linesAt(NOW)).not.toContain('outside of the maintenance windows');
  expect(linesAt(T0 + HOUR)).toContain('outside of the maintenance windows');
  expect(linesAt(T0 + HOUR)).not.toContain('ada');
  const loaded = [{ dialect: autopilot, plans: () => [plan], world }];
  const [preview] = await previewOpen(loaded, parts, NOW);
  expect(preview?.warnings).toEqual([sentence]);
  expect(preview?.duration?.window?.from).toBe(later(MINUTE));
});

test.each([
  ['no JSON', 'yes', undefined],
  ['no end', '{"by":"ada"}', undefined],
  ['an end that is no time', '{"until":"tomorrow"}', undefined],
  ['an end', '{"until":"2026-11-20T09:00:00Z","blackouts":"yes"}', '2026-11-20T09:00:00Z'],
])('the opening in an annotation with %s counts only if its end is a time', (_, value, until) => {
  const metadata = { name: 'p', annotations: { [OPEN_WINDOW_ANNOTATION]: value } };
  const { openWindow: opening } = controlsOn({ metadata });
  expect([opening?.until, opening?.blackouts]).toEqual([until, undefined]);
});
