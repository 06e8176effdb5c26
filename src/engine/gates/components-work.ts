/**
 * Gate and verifier: the controller manager and the scheduler of the cluster must work. An API server can be ready
 * although a new version does not start them.
 */
import type { ComponentState } from '../../health/component-monitor.ts';
import { formatDuration } from '../../util/duration.ts';
import { untilAsked } from '../model/asked.ts';
import { workOf } from '../model/rollout.ts';
import { type Gate, type GateInput, PASS, type Verdict, wait } from './types.ts';

const ENDS =
  'the component renews its Lease; or somebody deletes the Lease, and Refit goes on without the component';
const ENDS_READ = 'an API server answers with the Leases';
/** Milliseconds until the states are compared again, because a renewal alone wakes no plan. */
const RECHECK_MS = 2000;
/** The same after the upgrade of a controller, when the next controller waits for it. */
const RECHECK_AFTER_MS = 500;
/**
 * The new process of a controller has often worked for some seconds before its agent reports it, and a renewal in this
 * time counts. The old process may have renewed a Lease just before it ended, and the monitor sees a renewal up to this
 * many milliseconds late.
 */
const SEEN_LATE_MS = 2000;
/** A longer time counts as this, so that a wrong report lets at most the renewals of the last minutes count. */
const MOST_UP_MS = 5 * 60_000;

/**
 * Before a target starts: no component has stopped. A controller that goes back is not asked, because its earlier version
 * may be what brings the component back. A worker is asked also on the way back, because nothing replaces the pods that
 * are evicted from it while the component does not work.
 */
export const componentsWork: Gate = {
  name: 'components-work',
  ofRollout: true,
  evaluate: ({ rollout, stage, cluster: { components } }) =>
    stage.role === 'controller' && workOf(rollout, stage) === 'roll-back'
      ? PASS
      : verdictOn(components, ({ state }) => state === 'working'),
};

/** After the upgrade of a controller: each component has renewed its Lease since the new version works. */
export const componentsWorkAfter: Gate = {
  name: 'components-work',
  evaluate({ stage, cluster: { components }, facts: { observation, watchedMs = 0 }, now }) {
    if (stage.role !== 'controller') return PASS;
    // A controller is asked about when it reports that it waits for its uncordon, and once more when it has succeeded.
    const { upMs = 0 } = (observation.kind !== 'none' && observation.report) || {};
    const since = now - watchedMs - Math.min(Math.max(0, upMs - SEEN_LATE_MS), MOST_UP_MS);
    return verdictOn(
      components,
      ({ state, renewedAt = Number.NEGATIVE_INFINITY }) =>
        state === 'working' && renewedAt >= since,
      RECHECK_AFTER_MS,
    );
  },
};

function verdictOn(
  components: GateInput['cluster']['components'],
  isGood: (component: ComponentState) => boolean,
  recheckMs = RECHECK_MS,
): Verdict {
  if (components.kind === 'never') return PASS;
  if (components.kind === 'unasked')
    return wait('ControlPlaneUnknown', 'the Leases of the components are being read', ENDS, {
      isPassing: true,
    });
  // Only probes get no answer, and the Leases are read in the background.
  if (components.kind === 'unanswered') return { kind: 'wait', ...untilAsked(components) };
  const { answer } = components;
  if ('told' in answer) return wait('ComponentNotWorking', answer.told, ENDS);
  const { problem, isForbidden = false } = answer;
  // An API server often answers nothing for a moment after its own upgrade. That proves nothing about the components.
  if (problem !== undefined && !isForbidden)
    return wait(
      'ControlPlaneUnknown',
      `the Leases of the components could not be read: ${problem}`,
      ENDS_READ,
      { isPassing: true, recheckMs },
    );
  const bad = answer.states.find((component) => !isGood(component));
  if (bad === undefined) return PASS;
  const { name, state, silentMs } = bad;
  if (state === 'stopped')
    return wait(
      'ComponentNotWorking',
      `${name} does not work: nobody has renewed its Lease kube-system/${name} for ${formatDuration(silentMs)}`,
      ENDS,
      { recheckMs },
    );
  const message = `it is not known yet whether ${name} works: Refit waits until its Lease kube-system/${name} is renewed`;
  return wait('ComponentNotWorking', message, ENDS, { recheckMs });
}
