/**
 * The clusters in which a person rolls the plan back while a node is in one of the phases. The two tiers together
 * explore each phase.
 */
import type { Configuration } from './cluster.ts';
import { configure, V2, V3 } from './configure.ts';
import type { ForwardPhase } from './forward-phases.ts';

const CRASH = { crashesEach: 1, power: 'stays' } as const;
const OLD_LEADER = { leaders: 'any' } as const;
/**
 * k0s's own agent could run in the process that never starts successfully. So our agent first reports to k0s's agent
 * that the old file is restored.
 */
const MAYBE_K0S = { theirs: 'on', power: 'stays', ownAgent: 'on after the restart' } as const;

/**
 * The roll-back plan replaces the plan during the second command. So w1 can be rolled back even without a controller,
 * because the first command has already upgraded w1.
 */
const TWO_COMMANDS = { versions: [V2, V3] };

/** The moments of the phases that are not statuses. All other phases are statuses that the worker reports. */
const MOMENTS: Partial<Readonly<Record<ForwardPhase, string>>> = {
  pending: 'before the worker is started',
  intended: 'before the signal to the worker is sent',
  asked: 'before the signal to the worker arrives',
  signalled: 'before the agent of the worker answers',
  restoring: 'while the agent restores the old file',
};

function momentOf(phase: ForwardPhase): string {
  return MOMENTS[phase] ?? `when the worker reports ${phase}`;
}

/**
 * Returns a configuration in which the roll-back plan replaces the plan while the plan upgrades w1. If the cluster has
 * a controller, the controller is already upgraded, and the roll-back plan rolls it back. Without a controller, the
 * roll-back plan rolls w1 back after its Node has reported a new version.
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
    `the plan is rolled back ${momentOf(phase)}`,
    ...(crashesEach > 0 ? ['1 crash'] : []),
    leaders === 'any' ? 'several leaders' : '1 leader',
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

/** Explored by the first or the second tier; `isOfFirstTier` decides. */
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
 * These configurations violate limits that concern both plans together. So in these phases the model explores the value
 * `any` of `leaders` only without a controller. w1 works and does not report a new version yet, so the roll-back plan
 * lists only the controller. A leader whose view of w1 is older than the signal of the first plan starts the
 * controller. Only the Lease prevents that, see "A plan that replaces another" in docs/internals/safety.md.
 */
export const RELY_ON_LEASE: readonly Configuration[] = [
  replacedAt('Cordoning', 'c1 w1', OLD_LEADER),
  replacedAt('ApplyingUpdate', 'c1 w1', OLD_LEADER),
  replacedAt('Restart', 'c1 w1', OLD_LEADER),
  replacedAt('UnCordoning', 'c1 w1', OLD_LEADER),
  replacedAt('restoring', 'c1 w1:dead', OLD_LEADER),
  replacedAt('RollingBack', 'c1 w1:dead', { ...MAYBE_K0S, ...OLD_LEADER }),
];
