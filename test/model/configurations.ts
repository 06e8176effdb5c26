/** The small clusters to explore, which both tiers of tests explore. */
import type { Configuration } from './cluster.ts';
import { NOW } from './cluster.ts';
import { configure, OTHER_BUILD, V2, V3 } from './configure.ts';
import { TURNED_BACK } from './turned-back.ts';

const HOUR_MS = 3_600_000;
export const DEADLINE = { times: [NOW, NOW + 3 * HOUR_MS], targetDeadlineMs: 2 * HOUR_MS };
/**
 * Two moments. The time between them is shorter than the time after which an intent counts as old, and shorter than any
 * deadline.
 */
export const A_MOMENT_LATER = [NOW, NOW + 30_000];
/** Three moments: one more than the highest number of attempts. */
const THREE_MOMENTS = [NOW, NOW + 30_000, NOW + 60_000];
const TWICE = { attempts: 2, backoffMs: 1000 };
export const CRASHES = { faults: 0, crashesEach: 1 };

/** The small configurations. The first tier explores those with few states, and the second tier explores the others. */
export const CONFIGURATIONS: readonly Configuration[] = [
  configure('1 controller, 2 workers', 'c1 w1 w2'),
  configure('2 controllers, 1 worker', 'c1 c2 w1'),
  configure('2 workers, 2 at once', 'w1 w2', { concurrent: 2 }),
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
  configure(
    '1 controller, 2 workers, the new binary cannot run, 2 faults',
    'c1:garbage w1:garbage w2:garbage',
    { faults: 2 },
  ),
  configure(
    '2 controllers, 1 worker, the new service never answers on the controllers, 2 faults',
    'c1:dead c2:dead w1',
    { faults: 2 },
  ),
  configure('2 workers, the new service never answers on 1 of them, 2 at once', 'w1:dead w2', {
    concurrent: 2,
    faults: 0,
  }),
  configure(
    '2 workers, the new service never answers on 1 of them, 1 worker may fail',
    'w1:dead w2',
    {
      maxFailures: 1,
    },
  ),
  configure(
    '2 controllers, 1 worker, the new service of the controllers reports another version, 2 faults',
    'c1:impostor c2:impostor w1',
    { faults: 2 },
  ),
  configure(
    '1 controller, 1 worker, the new service can stop while the agent watches it',
    'c1:brief w1:brief',
  ),
  configure('1 worker, the node has a deadline and may lose its power permanently', 'w1', {
    power: 'may stay off',
    ...DEADLINE,
  }),
  configure("1 worker, k0s's own agent also runs", 'w1', { theirs: 'on', faults: 0 }),
  configure("1 worker, k0s's own agent also runs, the power never fails, 1 crash", 'w1', {
    theirs: 'on',
    power: 'stays',
    faults: 0,
    crashesEach: 1,
  }),
  configure("1 worker, k0s's own agent also runs, 1 crash", 'w1', {
    theirs: 'on',
    faults: 0,
    crashesEach: 1,
  }),
  configure(
    "2 workers, the leader requests downloads before their turn, Refit knows that k0s's own agent runs",
    'w1 w2',
    {
      theirs: 'on',
      ownAgent: 'on',
      fetchesAhead: true,
    },
  ),
  configure(
    "2 workers, the leader requests downloads before their turn, Refit cannot find out whether k0s's own agent runs",
    'w1 w2',
    {
      theirs: 'on',
      ownAgent: 'in doubt',
      fetchesAhead: true,
    },
  ),
  configure(
    "2 workers, the leader requests downloads before their turn, k0s's own agent runs only in the new version",
    'w1 w2',
    {
      theirs: 'on',
      ownAgent: 'on after the restart',
      fetchesAhead: true,
    },
  ),
  configure(
    "1 worker, the leader requests its download before its turn, k0s's own agent runs only in the new version, 2 faults",
    'w1',
    {
      theirs: 'on',
      ownAgent: 'on after the restart',
      fetchesAhead: true,
      faults: 2,
    },
  ),
  configure("1 worker, taken over from k0s's own leader, the id of the plan is edited", 'w1', {
    takenOver: true,
    controls: ['editId'],
  }),
  configure(
    "1 controller, 1 worker, taken over from k0s's own leader, the id of the plan is edited",
    'c1 w1',
    {
      takenOver: true,
      controls: ['editId'],
      faults: 0,
    },
  ),
  configure('2 workers, each agent cordons its Node', 'w1 w2', { cordoner: 'self' }),
  configure('1 worker, the agent cordons its Node, 2 faults', 'w1', {
    cordoner: 'self',
    faults: 2,
  }),
  configure(
    '1 worker, the agent cordons its Node, the new service can stop while the agent watches it',
    'w1:brief',
    {
      cordoner: 'self',
      faults: 2,
    },
  ),
  configure('1 of 2 workers is cordoned by somebody else', 'w1! w2', { othersCordon: true }),
  configure('1 worker, its agent and somebody else cordon the Node, 2 faults', 'w1', {
    othersCordon: true,
    cordoner: 'self',
    faults: 2,
  }),
  configure('2 workers, the leader requests downloads before their turn', 'w1 w2', {
    fetchesAhead: true,
  }),
  configure(
    '1 controller and 1 worker, the leader requests downloads before their turn, the plan is paused and aborted',
    'c1 w1',
    {
      fetchesAhead: true,
      controls: ['pause', 'abort'],
      faults: 0,
    },
  ),
  configure(
    '2 workers, the leader requests downloads before their turn, the new binary cannot run on 1 of them',
    'w1 w2:garbage',
    {
      fetchesAhead: true,
    },
  ),
  configure('1 controller, 1 worker, the plan is aborted', 'c1 w1', { controls: ['abort'] }),
  configure('2 workers, the plan is aborted, 2 at once', 'w1 w2', {
    controls: ['abort'],
    concurrent: 2,
    faults: 0,
  }),
  configure('1 worker, the agent cordons its Node, the plan is aborted', 'w1', {
    controls: ['abort'],
    cordoner: 'self',
  }),
  configure('1 worker, the plan is paused and aborted', 'w1', { controls: ['pause', 'abort'] }),
  configure('1 worker, retried after its new service never answered', 'w1:dead', {
    controls: ['retry'],
    times: A_MOMENT_LATER,
  }),
  configure(
    '1 worker, the agent cordons its Node, retried after its new service stopped',
    'w1:brief',
    {
      controls: ['retry'],
      times: A_MOMENT_LATER,
      cordoner: 'self',
    },
  ),
  configure('2 waves of 1 worker each, 2 at once', 'w1@1 w2@2', {
    rules: { waves: 'in turn' },
    concurrent: 2,
  }),
  configure('2 waves of 1 worker each, 2 at once, 1 crash per node', 'w1@1 w2@2', {
    rules: { waves: 'in turn' },
    concurrent: 2,
    ...CRASHES,
  }),
  configure('2 waves of 1 worker each, the second wave needs approval', 'w1@1 w2@2', {
    rules: { waves: 'approved' },
    concurrent: 2,
    controls: ['approve'],
  }),
  configure(
    '2 workers in the first wave and 1 worker in the second wave, 1 worker of the first wave is held',
    'w1@1^ w2@1 w3@2',
    {
      rules: { waves: 'in turn' },
      controls: ['unhold'],
      faults: 0,
    },
  ),
  configure(
    '2 waves of 1 worker each, the new binary cannot run in the first wave, 1 worker may fail',
    'w1:garbage@1 w2@2',
    {
      rules: { waves: 'in turn' },
      concurrent: 2,
      maxFailures: 1,
    },
  ),
  configure(
    '2 waves of 1 worker each, the new service never answers in the first wave',
    'w1:dead@1 w2@2',
    {
      rules: { waves: 'in turn' },
      concurrent: 2,
    },
  ),
  configure(
    '2 workers, the new service of 1 worker can stop while the agent watches it, the plan pauses after a failure',
    'w1:brief w2',
    {
      rules: { pausesOnFailure: true },
      controls: ['retry'],
      times: A_MOMENT_LATER,
      faults: 0,
    },
  ),
  configure('1 worker, a Job before the drain and a Job after the upgrade', 'w1', {
    rules: { hooks: ['beforeDrain', 'afterVerified'] },
  }),
  configure(
    '1 worker, a Job before the drain and a Job after the upgrade, a Job can take 3 minutes',
    'w1',
    {
      rules: { hooks: ['beforeDrain', 'afterVerified'] },
      times: [NOW, NOW + 180_000],
      faults: 0,
    },
  ),
  configure('1 worker, Jobs between the drain and the restart', 'w1', {
    rules: { hooks: ['afterDrain', 'beforeRestart'] },
  }),
  configure('2 workers, a Job before the drain of each worker, 2 at once', 'w1 w2', {
    rules: { hooks: ['beforeDrain'] },
    concurrent: 2,
    faults: 0,
  }),
  configure(
    '1 worker with Jobs, the new service never answers, the policy allows 2 attempts',
    'w1:dead',
    {
      rules: { hooks: ['beforeDrain', 'afterVerified'], retry: TWICE },
      times: A_MOMENT_LATER,
      faults: 0,
    },
  ),
  configure('1 of 2 workers is held', 'w1^ w2', { controls: ['unhold'] }),
  configure('2 workers, 1 of them is held, the plan may end without this worker', 'w1^ w2', {
    rules: { leavesOutHeld: true },
    controls: ['unhold'],
    faults: 0,
  }),
  configure('2 controllers, 1 worker, 1 controller is held', 'c1^ c2 w1', {
    rules: { leavesOutHeld: true },
    controls: ['unhold'],
  }),
  configure('2 workers, the policy pins 1 of them to its old version', 'w1= w2', {
    rules: { leavesOutHeld: true },
  }),
  configure('1 worker, the new binary cannot run, the policy allows 2 attempts', 'w1:garbage', {
    rules: { retry: TWICE },
    times: THREE_MOMENTS,
    faults: 0,
  }),
  configure('1 worker, the new service never answers, the policy allows 2 attempts', 'w1:dead', {
    rules: { retry: TWICE },
    times: A_MOMENT_LATER,
  }),
  configure('1 worker, a Job before the plan and a Job after the plan', 'w1', {
    rules: { hooks: ['beforePlan', 'afterPlan'] },
  }),
  configure('2 workers, a Job before the plan, 2 at once', 'w1 w2', {
    rules: { hooks: ['beforePlan'] },
    concurrent: 2,
    faults: 0,
  }),
  configure(
    '2 workers, 1 of them has failed, the leader rolls the other one back, 1 fault',
    'w1 w2:garbage',
    {
      rules: { rollsBackOnFailure: true },
      startsUpgraded: true,
    },
  ),
  configure('1 controller, 1 worker, another build of the same version, 1 fault', 'c1 w1', {
    versions: [OTHER_BUILD],
  }),
  configure(
    '1 upgraded controller, 1 upgraded worker, the completed plan is rolled back to another build of the same version',
    'c1 w1',
    {
      versions: [OTHER_BUILD],
      wayBack: 'once it has ended',
      startsUpgraded: true,
      faults: 0,
    },
  ),
  configure(
    '2 workers, 1 of them has failed, the leader rolls the other one back to another build of the same version',
    'w1 w2:garbage',
    {
      versions: [OTHER_BUILD],
      rules: { rollsBackOnFailure: true },
      startsUpgraded: true,
      faults: 0,
    },
  ),
  ...TURNED_BACK,
];
