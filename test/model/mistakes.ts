/**
 * The planted mistakes. Each mistake has a cluster in which it has an effect, and the invariant that it violates there.
 */
import type { Configuration } from './cluster.ts';
import { OLD } from './cluster.ts';
import { A_MOMENT_LATER } from './configurations.ts';
import { configure, V2 } from './configure.ts';
import type { Model, Violation } from './explorer.ts';
import { EVERY_RUN_ENDS, explore } from './explorer.ts';
import * as hosts from './planted-hosts.ts';
import * as leaders from './planted-leaders.ts';
import * as back from './planted-ways-back.ts';
import type { Parts } from './world.ts';
import { World } from './world.ts';

export interface Mistake {
  readonly name: string;
  readonly configuration: Configuration;
  readonly parts: Partial<Parts>;
  readonly breaks: string;
}

const controllers = configure('2 controllers', 'c1 c2', { faults: 0 });
const workers = configure('2 workers', 'w1 w2', { faults: 0 });
const mixed = configure('1 controller, 1 worker', 'c1 w1', { faults: 0 });
const single = configure('1 worker', 'w1');
/** The first command has the version that already runs, so that the second command is reached within a few steps. */
const twoCommands = configure('1 controller, 2 commands', 'c1', { versions: [OLD, V2], faults: 0 });
const garbage = configure('1 worker, payload cannot be executed', 'w1:garbage');
const alone = configure('1 worker that cordons itself', 'w1', { cordoner: 'self' });
const mayFail = configure('1 worker, its payload cannot be executed, 1 may fail', 'w1:garbage', {
  faults: 0,
  maxFailures: 1,
});
const closed = configure('1 worker, cordoned by somebody else', 'w1!');
const aborted = configure('1 worker, the plan is aborted', 'w1', { controls: ['abort'] });

/** The first plan has the version that already runs, so that its second node is reached within a few steps. */
const replaced = configure('2 controllers, the plan is replaced', 'c1 c2', {
  versions: [OLD],
  replacedBy: [V2],
  leaders: 'one',
  faults: 0,
});
const ahead = configure('3 workers fetch ahead', 'w1 w2 w3', { fetchesAhead: true, faults: 0 });
const besideKnown = configure('2 workers fetch ahead, k0s runs its own agent', 'w1 w2', {
  theirs: 'on',
  ownAgent: 'on',
  fetchesAhead: true,
  faults: 0,
});
const besideDoubtful = configure('2 workers fetch ahead, k0s may run its own agent', 'w1 w2', {
  theirs: 'on',
  ownAgent: 'in doubt',
  fetchesAhead: true,
  faults: 0,
});

const inWaves = configure('2 waves of 1 worker, 2 at once', 'w1@1 w2@2', {
  rules: { waves: 'in turn' },
  concurrent: 2,
});
const unapproved = configure('1 worker whose wave needs approval', 'w1@2', {
  rules: { waves: 'approved' },
  controls: ['approve'],
});
const firstFails = configure('2 waves, 1 of the first cannot be executed', 'w1:garbage@1 w2@2', {
  rules: { waves: 'in turn' },
  concurrent: 2,
  faults: 0,
});
const pausing = configure('it pauses where 1 cannot be executed', 'w1:garbage w2', {
  rules: { pausesOnFailure: true },
  faults: 0,
});
const before = configure('1 worker with a Job before its drain', 'w1', {
  rules: { hooks: ['beforeDrain'] },
  faults: 0,
});
const between = configure('1 worker with Jobs between its drain and its restart', 'w1', {
  rules: { hooks: ['afterDrain', 'beforeRestart'] },
  faults: 0,
});
const after = configure('1 worker with a Job after its upgrade', 'w1', {
  rules: { hooks: ['afterVerified'] },
  faults: 0,
});
const held = configure('1 worker that is held', 'w1^', { controls: ['unhold'] });
const pinned = configure('1 worker that is pinned', 'w1=');
const heldController = configure('1 controller that is held, 1 worker', 'c1^ w1', {
  rules: { leavesOutHeld: true },
  faults: 0,
});
const triedOnce = configure('1 worker, tried once by policy, it cannot be executed', 'w1:garbage', {
  rules: { retry: { attempts: 1, backoffMs: 1000 } },
  times: A_MOMENT_LATER,
  faults: 0,
});

const beforePlan = configure('1 worker with a Job before the plan', 'w1', {
  rules: { hooks: ['beforePlan'] },
  faults: 0,
});
const afterPlan = configure('1 worker with a Job after the plan', 'w1', {
  rules: { hooks: ['afterPlan'] },
  faults: 0,
});
/** The plan has the version that already runs, so that nothing changes except in the roll-back to the version before. */
const goesBack = configure('1 controller, 1 worker, taken back once it has ended', 'c1 w1', {
  wayBack: 'once it has ended',
  startsUpgraded: true,
  leaders: 'one',
  faults: 0,
});
const turnedWhileDrained = configure(
  '1 upgraded controller, 1 worker, replaced by its way back',
  'c1 w1',
  {
    startsAtWorkers: true,
    wayBack: 'at any moment',
    turnsBack: { node: 'w1', phase: 'ApplyingUpdate', by: 'replacement' },
    leaders: 'one',
    faults: 0,
  },
);
const failsAgain = configure('the leader takes 1 worker back, 1 fault', 'w1 w2:garbage', {
  rules: { rollsBackOnFailure: true },
  startsUpgraded: true,
  leaders: 'one',
  times: A_MOMENT_LATER,
});

const unaware = { leader: leaders.ignoresForeignWork };
const random = { leader: leaders.randomChoiceAfterLostWrite };

export const MISTAKES: readonly Mistake[] = [
  mistake(
    'a decision on a stale view',
    twoCommands,
    { leader: leaders.onStaleView },
    'no-signal-for-what-is-done',
  ),
  mistake(
    'a signal before its intent',
    mixed,
    { leader: leaders.signalBeforeIntent },
    'intent-before-signal',
  ),
  mistake('a random choice after a lost write', controllers, random, 'signals-within-slots'),
  mistake('a random choice after a lost write', controllers, random, 'one-controller-in-motion'),
  mistake('a random choice after a lost write', workers, random, 'concurrent-workers'),
  mistake('no limit on workers', workers, { leader: leaders.withoutLimit }, 'concurrent-workers'),
  mistake('everyone fetches ahead', ahead, { leader: leaders.asksEveryone }, 'ahead-within-slots'),
  mistake(
    'stages in any order',
    mixed,
    { leader: leaders.stagesInAnyOrder },
    'controllers-before-workers',
  ),
  mistake('foreign work does not count', replaced, unaware, 'signals-within-slots'),
  mistake(
    'a restart taken for the end',
    controllers,
    { leader: leaders.doneTooEarly },
    'done-runs-it',
  ),
  mistake(
    'failures within the budget are forgotten',
    mayFail,
    { leader: leaders.forgetsFailures },
    'completed-is-done',
  ),
  mistake('a signal that is never sent', single, { leader: leaders.neverSignals }, EVERY_RUN_ENDS),
  mistake('no trial run', garbage, { afterStep: hosts.noTrialRun }, 'runnable-binary'),
  mistake(
    'the previous binary is not kept',
    single,
    { afterStep: hosts.previousIsNotKept },
    'way-back',
  ),
  mistake(
    'what is staged is fetched anew',
    single,
    { afterStep: hosts.downloadsAnew },
    'downloaded-once',
  ),
  mistake(
    'a roll-back ends the service',
    single,
    { afterStep: hosts.rollsBackRoughly },
    'rolled-back-rests',
  ),
  mistake(
    'drains that nobody waits for',
    single,
    { leader: leaders.drainsNobody },
    'emptied-before-swap',
  ),
  mistake(
    'an agent that evicts nobody',
    alone,
    { afterStep: hosts.evictsNobody },
    'emptied-before-swap',
  ),
  mistake(
    "an agent that does not ask whether k0s's own one runs",
    besideKnown,
    { ownAgentFacts: hosts.asksNobody },
    'one-agent-acts',
  ),
  mistake(
    "fetched ahead beside k0s's own agent",
    besideDoubtful,
    { placeToFetch: hosts.fetchesBeside },
    'one-agent-acts',
  ),
  mistake('any cordon is lifted', closed, { leader: leaders.liftsAnyCordon }, 'closed-by-others'),
  mistake('nothing is cleaned up', aborted, { leader: leaders.neverTidies }, 'no-cordon-left'),
  mistake(
    'an aborted plan is abandoned',
    aborted,
    { leader: leaders.abandons },
    'nothing-half-done',
  ),
  mistake(
    'a cordon is lifted too early',
    single,
    { leader: leaders.liftsTooEarly },
    'closed-while-swapped',
  ),
  mistake('waves side by side', inWaves, { leader: leaders.knowsNoWaves }, 'waves-in-turn'),
  mistake(
    'an approval that nobody asks for',
    unapproved,
    { leader: leaders.asksForNoApproval },
    'approved-before-start',
  ),
  mistake(
    'a failure that stops nothing',
    firstFails,
    { leader: leaders.allowsAnyFailure },
    'failures-stop-waves',
  ),
  mistake(
    'an end instead of a pause',
    pausing,
    { leader: leaders.endsAtFailure },
    'pauses-on-failure',
  ),
  mistake(
    'each leader names its Job itself',
    before,
    { leader: leaders.namesJobsAnew },
    'one-job-per-attempt',
  ),
  mistake(
    'a Job that nobody waits for',
    before,
    { leader: leaders.awaitsNoJob },
    'job-before-drain',
  ),
  mistake('a Job taken for done', between, { leader: leaders.awaitsNoJob }, 'job-before-work'),
  mistake('hooks that nobody runs', between, { leader: leaders.runsNoHooks }, 'job-before-work'),
  mistake('hooks that nobody runs', after, { leader: leaders.runsNoHooks }, 'job-before-done'),
  mistake('holds that nobody sees', held, { leader: leaders.seesNoHolds }, 'held-never-starts'),
  mistake('pins that nobody reads', pinned, { leader: leaders.readsNoPins }, 'pinned-never-starts'),
  mistake(
    'a held controller is left out',
    heldController,
    { leader: leaders.leavesOutControllers },
    'no-worker-past-a-controller',
  ),
  mistake(
    'one attempt more than allowed',
    triedOnce,
    { leader: leaders.triesOnceMore },
    'attempts-within-policy',
  ),
  mistake(
    'a Job that nobody waits for',
    beforePlan,
    { leader: leaders.awaitsNoJob },
    'job-before-plan',
  ),
  mistake(
    'each leader names its Job itself',
    beforePlan,
    { leader: leaders.namesJobsAnew },
    'one-job-per-plan',
  ),
  mistake(
    'the Job after the plan runs at its begin',
    afterPlan,
    { leader: back.runsHooksAfterPlanFirst },
    'end-before-job',
  ),
  mistake(
    'controllers go back first',
    goesBack,
    { leader: back.controllersGoBackFirst },
    'workers-back-first',
  ),
  mistake(
    'controllers go back first',
    goesBack,
    { leader: back.controllersGoBackFirst },
    'no-worker-newer',
  ),
  mistake(
    'a worker that the way back does not list is overlooked',
    turnedWhileDrained,
    { leader: back.seesItsOwnWorkersOnly },
    'no-worker-newer',
  ),
  mistake(
    'done on the way back too early',
    goesBack,
    { leader: back.backTooEarly },
    'back-runs-it',
  ),
  mistake(
    'a roll-back is rolled back',
    failsAgain,
    { leader: back.forgetsItsWayBack },
    'rolled-back-once',
  ),
];

function mistake(
  name: string,
  configuration: Configuration,
  parts: Partial<Parts>,
  breaks: string,
): Mistake {
  return { name, configuration, parts, breaks };
}

/**
 * Returns a shortest path to a violation of this one invariant, whatever other invariants are violated earlier on the
 * path; undefined if the invariant always holds.
 */
export async function counterexample(
  { configuration, parts, breaks }: Mistake,
  model: Model = new World(configuration, parts).model(),
): Promise<Violation | undefined> {
  const { violation } = await explore({
    initial: model.initial,
    invariants: model.invariants.filter(({ name }) => name === breaks),
    invariantsAtRest: (model.invariantsAtRest ?? []).filter(({ name }) => name === breaks),
    next: async (state) => await model.next(state),
    isFinal: (state) => model.isFinal(state),
    canonical: async (state) => (await model.canonical?.(state)) ?? state,
  });
  return violation;
}
