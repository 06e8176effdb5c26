/** The clusters in which a person turns the plan back while a node is in one phase: each phase in every test run. */
import type { Configuration } from './cluster.ts';
import { configure } from './configure.ts';
import type { ForwardPhase } from './forward-phases.ts';

const CRASH = { crashesEach: 1, power: 'stays' } as const;
const OLD_LEADER = { leaders: 'any' } as const;
/** The process that never comes up could have k0s's own agent in it: so the agent first tells it that it restores the old file. */
const MAYBE_K0S = { theirs: 'on', power: 'stays', ownAgent: 'on after the restart' } as const;

/**
 * The way back replaces the plan while w1 works for it. Where there is a controller, it has been upgraded, so that the way back takes it
 * back. Without one, the way back takes w1 back, once its Node tells the new version.
 */
function replacedAt(
  phase: ForwardPhase,
  nodes: string,
  more: Partial<Configuration> = {},
): Configuration {
  const cluster = nodes.startsWith('c1') ? '1 upgraded controller, 1 worker' : '1 worker';
  const words = [
    ...((more.crashesEach ?? 0) > 0 ? [', 1 crash'] : []),
    more.leaders === 'any' ? ', any leaders' : ', 1 leader',
  ].join('');
  return configure(`${cluster}, replaced by the way back at ${phase}${words}`, nodes, {
    startsAtWorkers: nodes.startsWith('c1'),
    wayBack: 'at any moment',
    turnsBack: { node: 'w1', phase, by: 'replacement' },
    leaders: 'one',
    faults: 0,
    ...more,
  });
}

/** Explored in every test run. */
export const TURNED_BACK: readonly Configuration[] = [
  replacedAt('pending', 'c1 w1', OLD_LEADER),
  replacedAt('intended', 'c1 w1', OLD_LEADER),
  replacedAt('asked', 'c1 w1', CRASH),
  replacedAt('signalled', 'c1 w1'),
  replacedAt('Downloading', 'c1 w1'),
  replacedAt('Cordoning', 'c1 w1'),
  replacedAt('ApplyingUpdate', 'c1 w1', CRASH),
  replacedAt('Restart', 'w1', OLD_LEADER),
  replacedAt('UnCordoning', 'w1', OLD_LEADER),
  replacedAt('Completed', 'w1', OLD_LEADER),
  replacedAt('FailedDownload', 'c1 w1:missing'),
  replacedAt('Failed', 'c1 w1:garbage'),
  replacedAt('restoring', 'c1 w1:dead'),
  replacedAt('RollingBack', 'c1 w1:dead', MAYBE_K0S),
];

/** Explored by `npm run safety` alone. */
export const TURNED_BACK_LARGE: readonly Configuration[] = [
  replacedAt('Restart', 'c1 w1'),
  replacedAt('UnCordoning', 'c1 w1'),
  replacedAt('Restart', 'w1', CRASH),
  replacedAt('UnCordoning', 'w1', CRASH),
  replacedAt('Completed', 'w1', CRASH),
];
