/** The clusters to explore: the small ones in both tiers of tests, the large ones on demand. */
import type { Configuration } from './cluster.ts';
import { NOW } from './cluster.ts';
import { configure, V2, V3 } from './configure.ts';
import { TURNED_BACK, TURNED_BACK_LARGE } from './turned-back.ts';

const HOUR_MS = 3_600_000;
const DEADLINE = { times: [NOW, NOW + 3 * HOUR_MS], targetDeadlineMs: 2 * HOUR_MS };
/**
 * Two moments. The time between them is shorter than the time after which an intent counts as old, and shorter than any
 * deadline.
 */
export const A_MOMENT_LATER = [NOW, NOW + 30_000];
/** Three moments: one more than the highest number of attempts. */
const THREE_MOMENTS = [NOW, NOW + 30_000, NOW + 60_000];
const TWICE = { attempts: 2, backoffMs: 1000 };
const CRASHES = { faults: 0, crashesEach: 1 };

/** The small configurations. The first tier explores those with few states, and the second tier explores the others. */
export const CONFIGURATIONS: readonly Configuration[] = [
  configure('1 controller, 2 workers', 'c1 w1 w2'),
  configure('2 controllers, 1 worker', 'c1 c2 w1'),
  configure('2 workers at once', 'w1 w2', { concurrent: 2 }),
  configure('2 controllers, 2 faults', 'c1 c2', { faults: 2 }),
  configure('1 worker, 2 commands', 'w1', { versions: [V2, V3] }),
  configure('1 controller, 1 worker, 2 commands, no fault', 'c1 w1', {
    versions: [V2, V3],
    faults: 0,
  }),
  configure('1 worker, the plan is replaced', 'w1', { replacedBy: [V3], faults: 0 }),
  configure('2 controllers, the plan is replaced', 'c1 c2', {
    replacedBy: [V3],
    leaders: 'one',
    faults: 0,
  }),
  configure('payload cannot be executed', 'c1:garbage w1:garbage w2:garbage', { faults: 2 }),
  configure('payload never comes up on controllers', 'c1:dead c2:dead w1', { faults: 2 }),
  configure('payload never comes up on 1 of 2 workers, 2 at once', 'w1:dead w2', {
    concurrent: 2,
    faults: 0,
  }),
  configure('payload never comes up on 1 of 2 workers, 1 may fail', 'w1:dead w2', {
    maxFailures: 1,
  }),
  configure('payload comes up as another version', 'c1:impostor c2:impostor w1', { faults: 2 }),
  configure('payload falls while it is watched', 'c1:brief w1:brief'),
  configure('deadline, nodes may stay off', 'w1', { power: 'may stay off', ...DEADLINE }),
  configure("k0s's own agent beside ours", 'w1', { theirs: 'on', faults: 0 }),
  configure("k0s's own agent beside ours, the power stays, 1 crash", 'w1', {
    theirs: 'on',
    power: 'stays',
    faults: 0,
    crashesEach: 1,
  }),
  configure("k0s's own agent beside ours, 1 crash", 'w1', {
    theirs: 'on',
    faults: 0,
    crashesEach: 1,
  }),
  configure("k0s's own agent is known to be on, fetched ahead", 'w1 w2', {
    theirs: 'on',
    ownAgent: 'on',
    fetchesAhead: true,
  }),
  configure("k0s's own agent may be on, fetched ahead", 'w1 w2', {
    theirs: 'on',
    ownAgent: 'in doubt',
    fetchesAhead: true,
  }),
  configure("k0s's own agent is on after the restart, fetched ahead", 'w1 w2', {
    theirs: 'on',
    ownAgent: 'on after the restart',
    fetchesAhead: true,
  }),
  configure("k0s's own agent is on after the restart, fetched ahead, 2 faults", 'w1', {
    theirs: 'on',
    ownAgent: 'on after the restart',
    fetchesAhead: true,
    faults: 2,
  }),
  configure('workers cordon themselves', 'w1 w2', { cordoner: 'self' }),
  configure('1 worker cordons itself, 2 faults', 'w1', { cordoner: 'self', faults: 2 }),
  configure('1 worker cordons itself, its payload falls', 'w1:brief', {
    cordoner: 'self',
    faults: 2,
  }),
  configure('1 of 2 workers is cordoned by somebody else', 'w1! w2', { othersCordon: true }),
  configure('others cordon nodes that cordon themselves', 'w1', {
    othersCordon: true,
    cordoner: 'self',
    faults: 2,
  }),
  configure('2 workers fetch ahead', 'w1 w2', { fetchesAhead: true }),
  configure('a controller and a worker fetch ahead, paused and aborted', 'c1 w1', {
    fetchesAhead: true,
    controls: ['pause', 'abort'],
    faults: 0,
  }),
  configure('2 workers fetch ahead what cannot be executed on 1 of them', 'w1 w2:garbage', {
    fetchesAhead: true,
  }),
  configure('aborted', 'c1 w1', { controls: ['abort'] }),
  configure('aborted, 2 at once', 'w1 w2', { controls: ['abort'], concurrent: 2, faults: 0 }),
  configure('aborted, workers cordon themselves', 'w1', { controls: ['abort'], cordoner: 'self' }),
  configure('paused and aborted', 'w1', { controls: ['pause', 'abort'] }),
  configure('tried again after it never came up', 'w1:dead', {
    controls: ['retry'],
    times: A_MOMENT_LATER,
  }),
  configure('tried again after it fell', 'w1:brief', {
    controls: ['retry'],
    times: A_MOMENT_LATER,
    cordoner: 'self',
  }),
  configure('2 waves', 'w1@1 w2@2', { rules: { waves: 'in turn' }, concurrent: 2 }),
  configure('2 waves, crashes', 'w1@1 w2@2', {
    rules: { waves: 'in turn' },
    concurrent: 2,
    ...CRASHES,
  }),
  configure('the second wave needs approval', 'w1@1 w2@2', {
    rules: { waves: 'approved' },
    concurrent: 2,
    controls: ['approve'],
  }),
  configure('2 waves, 1 of the first is held', 'w1@1^ w2@1 w3@2', {
    rules: { waves: 'in turn' },
    controls: ['unhold'],
    faults: 0,
  }),
  configure('2 waves, 1 of the first may fail', 'w1:garbage@1 w2@2', {
    rules: { waves: 'in turn' },
    concurrent: 2,
    maxFailures: 1,
  }),
  configure('2 waves, 1 of the first never comes up', 'w1:dead@1 w2@2', {
    rules: { waves: 'in turn' },
    concurrent: 2,
  }),
  configure('it pauses where 1 falls', 'w1:brief w2', {
    rules: { pausesOnFailure: true },
    controls: ['retry'],
    times: A_MOMENT_LATER,
    faults: 0,
  }),
  configure('a Job before the drain and after the upgrade', 'w1', {
    rules: { hooks: ['beforeDrain', 'afterVerified'] },
  }),
  configure('a Job takes minutes, longer than an intent is fresh', 'w1', {
    rules: { hooks: ['beforeDrain', 'afterVerified'] },
    times: [NOW, NOW + 180_000],
    faults: 0,
  }),
  configure('Jobs between the drain and the restart', 'w1', {
    rules: { hooks: ['afterDrain', 'beforeRestart'] },
  }),
  configure('a Job before the drain of 2 workers', 'w1 w2', {
    rules: { hooks: ['beforeDrain'] },
    concurrent: 2,
    faults: 0,
  }),
  configure('tried twice by policy, with Jobs', 'w1:dead', {
    rules: { hooks: ['beforeDrain', 'afterVerified'], retry: TWICE },
    times: A_MOMENT_LATER,
    faults: 0,
  }),
  configure('1 of 2 workers is held', 'w1^ w2', { controls: ['unhold'] }),
  configure('1 of 2 workers is held and left out', 'w1^ w2', {
    rules: { leavesOutHeld: true },
    controls: ['unhold'],
    faults: 0,
  }),
  configure('1 of 2 controllers is held', 'c1^ c2 w1', {
    rules: { leavesOutHeld: true },
    controls: ['unhold'],
  }),
  configure('1 of 2 workers is pinned', 'w1= w2', { rules: { leavesOutHeld: true } }),
  configure('tried twice by policy, it cannot be executed', 'w1:garbage', {
    rules: { retry: TWICE },
    times: THREE_MOMENTS,
    faults: 0,
  }),
  configure('tried twice by policy, it never comes up', 'w1:dead', {
    rules: { retry: TWICE },
    times: A_MOMENT_LATER,
  }),
  configure('Jobs before and after the plan', 'w1', {
    rules: { hooks: ['beforePlan', 'afterPlan'] },
  }),
  configure('a Job before the plan of 2 workers at once', 'w1 w2', {
    rules: { hooks: ['beforePlan'] },
    concurrent: 2,
    faults: 0,
  }),
  configure('the leader takes 1 worker back, another one has failed, 1 fault', 'w1 w2:garbage', {
    rules: { rollsBackOnFailure: true },
    startsUpgraded: true,
  }),
  ...TURNED_BACK,
];

/** Three controllers and four workers, a usual size for clusters with several controllers. */
const SEVEN = 'c1 c2 c3 w1 w2 w3 w4';

/** The large configurations, which only `npm run safety` explores. All together they take minutes. */
export const LARGE: readonly Configuration[] = [
  configure('3 controllers, 4 workers', SEVEN),
  configure('3 controllers, 4 workers, crashes', SEVEN, CRASHES),
  configure('3 controllers, 4 workers, 2 at once, crashes', SEVEN, { ...CRASHES, concurrent: 2 }),
  configure('3 controllers, 4 workers, 2 at once, crashes, workers cordon themselves', SEVEN, {
    ...CRASHES,
    concurrent: 2,
    cordoner: 'self',
  }),
  configure('3 controllers, 4 workers, aborted', SEVEN, { ...CRASHES, controls: ['abort'] }),
  configure('3 workers, 2 at once', 'w1 w2 w3', { concurrent: 2 }),
  configure('1 controller, 2 workers, 2 at once', 'c1 w1 w2', {
    concurrent: 2,
    faults: 0,
    crashesEach: 1,
  }),
  configure('payload falls while it is watched, 2 faults', 'c1:brief w1:brief', { faults: 2 }),
  configure('aborted, workers cordon themselves, 2 faults', 'w1', {
    controls: ['abort'],
    cordoner: 'self',
    faults: 2,
  }),
  configure('2 controllers, 2 commands', 'c1 c2', { versions: [V2, V3] }),
  configure('1 controller, 1 worker, 2 commands', 'c1 w1', { versions: [V2, V3] }),
  configure('1 controller, 1 worker, the plan is replaced', 'c1 w1', {
    replacedBy: [V3],
    leaders: 'one',
    faults: 0,
  }),
  configure('1 worker, the plan is replaced, 1 fault', 'w1', { replacedBy: [V3] }),
  configure('2 workers, the plan is replaced', 'w1 w2', {
    replacedBy: [V3],
    leaders: 'one',
    faults: 0,
  }),
  configure('1 worker, its payload never comes up, the plan is replaced', 'w1:dead', {
    replacedBy: [V3],
    faults: 0,
    ...DEADLINE,
  }),
  configure('payload never comes up on 1 of 3 workers, 2 at once', 'w1 w2:dead w3', {
    concurrent: 2,
  }),
  configure('tried again, paused and aborted', 'w1:dead', {
    controls: ['retry', 'pause', 'abort'],
    times: A_MOMENT_LATER,
  }),
  configure('1 of 2 workers is tried again, aborted, 2 at once', 'w1:dead w2', {
    controls: ['retry', 'abort'],
    times: A_MOMENT_LATER,
    concurrent: 2,
    faults: 0,
  }),
  configure("k0s's own agent beside ours, the power stays, 2 crashes", 'w1', {
    theirs: 'on',
    power: 'stays',
    faults: 0,
    crashesEach: 2,
  }),
  configure("k0s's own agent beside ours, the power stays, 3 crashes", 'w1', {
    theirs: 'on',
    power: 'stays',
    faults: 0,
    crashesEach: 3,
  }),
  configure("k0s's own agent beside ours, 1 fault", 'w1', {
    theirs: 'on',
  }),
  configure("k0s's own agent beside ours, 2 faults", 'w1', {
    theirs: 'on',
    faults: 2,
  }),
  configure("k0s's own agent beside ours, 2 crashes", 'w1', {
    theirs: 'on',
    faults: 0,
    crashesEach: 2,
  }),
  configure("k0s's own agent beside ours, its payload comes up as another version", 'w1:impostor', {
    theirs: 'on',
    faults: 0,
    ...DEADLINE,
  }),
  configure("k0s's own agent is on after the restart, 2 workers fetch ahead, 2 faults", 'w1 w2', {
    theirs: 'on',
    ownAgent: 'on after the restart',
    fetchesAhead: true,
    faults: 2,
  }),
  configure("k0s's own agent beside ours, fetched ahead", 'w1 w2', {
    theirs: 'on',
    fetchesAhead: true,
    faults: 0,
  }),
  configure('deadline, 2 workers may stay off', 'w1 w2', { power: 'may stay off', ...DEADLINE }),
  configure('the leader takes 1 worker back, another one failed', 'w1 w2:garbage', {
    rules: { rollsBackOnFailure: true },
    faults: 0,
  }),
  configure('1 controller, 1 worker, done, then taken back, 1 crash', 'c1 w1', {
    wayBack: 'once it has ended',
    startsUpgraded: true,
    ...CRASHES,
  }),
  configure('2 controllers, 1 worker, done, then taken back', 'c1 c2 w1', {
    wayBack: 'once it has ended',
    startsUpgraded: true,
    faults: 0,
  }),
  configure('1 controller, 1 worker, taken back right after their upgrade, 1 leader', 'c1 w1', {
    wayBack: 'once it has ended',
    leaders: 'one',
    faults: 0,
  }),
  configure('the leader takes 1 controller back, its worker cannot be upgraded', 'c1 w1:garbage', {
    rules: { rollsBackOnFailure: true },
  }),
  ...TURNED_BACK_LARGE,
];
