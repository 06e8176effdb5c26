/** What people can do about an upgrade by `refit kubeadm apply`. */
import type { Guidance } from '../../cli/contract/guidance.ts';
import type { AdvisedPlan, PlanRunner } from '../../cli/contract/plan-runner.ts';
import { formatDuration } from '../../util/duration.ts';
import { HOST_DEADLINE_MS } from './host/host-deadline.ts';

/**
 * Returns how to run the plan again. A roll-back that has ended needs its flag again: without it, the command refuses
 * the older version of the manifest.
 */
function anew({ goesBack }: Pick<AdvisedPlan, 'goesBack'>): Guidance {
  const command = goesBack === true ? 'refit kubeadm apply --back' : 'refit kubeadm apply';
  return {
    clause: `run \`${command}\` again: it continues where it stopped`,
    commands: [command],
  };
}

export const advice: PlanRunner = {
  name: '`refit kubeadm apply`',
  subject: 'kubeadm',
  limit: `${formatDuration(HOST_DEADLINE_MS)} have passed since it began`,
  listing: 'the manifest',
  startOver: anew,
  again: anew,
  corrected: undefined,
  retriesAborted: false,
  retriesGone: false,
  retry: undefined,
  goBack: () => ({
    clause:
      'write the older patch and its binaries into the manifest, then run refit kubeadm apply --back',
    commands: ['refit kubeadm apply --back'],
  }),
  // An upgrade that has begun must end before another one can begin.
  otherVersion: () => undefined,
  effectOfHolds: () => undefined,
  backUp: undefined,
  runsHere: true,
};
