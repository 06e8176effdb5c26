/**
 * Verifier: after its work has succeeded, a node is done only once its kubelet reports the version that the work
 * installed. The work can succeed although the service on the node was not restarted.
 */
import { SECOND } from '../model/rollout.ts';
import { type Gate, PASS, wait } from './types.ts';

export const versionReached: Gate = {
  name: 'version-reached',
  evaluate({ target, facts: { observation, versionGap, virtual, watchedMs = 0 }, policy }) {
    if (versionGap === undefined || observation.kind !== 'succeeded') return PASS;
    if (policy.trustsSuccess === true) return PASS;
    // A virtual Node has no kubelet on a host.
    if (virtual !== undefined && policy.countsVirtual !== true) return PASS;
    const { work, reported = 'no version', wanted } = versionGap;
    const message = `${target.name}: ${work}: its kubelet reports ${reported} instead of ${wanted}`;
    const leftMs = policy.stepDeadlines.ready - watchedMs;
    const recheck = Number.isFinite(leftMs) ? { recheckMs: Math.max(SECOND, leftMs) } : {};
    return wait('VersionNotReached', message, `the kubelet reports ${wanted}`, recheck);
  },
};
