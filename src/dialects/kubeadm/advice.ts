/** What people can do about an upgrade by `refit kubeadm apply`. */
import type { Guidance } from '../../cli/contract/guidance.ts';
import type { PlanRunner } from '../../cli/contract/plan-runner.ts';
import { formatDuration } from '../../util/duration.ts';
import { HOST_DEADLINE_MS } from './host/host-deadline.ts';

const ANEW: Guidance = {
  clause: 'run `refit kubeadm apply` again: it continues where it stopped',
  commands: ['refit kubeadm apply'],
};

export const advice: PlanRunner = {
  name: '`refit kubeadm apply`',
  subject: 'kubeadm',
  limit: `${formatDuration(HOST_DEADLINE_MS)} have passed since it began`,
  listing: 'the manifest',
  startOver: () => ANEW,
  again: () => ANEW,
  corrected: undefined,
  retry: undefined,
  goBack: () => ({
    clause:
      'write the older patch and its binaries into the manifest, then run refit kubeadm apply --back',
    commands: ['refit kubeadm apply --back'],
  }),
  backUp: undefined,
  runsHere: true,
};
