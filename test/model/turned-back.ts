/** The clusters in which a person turns the plan back while a node is in one phase: each phase in every test run. */
import type { Configuration } from './cluster.ts';
import { configure, V2, V3 } from './configure.ts';
import type { ForwardPhase } from './forward-phases.ts';

const CRASH = { crashesEach: 1, power: 'stays' } as const;
const OLD_LEADER = { leaders: 'any' } as const;
/** The process that never comes up could have k0s's own agent in it: so the agent first tells it that it restores the old file. */
const MAYBE_K0S = { theirs: 'on', power: 'stays', ownAgent: 'on after the restart' } as const;

/** Its second command is the one that is replaced: w1 has a way back without a controller, since the first command has upgraded it. */
const TWO_COMMANDS = { versions: [V2, V3] };

/**
 * The way back replaces the plan while w1 works for it. Where there is a controller, it has been upgraded, so that the way back takes it
 * back. Without one, the way back takes w1 back, once its Node tells a new version.
 */
function replacedAt(
  phase: ForwardPhase,
  nodes: string,
  more: Partial<Configuration> = {},
): Configuration {
  const cluster = nodes.startsWith('c1') ? '1 upgraded controller, 1 worker' : '1 worker';
  const { versions = [V2], crashesEach = 0, leaders = 'one' } = more;
  const words = [
    cluster,
    ...(versions.length > 1 ? [`${versions.length} commands`] : []),
    `its roll-back replaces the plan at ${phase} of the worker`,
    ...(crashesEach > 0 ? ['1 crash'] : []),
    leaders === 'any' ? 'any leaders' : '1 leader',
  ];
  return configure(words.join(', '), nodes, {
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
  replacedAt('pending', 'c1 w1', CRASH),
  replacedAt('pending', 'c1 w1', OLD_LEADER),
  replacedAt('intended', 'c1 w1', CRASH),
  replacedAt('intended', 'c1 w1', OLD_LEADER),
  replacedAt('asked', 'c1 w1', CRASH),
  replacedAt('signalled', 'c1 w1'),
  replacedAt('Downloading', 'c1 w1'),
  replacedAt('Cordoning', 'c1 w1'),
  replacedAt('ApplyingUpdate', 'c1 w1', CRASH),
  replacedAt('Restart', 'w1', CRASH),
  replacedAt('Restart', 'w1', OLD_LEADER),
  replacedAt('UnCordoning', 'w1', CRASH),
  replacedAt('UnCordoning', 'w1', OLD_LEADER),
  replacedAt('Completed', 'w1', CRASH),
  replacedAt('Completed', 'w1', OLD_LEADER),
  replacedAt('FailedDownload', 'c1 w1:missing', OLD_LEADER),
  replacedAt('Failed', 'c1 w1:garbage', OLD_LEADER),
  replacedAt('restoring', 'c1 w1:dead'),
  replacedAt('RollingBack', 'c1 w1:dead', MAYBE_K0S),
];

/** Explored by `npm run safety` alone. */
export const TURNED_BACK_LARGE: readonly Configuration[] = [
  replacedAt('asked', 'c1 w1', OLD_LEADER),
  replacedAt('signalled', 'c1 w1', OLD_LEADER),
  replacedAt('Downloading', 'c1 w1', OLD_LEADER),
  replacedAt('Completed', 'c1 w1', OLD_LEADER),
  replacedAt('FailedDownload', 'c1 w1:missing', CRASH),
  replacedAt('Failed', 'c1 w1:garbage', CRASH),
  replacedAt('signalled', 'c1 w1', CRASH),
  replacedAt('Downloading', 'c1 w1', CRASH),
  replacedAt('Cordoning', 'c1 w1', CRASH),
  replacedAt('Restart', 'c1 w1', CRASH),
  replacedAt('UnCordoning', 'c1 w1', CRASH),
  replacedAt('Completed', 'c1 w1', CRASH),
  replacedAt('restoring', 'c1 w1:dead', CRASH),
  replacedAt('RollingBack', 'c1 w1:dead', { ...MAYBE_K0S, ...CRASH }),
  replacedAt('Cordoning', 'w1', { ...TWO_COMMANDS, ...OLD_LEADER }),
  replacedAt('ApplyingUpdate', 'w1', { ...TWO_COMMANDS, ...OLD_LEADER }),
  replacedAt('restoring', 'w1:dead', { ...TWO_COMMANDS, ...OLD_LEADER }),
  replacedAt('RollingBack', 'w1:dead', { ...TWO_COMMANDS, ...MAYBE_K0S, ...OLD_LEADER }),
];

/**
 * These break limits across the two plans, so at these phases any leaders are explored without a controller only. w1 works, and does not
 * tell a new version yet: the way back lists the controller alone. A leader that has no view of w1 since the first plan signalled it starts
 * the controller. Only the Lease excludes that, see "A plan that replaces another" in docs/internals/safety.md.
 */
export const RELY_ON_LEASE: readonly Configuration[] = [
  replacedAt('Cordoning', 'c1 w1', OLD_LEADER),
  replacedAt('ApplyingUpdate', 'c1 w1', OLD_LEADER),
  replacedAt('Restart', 'c1 w1', OLD_LEADER),
  replacedAt('UnCordoning', 'c1 w1', OLD_LEADER),
  replacedAt('restoring', 'c1 w1:dead', OLD_LEADER),
  replacedAt('RollingBack', 'c1 w1:dead', { ...MAYBE_K0S, ...OLD_LEADER }),
];
