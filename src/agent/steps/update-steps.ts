/** Decides the steps of a k0supdate, with one rule for each phase. */
import type { SignalStatus } from '../../signal/names.ts';
import { mayBeCordoned, type UpdateJournal, type UpdatePhase } from '../journal.ts';
import {
  afterRestart,
  isStillThere,
  overtaking,
  proveOld,
  rewatch,
  runsNew,
  runsOld,
  soak,
  timesOf,
  watchOther,
} from '../service/proof.ts';
import type { UpdateInput } from '../step-input.ts';
import { rollBack, type Step } from './step.ts';

/**
 * Returns the step for a signal that has ended or is replaced. If the upgrade touched the service, it is completed or
 * rolled back. The agent's own cordon is removed.
 */
export function windDown(input: UpdateInput): Step {
  const { journal } = input;
  const { phase } = journal;
  if (phase === 'swapping' || phase === 'swapped') {
    // Somebody else may have restarted the service, and it may run the new binary. The agent then
    // watches that binary and does not replace it.
    return runsNew(input) ? afterRestart(input) : rollBack('the signal was cancelled');
  }
  const step = UNTOUCHED.includes(phase) ? undefined : ADVANCE[phase](input);
  if (step !== undefined && TOUCHING.includes(step.kind)) return step;
  return mayBeCordoned(journal) ? { kind: 'uncordon' } : { kind: 'clean-up' };
}

/**
 * The phases in which the target path is unchanged, or the new service is proven. In every other phase, the agent has
 * asked the service to end, or will soon ask it.
 */
const UNTOUCHED: readonly UpdatePhase[] = [
  'started',
  'downloaded',
  'ready',
  'kept',
  'proven',
  'failed',
];
const TOUCHING: readonly Step['kind'][] = ['await-service', 'restart', 'kill', 'soak', 'roll-back'];

/** Returns the next step for each phase. Applies only if the current signal is the signal in the journal. */
export const ADVANCE: Readonly<Record<UpdatePhase, (input: UpdateInput) => Step>> = {
  started: ({ signal }) =>
    signal?.status === undefined ? report('Downloading') : { kind: 'download' },
  downloaded: () => ({ kind: 'trial-run' }),
  ready(input) {
    const status = input.signal?.status?.status;
    if (status === 'Cordoning') return cordonAndDrain(input);
    const first = snapshotFirst(input);
    if (first !== undefined) return first;
    return status === undefined || status === 'Downloading'
      ? report('Cordoning')
      : keepPrevious(input);
  },
  kept: swap,
  swapping: swap,
  swapped(input) {
    if (input.signal?.status?.status !== 'Restart') return report('Restart');
    return runsNew(input) ? afterRestart(input) : restart(input);
  },
  restarting: (input) =>
    isStillThere(input) ? (watchOther(input) ?? restart(input)) : afterRestart(input),
  restarted: afterRestart,
  soaking: soak,
  proven: (input) =>
    input.signal?.status?.status === 'UnCordoning'
      ? uncordonOrComplete(input)
      : report('UnCordoning'),
  swappingBack: (input) =>
    rewatch(input) ?? rollBack(input.journal.failure?.reason ?? 'the update failed'),
  swappedBack: (input) =>
    runsOld(input) ? uncordonOrFail(input.journal, !othersRestart(input)) : restart(input),
  restartingBack: (input) => (isStillThere(input) ? restart(input) : concludeRollBack(input)),
  restartedBack: concludeRollBack,
  failed: ({ journal }) => uncordonOrFail(journal, journal.failure?.rolledBack),
};

/**
 * Returns the step that takes the snapshot of etcd, or the step that must come before it. Returns undefined if the
 * signal asks for no snapshot, or if the agent has already taken one. The snapshot comes before the cordon, so that a
 * failed snapshot does not disturb any pod. If the journal was lost, the snapshot comes later, because the facts about
 * the service are unknown during the drain. The deadline for the swap is then short, so the step uses the snapshot that
 * was reported before the cordon.
 */
function snapshotFirst(input: UpdateInput): Step | undefined {
  const { snapshot, work } = input.journal;
  if (work.policy?.etcdSnapshot === undefined || snapshot !== undefined) return undefined;
  const next = keepPrevious(input);
  if (next.kind !== 'keep-previous') return next;
  const { reportedSnapshot: reported } = input;
  return { kind: 'snapshot-etcd', ...(reported && { reported }) };
}

/**
 * Returns the step that cordons and drains the node, or the step that waits for the leader. If the leader cordons and
 * drains the node, the leader also reports the next status.
 */
function cordonAndDrain({ journal, node }: UpdateInput): Step {
  if (journal.drain === 'done') return report('ApplyingUpdate');
  return node.cordoner === 'self' ? { kind: 'cordon-and-drain' } : { kind: 'await-leader' };
}

/**
 * The agent always removes its own cordon. Every other cordon is removed by the component that cordons nodes at this
 * time: the leader or the agent.
 */
function uncordonOrComplete({ journal, node }: UpdateInput): Step {
  if (mayBeCordoned(journal)) return { kind: 'uncordon' };
  if (node.cordoner !== 'self') return { kind: 'await-leader' };
  return journal.drain === 'undone' ? report('Completed') : { kind: 'uncordon' };
}

/**
 * Returns the step that keeps the running binary as the previous binary, because a roll-back may need it. The agent
 * keeps only a binary that it has observed running. It does not keep the wanted version, because a roll-back to that
 * version would be useless.
 */
function keepPrevious(input: UpdateInput): Step {
  const {
    host: { running, binary, distrust },
    journal,
    beside,
    now,
  } = input;
  if (running === undefined)
    return distrust === undefined
      ? { kind: 'await-service' }
      : { kind: 'give-up', reason: distrust };
  const { version, forceupdate } = journal.work.signal.command;
  if (running.current && forceupdate !== true && running.version === version) {
    const reason = `${version} runs already: another agent put it in place`;
    return beside === 'observe' ? { kind: 'stand-aside', reason } : { kind: 'clean-up' };
  }
  if (running.current) return { kind: 'keep-previous' };
  // If k0s's own agent was faster, it has replaced the file, and soon restarts the service.
  const until = (journal.entered?.at ?? now) + timesOf(input).restartTimeoutMs;
  if (overtaking(input).overtakes && now < until) return { kind: 'await-service', until };
  const reason = `PID ${running.process.pid} does not run the file ${binary}, so a roll-back would be impossible: restart the service, or put its file back`;
  return { kind: 'give-up', reason };
}

/** Returns true if another agent has reported a restart that may not have happened yet. */
function othersRestart({ signal, journal }: UpdateInput): boolean {
  return signal?.status?.status === 'Restart' && journal.since === undefined;
}

function concludeRollBack(input: UpdateInput): Step {
  const next = proveOld(input);
  return next === 'runs' || next === 'too late'
    ? uncordonOrFail(input.journal, next === 'runs')
    : next;
}

function swap(input: UpdateInput): Step {
  return { kind: 'swap', ...overtaking(input) };
}

function restart({ host }: UpdateInput): Step {
  return { kind: 'restart', process: host.service };
}

function report(status: SignalStatus): Step {
  return { kind: 'report', status };
}

/**
 * Returns the step that uncordons the node. Returns the step that reports the failure if there is no cordon of the
 * agent, or if an earlier attempt to remove the cordon failed.
 */
function uncordonOrFail(journal: UpdateJournal, rolledBack: boolean | undefined): Step {
  if (journal.drain === 'started' || journal.drain === 'done') return { kind: 'uncordon' };
  const failure = journal.failure ?? { status: 'Failed', reason: 'the update failed' };
  return { kind: 'report', ...failure, ...(rolledBack !== undefined && { rolledBack }) };
}
