/** Owns the steps of a k0supdate that was taken up: one rule for each phase. */
import type { UpdateJournal, UpdatePhase } from '../journal.ts';
import { isHolding } from '../journal.ts';
import { afterRestart, isStillThere, provePrevious, runsNew, runsOld, soak } from '../service/proof.ts';
import type { Working } from '../step-input.ts';
import type { Step } from './step.ts';

/** For a signal that still stands. */
export function nextUpdateStep(input: Working): Step {
  return ADVANCE[input.journal.phase](input);
}

/**
 * Work whose signal is over, gone or another one. What already touched the service is brought to a proven end first, so
 * that the previous path never names a binary that nobody saw running; and a cordon of ours does not stay behind.
 */
export function windDown(input: Working): Step {
  const { journal } = input;
  const { phase } = journal;
  if (phase === 'swapping' || phase === 'swapped') return rollBack('the signal was taken back');
  const step = HAS_TOUCHED.includes(phase) ? ADVANCE[phase](input) : undefined;
  if (step !== undefined && TOUCHES.includes(step.kind)) return step;
  return isHolding(journal) ? { kind: 'uncordon' } : { kind: 'clean-up' };
}

/** Phases in which the service was told to end, or the path of its binary was changed back. */
const HAS_TOUCHED: readonly UpdatePhase[] = [
  'restarting',
  'restarted',
  'soaking',
  'swappingBack',
  'swappedBack',
  'restartingBack',
  'restartedBack',
];
const TOUCHES: readonly Step['kind'][] = ['await-service', 'restart', 'kill', 'soak', 'roll-back'];

const ADVANCE: Readonly<Record<UpdatePhase, (input: Working) => Step>> = {
  started: ({ signal }) => (signal?.status === undefined ? report('Downloading') : { kind: 'download' }),
  downloaded: () => ({ kind: 'try-out' }),
  ready(input) {
    const status = input.signal?.status?.status;
    if (status === undefined || status === 'Downloading') return report('Cordoning');
    return status === 'Cordoning' ? cordonAndDrain(input) : keepPrevious(input);
  },
  kept: () => ({ kind: 'swap' }),
  swapping: () => ({ kind: 'swap' }),
  swapped(input) {
    if (input.signal?.status?.status !== 'Restart') return report('Restart');
    return runsNew(input) ? afterRestart(input) : restart(input);
  },
  restarting: (input) => (isStillThere(input) ? restart(input) : afterRestart(input)),
  restarted: afterRestart,
  soaking: soak,
  proven: (input) => (input.signal?.status?.status === 'UnCordoning' ? takeBack(input) : report('UnCordoning')),
  swappingBack: ({ journal }) => rollBack(journal.failure?.reason ?? 'the update failed'),
  swappedBack: (input) => (runsOld(input) ? fail(input.journal, true) : restart(input)),
  restartingBack: (input) => (isStillThere(input) ? restart(input) : concludeRollBack(input)),
  restartedBack: concludeRollBack,
  failed: ({ journal }) => fail(journal, false),
};

/** What the leader does, it also reports. */
function cordonAndDrain({ journal, node }: Working): Step {
  if (journal.way === 'made') return report('ApplyingUpdate');
  return node.cordoner === 'self' ? { kind: 'cordon-and-drain' } : { kind: 'await-leader' };
}

/** What the agent cordoned it uncordons, whoever would now; else whoever is to. */
function takeBack({ journal, node }: Working): Step {
  if (isHolding(journal)) return { kind: 'uncordon' };
  if (node.cordoner !== 'self') return { kind: 'await-leader' };
  return journal.way === 'given-back' ? report('Completed') : { kind: 'uncordon' };
}

/** Only a binary that runs is worth going back to: anything else must not take the place of one that once did. */
function keepPrevious({ host: { running, binary } }: Working): Step {
  if (running === undefined) return { kind: 'await-service' };
  if (running.current) return { kind: 'keep-previous' };
  const reason = `${binary} is not the file that PID ${running.process.pid} runs, so there would be no way back: restart the service, or put its file back`;
  return { kind: 'give-up', reason };
}

function concludeRollBack(input: Working): Step {
  const next = provePrevious(input);
  return next === 'runs' || next === 'too late' ? fail(input.journal, next === 'runs') : next;
}

function restart({ host }: Working): Step {
  return host.service === undefined ? { kind: 'restart' } : { kind: 'restart', process: host.service };
}

function rollBack(reason: string): Step {
  return { kind: 'roll-back', reason };
}

function report(
  status: 'Downloading' | 'Cordoning' | 'ApplyingUpdate' | 'Restart' | 'UnCordoning' | 'Completed',
): Step {
  return { kind: 'report', status };
}

/** A failure is told once our cordon is gone, or could not be removed at once. */
function fail(journal: UpdateJournal, rolledBack: boolean): Step {
  if (journal.way === 'begun' || journal.way === 'made') return { kind: 'uncordon' };
  const failure = journal.failure ?? { status: 'Failed', reason: 'the update failed' };
  return rolledBack ? { kind: 'report', ...failure, rolledBack } : { kind: 'report', ...failure };
}
