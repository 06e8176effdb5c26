/**
 * Tests that for each phase of a node, some configurations roll the plan back in that phase. If the product gets a new
 * status, it needs such configurations as well.
 */
import { expect, test } from 'vitest';
import { REPORTED_STATUSES } from '../../src/signal/names.ts';
import type { Configuration } from './cluster.ts';
import { CONFIGURATIONS } from './configurations.ts';
import { exploreConfiguration } from './explore-configuration.ts';
import { FORWARD_PHASES, type ForwardPhase } from './forward-phases.ts';
import { LARGE } from './large-configurations.ts';
import { RELY_ON_LEASE } from './turned-back.ts';

/** The invariants that two plans can violate if the Lease does not protect them, as docs/internals/safety.md explains. */
const BREAK_ACROSS_PLANS = ['controllers-before-workers', 'intent-before-signal'];

function turnedBackAt(phase: ForwardPhase): Configuration[] {
  return [...CONFIGURATIONS, ...LARGE].filter(({ turnsBack }) => turnsBack?.phase === phase);
}

test.each(FORWARD_PHASES)(
  'a configuration of the two tiers rolls a plan back at phase %s',
  (phase) => {
    expect(CONFIGURATIONS.map(({ turnsBack }) => turnsBack?.phase)).toContain(phase);
  },
);

test.each(FORWARD_PHASES)('agents crash when a plan is rolled back at phase %s', (phase) => {
  const crashes = turnedBackAt(phase).map(({ crashesEach }) => crashesEach);
  expect(Math.max(0, ...crashes)).toBeGreaterThan(0);
});

test.each(FORWARD_PHASES)('several leaders act when a plan is rolled back at phase %s', (phase) => {
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
  // The first version of the worker's object has no signal.
  const blind = expect.stringMatching(/^a leader records c1 SignalSent,.* seeing node 2 at 1 of /);
  expect(violation?.steps).toContainEqual(blind);
});

test.each(REPORTED_STATUSES)('%s is a phase', (status) => {
  expect(FORWARD_PHASES).toContain(status);
});
