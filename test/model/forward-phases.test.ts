/** Tests that some configurations turn a plan back at each phase of a node: a new status of the product needs them, too. */
import { expect, test } from 'vitest';
import { REPORTED_STATUSES } from '../../src/signal/names.ts';
import type { Configuration } from './cluster.ts';
import { CONFIGURATIONS, LARGE } from './configurations.ts';
import { exploreConfiguration } from './explore-configuration.ts';
import { FORWARD_PHASES, type ForwardPhase } from './forward-phases.ts';
import { RELY_ON_LEASE } from './turned-back.ts';

/** What breaks across two plans without the Lease, as docs/internals/safety.md says. */
const BREAK_ACROSS_PLANS = ['controllers-before-workers', 'intent-before-signal'];

function turnedBackAt(phase: ForwardPhase): Configuration[] {
  return [...CONFIGURATIONS, ...LARGE].filter(({ turnsBack }) => turnsBack?.phase === phase);
}

test.each(FORWARD_PHASES)('every test run turns a plan back at %s', (phase) => {
  expect(CONFIGURATIONS.map(({ turnsBack }) => turnsBack?.phase)).toContain(phase);
});

test.each(FORWARD_PHASES)('agents crash where a plan is turned back at %s', (phase) => {
  const crashes = turnedBackAt(phase).map(({ crashesEach }) => crashesEach);
  expect(Math.max(0, ...crashes)).toBeGreaterThan(0);
});

test.each(FORWARD_PHASES)('any leaders act where a plan is turned back at %s', (phase) => {
  const withAny = turnedBackAt(phase).filter(({ leaders }) => leaders === 'any');
  expect(withAny).not.toEqual([]);
  const withController = withAny.filter(({ nodes }) =>
    nodes.some(({ role }) => role === 'controller'),
  );
  const needsLease = RELY_ON_LEASE.some(({ turnsBack }) => turnsBack?.phase === phase);
  expect(withController.length === 0).toBe(needsLease);
});

test.each(RELY_ON_LEASE)('needs the Lease: $name', async (configuration) => {
  const { violation } = await exploreConfiguration(configuration);
  expect(BREAK_ACROSS_PLANS).toContain(violation?.invariant);
  // The first version of the worker is the one without a signal.
  const blind = expect.stringMatching(/^a leader records c1 SignalSent,.* seeing node 2 at 1 of /);
  expect(violation?.steps).toContainEqual(blind);
});

test.each(REPORTED_STATUSES)('%s is a phase', (status) => {
  expect(FORWARD_PHASES).toContain(status);
});
