/** Gate: when a plan goes back to an older version, no controller goes back before every worker has gone back. */
import type { Node } from '../../kube/resources.ts';
import { installedVersion } from '../../signal/annotations.ts';
import { isOlder } from '../../versions/release-parts.ts';
import { because } from '../model/reasons.ts';
import { inState, type Stage, workOf } from '../model/rollout.ts';
import { nodeRetriedBy } from '../model/tried-again.ts';
import { workerStaysNewer } from '../reasons/refused-version.ts';
import { type Gate, PASS, waitFor } from './types.ts';

/**
 * This gate waits for the workers of the plan, because they can still go back. It stops the plan if a worker that the
 * plan does not list has a newer version, because then no plan takes that worker back. Such a worker has finished the
 * work of an earlier plan after this plan was created.
 */
export const workersFirst: Gate = {
  name: 'workers-first',
  ofRollout: true,
  mayRefusePlan: ({ rollout }) =>
    rollout.stages.some((stage) => workOf(rollout, stage) === 'roll-back'),
  evaluate({ rollout, stage, earlier, cluster: { fleet = [] }, policy: { allow }, abilities }) {
    if (stage.role !== 'controller' || workOf(rollout, stage) !== 'roll-back') return PASS;
    const workers = earlier.filter(({ role }) => role === 'worker');
    const left = workers.flatMap((each) =>
      each.targets.filter((target) => !inState(each, 'done').includes(target)),
    );
    const [first, ...others] = left.map(({ name }) => name);
    if (first !== undefined) {
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      const message = `${first}${more} did not go back, and controllers go back after all workers`;
      return waitFor(
        because('KubeletAhead', message, { versions: [stage.version] }),
        `those workers have gone back; for a failed one ${nodeRetriedBy(abilities)}; or the plan is aborted and run again`,
      );
    }
    if (allow.has('KubeletAhead')) return PASS;
    const newer = newerWorker(stage, workers, fleet);
    if (newer === undefined) return PASS;
    const { name, installed } = newer;
    const reason = workerStaysNewer(name, { installed, version: stage.version });
    return { kind: 'stop', reason, ofPlan: true };
  },
};

/**
 * Returns a worker whose agent reported a newer version than the version of the stage. The version that the agent
 * reported counts, because the kubelet shows a new version in the Node only later. Workers that the plan lists are
 * ignored, because the cache may still show their state from before they went back.
 */
function newerWorker(
  { version }: Stage,
  workers: readonly Stage[],
  fleet: readonly Node[],
): { readonly name: string; readonly installed: string } | undefined {
  const listed = new Set(workers.flatMap(({ targets }) => targets.map(({ name }) => name)));
  for (const { metadata } of fleet) {
    const installed = installedVersion(metadata.annotations);
    if (installed === undefined || listed.has(metadata.name)) continue;
    if (isOlder(version, installed)) return { name: metadata.name, installed };
  }
  return undefined;
}
