/** Leaves a signal to k0s's own agent, which lives in the service and would race for the same binary. */
import { isBundle, type UpdatePhase } from '../journal.ts';
import type { StepInput } from '../step-input.ts';
import type { Step } from './step.ts';

/** Statuses that only a node's agent writes, and that this one has not written yet in that phase. */
const NOT_YET_OURS: Readonly<Partial<Record<UpdatePhase, readonly string[]>>> = {
  started: ['Cordoning', 'Restart', 'UnCordoning'],
  downloaded: ['Cordoning', 'Restart', 'UnCordoning'],
  ready: ['Restart', 'UnCordoning'],
  kept: ['Restart', 'UnCordoning'],
};

/** Undefined when nothing speaks for another agent. */
export function besideK0s(input: StepInput): Step | undefined {
  const { beside = 'replace', journal } = input;
  const reason = beside === 'replace' ? undefined : whyAside(input);
  if (reason === undefined) return undefined;
  // A signal that is failed under k0s's own agent would keep that one's cordon.
  if (beside === 'observe' || journal.phase !== 'idle') return { kind: 'stand-aside', reason };
  return { kind: 'report', status: 'FailedDownload', reason, refused: true };
}

function whyAside({ journal, signal, host }: StepInput): string | undefined {
  if (journal.phase === 'idle') {
    if (host.ownAgent !== true) return undefined;
    return "k0s's own agent carries out the signals of this host: start k0s with --disable-components=autopilot to let Refit's do it";
  }
  const status = signal?.status?.status;
  if (isBundle(journal) || status === undefined || NOT_YET_OURS[journal.phase]?.includes(status) !== true)
    return undefined;
  // Work begun at Cordoning, after a lost journal, is not overtaken: it never was at Downloading.
  if (status === 'Cordoning' && journal.spent['Downloading'] === undefined) return undefined;
  return `another agent reported ${status}: k0s's own one works on this signal`;
}
