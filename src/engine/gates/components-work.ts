/**
 * Gate and verifier: the controller manager and the scheduler of the cluster must work. An API server can be ready
 * although a new version does not start them.
 */
import type { ComponentState } from '../../health/component-monitor.ts';
import { formatDuration } from '../../util/duration.ts';
import { untilAsked } from '../model/asked.ts';
import { type Gate, type GateInput, PASS, type Verdict, wait } from './types.ts';

const ENDS =
  'the component renews its Lease; if no such component runs in this cluster, somebody deletes the Lease';
const ENDS_READ = 'an API server answers with the Leases';
/** Milliseconds until the states are compared again, because a renewal alone wakes no plan. */
const RECHECK_MS = 2000;

/** Before a target starts: no component has stopped. */
export const componentsWork: Gate = {
  name: 'components-work',
  ofRollout: true,
  evaluate: ({ cluster: { components } }) =>
    verdictOn(components, ({ state }) => state === 'working'),
};

/** After the upgrade of a controller: each component has renewed its Lease since. */
export const componentsWorkAfter: Gate = {
  name: 'components-work',
  evaluate({ stage, cluster: { components }, facts, now }) {
    if (stage.role !== 'controller') return PASS;
    const since = now - (facts.watchedMs ?? 0);
    return verdictOn(
      components,
      ({ state, renewedAt = Number.NEGATIVE_INFINITY }) =>
        state === 'working' && renewedAt >= since,
    );
  },
};

function verdictOn(
  components: GateInput['cluster']['components'],
  isGood: (component: ComponentState) => boolean,
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
      { isPassing: true, recheckMs: RECHECK_MS },
    );
  const bad = answer.states.find((component) => !isGood(component));
  if (bad === undefined) return PASS;
  const { name, state, silentMs } = bad;
  if (state === 'stopped')
    return wait(
      'ComponentNotWorking',
      `${name} does not work: nobody has renewed its Lease kube-system/${name} for ${formatDuration(silentMs)}`,
      ENDS,
      { recheckMs: RECHECK_MS },
    );
  const message = `it is not known yet whether ${name} works: Refit waits until its Lease kube-system/${name} is renewed`;
  return wait('ComponentNotWorking', message, ENDS, { recheckMs: RECHECK_MS });
}
