/** The clusters whose NodeRollout is an object of the model, and in which people edit, delete, lose and join. */
import type { Configuration } from '../model/cluster.ts';
import { A_MOMENT_LATER } from '../model/configurations.ts';
import { configure, V2, V3 } from '../model/configure.ts';

/** Nothing goes wrong by itself, and all views are new: what people do comes at each moment. */
const CALM = {
  faults: 0,
  leaders: 'one',
  tellsVersions: true,
  namesRuns: true,
  power: 'stays',
} as const;

/** The clusters that `npm test` visits, too. */
export const SMALL_TOLD: readonly Configuration[] = [
  configure('1 worker, the version of the plan is edited', 'w1', {
    ...CALM,
    controls: ['editVersion'],
  }),
  configure('1 worker, the id and the version of the plan are edited', 'w1', {
    ...CALM,
    controls: ['editBoth'],
  }),
  configure('1 worker, its node is lost', 'w1', { ...CALM, controls: ['loseNode'] }),
  configure('1 worker, somebody upgrades it by hand', 'w1', {
    ...CALM,
    controls: ['upgradeByHand'],
  }),
  configure('2 workers, one of them fails, the policy allows a failure later', 'w1:garbage w2', {
    ...CALM,
    controls: ['changePolicy'],
    changedRules: { maxFailures: 1 },
  }),
  configure('1 worker, retried after it has failed', 'w1:garbage', {
    ...CALM,
    controls: ['retry'],
    times: A_MOMENT_LATER,
  }),
  configure('1 controller that fails, 1 worker, the plan is paused', 'c1:garbage w1', {
    ...CALM,
    controls: ['pause'],
  }),
  configure('1 worker, the plan is aborted, the new service never answers', 'w1:dead', {
    ...CALM,
    controls: ['abort'],
  }),
  configure('1 worker is held, the plan may end without it', 'w1^', {
    ...CALM,
    rules: { leavesOutHeld: true },
    controls: ['unhold'],
  }),
  configure('1 worker, a Job between its drain and its restart', 'w1', {
    ...CALM,
    rules: { hooks: ['afterDrain'] },
  }),
  configure('1 worker, 2 commands', 'w1', { ...CALM, versions: [V2, V3] }),
  configure('1 upgraded worker, the completed plan is rolled back', 'w1', {
    ...CALM,
    startsUpgraded: true,
    wayBack: 'once it has ended',
  }),
];

/** The other clusters, which only `npm run safety` visits. */
export const LARGE_TOLD: readonly Configuration[] = [
  configure('2 workers, the version of the plan is edited', 'w1 w2', {
    ...CALM,
    controls: ['editVersion'],
  }),
  configure('2 workers, the id of the plan is edited', 'w1 w2', { ...CALM, controls: ['editId'] }),
  configure('1 worker, the plan is deleted and applied again', 'w1', {
    ...CALM,
    controls: ['reapply'],
  }),
  configure('1 worker, the version of the plan is edited, and the policy starts it again', 'w1', {
    ...CALM,
    controls: ['editVersion'],
    rules: { restartsEdited: true },
  }),
  configure('1 worker, another one joins later', 'w1 w2+', {
    ...CALM,
    controls: ['joinNode'],
    selectsWorkers: true,
  }),
  configure('2 workers, a node is lost', 'w1 w2', { ...CALM, controls: ['loseNode'] }),
  configure('2 workers, one of them is held, the plan may end without it', 'w1^ w2', {
    ...CALM,
    rules: { leavesOutHeld: true },
    controls: ['unhold'],
  }),
  configure('2 waves of 1 worker each, the second wave needs approval', 'w1@1 w2@2', {
    ...CALM,
    rules: { waves: 'approved' },
    controls: ['approve'],
  }),
];
