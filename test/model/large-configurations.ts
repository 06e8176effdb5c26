/** The large clusters to explore, which only `npm run safety` explores. */
import type { Configuration } from './cluster.ts';
import { A_MOMENT_LATER, CRASHES, DEADLINE } from './configurations.ts';
import { configure, V2, V3 } from './configure.ts';
import { TURNED_BACK_LARGE } from './turned-back.ts';

/** Three controllers and four workers, a usual size for clusters with several controllers. */
const SEVEN = 'c1 c2 c3 w1 w2 w3 w4';

/** The large configurations, which only `npm run safety` explores. All together they take minutes. */
export const LARGE: readonly Configuration[] = [
  configure('3 controllers, 4 workers', SEVEN),
  configure('3 controllers, 4 workers, 1 crash per node', SEVEN, CRASHES),
  configure('3 controllers, 4 workers, 2 at once, 1 crash per node', SEVEN, {
    ...CRASHES,
    concurrent: 2,
  }),
  configure(
    '3 controllers, 4 workers, 2 at once, 1 crash per node, each worker agent cordons its Node',
    SEVEN,
    {
      ...CRASHES,
      concurrent: 2,
      cordoner: 'self',
    },
  ),
  configure('3 controllers, 4 workers, the plan is aborted, 1 crash per node', SEVEN, {
    ...CRASHES,
    controls: ['abort'],
  }),
  configure('3 workers, 2 at once', 'w1 w2 w3', { concurrent: 2 }),
  configure('1 controller, 2 workers, 2 at once', 'c1 w1 w2', {
    concurrent: 2,
    faults: 0,
    crashesEach: 1,
  }),
  configure(
    '1 controller, 1 worker, the new service can stop while the agent watches it, 2 faults',
    'c1:brief w1:brief',
    { faults: 2 },
  ),
  configure('1 worker, the agent cordons its Node, the plan is aborted, 2 faults', 'w1', {
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
  configure('1 worker, the new service never answers, the plan is replaced', 'w1:dead', {
    replacedBy: [V3],
    faults: 0,
    ...DEADLINE,
  }),
  configure('3 workers, the new service never answers on 1 of them, 2 at once', 'w1 w2:dead w3', {
    concurrent: 2,
  }),
  configure(
    '1 worker, retried after its new service never answered, the plan is paused and aborted',
    'w1:dead',
    {
      controls: ['retry', 'pause', 'abort'],
      times: A_MOMENT_LATER,
    },
  ),
  configure(
    '2 workers, the new service never answers on 1 of them, this worker is retried, the plan is aborted, 2 at once',
    'w1:dead w2',
    {
      controls: ['retry', 'abort'],
      times: A_MOMENT_LATER,
      concurrent: 2,
      faults: 0,
    },
  ),
  configure("1 worker, k0s's own agent also runs, the power never fails, 2 crashes", 'w1', {
    theirs: 'on',
    power: 'stays',
    faults: 0,
    crashesEach: 2,
  }),
  configure("1 worker, k0s's own agent also runs, the power never fails, 3 crashes", 'w1', {
    theirs: 'on',
    power: 'stays',
    faults: 0,
    crashesEach: 3,
  }),
  configure("1 worker, k0s's own agent also runs, 1 fault", 'w1', {
    theirs: 'on',
  }),
  configure("1 worker, k0s's own agent also runs, 2 faults", 'w1', {
    theirs: 'on',
    faults: 2,
  }),
  configure("1 worker, k0s's own agent also runs, 2 crashes", 'w1', {
    theirs: 'on',
    faults: 0,
    crashesEach: 2,
  }),
  configure(
    "1 worker, k0s's own agent also runs, the new service reports another version",
    'w1:impostor',
    {
      theirs: 'on',
      faults: 0,
      ...DEADLINE,
    },
  ),
  configure(
    "2 workers, the leader requests downloads before their turn, k0s's own agent runs only in the new version, 2 faults",
    'w1 w2',
    {
      theirs: 'on',
      ownAgent: 'on after the restart',
      fetchesAhead: true,
      faults: 2,
    },
  ),
  configure(
    "2 workers, the leader requests downloads before their turn, k0s's own agent also runs",
    'w1 w2',
    {
      theirs: 'on',
      fetchesAhead: true,
      faults: 0,
    },
  ),
  configure('2 workers, each node has a deadline and may lose its power permanently', 'w1 w2', {
    power: 'may stay off',
    ...DEADLINE,
  }),
  configure(
    '2 workers, the new binary cannot run on 1 of them, the leader rolls the other one back',
    'w1 w2:garbage',
    {
      rules: { rollsBackOnFailure: true },
      faults: 0,
    },
  ),
  configure(
    '1 controller, 1 worker, the completed plan is rolled back, 1 crash per node',
    'c1 w1',
    {
      wayBack: 'once it has ended',
      startsUpgraded: true,
      ...CRASHES,
    },
  ),
  configure('2 controllers, 1 worker, the completed plan is rolled back', 'c1 c2 w1', {
    wayBack: 'once it has ended',
    startsUpgraded: true,
    faults: 0,
  }),
  configure(
    '1 controller, 1 worker, the plan is rolled back immediately after the upgrade, 1 leader',
    'c1 w1',
    {
      wayBack: 'once it has ended',
      leaders: 'one',
      faults: 0,
    },
  ),
  configure(
    '1 controller, 1 worker, the new binary cannot run on the worker, the leader rolls the controller back',
    'c1 w1:garbage',
    {
      rules: { rollsBackOnFailure: true },
    },
  ),
  ...TURNED_BACK_LARGE,
];
