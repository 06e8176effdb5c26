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
const garbage = configure('1 worker, the new binary cannot run', 'w1:garbage');
const alone = configure('1 worker, the agent cordons its Node', 'w1', { cordoner: 'self' });
const mayFail = configure('1 worker, the new binary cannot run, 1 worker may fail', 'w1:garbage', {
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
const ahead = configure('3 workers, the leader requests downloads before their turn', 'w1 w2 w3', {
  fetchesAhead: true,
  faults: 0,
});
const besideKnown = configure(
  '2 workers, the leader requests downloads before their turn, k0s runs its own agent',
  'w1 w2',
  {
    theirs: 'on',
    ownAgent: 'on',
    fetchesAhead: true,
    faults: 0,
  },
);
const besideDoubtful = configure(
  '2 workers, the leader requests downloads before their turn, k0s may run its own agent',
  'w1 w2',
  {
    theirs: 'on',
    ownAgent: 'in doubt',
    fetchesAhead: true,
    faults: 0,
  },
);

const inWaves = configure('2 waves of 1 worker each, 2 at once', 'w1@1 w2@2', {
  rules: { waves: 'in turn' },
  concurrent: 2,
});
const unapproved = configure('1 worker whose wave needs approval', 'w1@2', {
  rules: { waves: 'approved' },
  controls: ['approve'],
});
const firstFails = configure(
  '2 waves of 1 worker each, the new binary cannot run in the first wave',
  'w1:garbage@1 w2@2',
  {
    rules: { waves: 'in turn' },
    concurrent: 2,
    faults: 0,
  },
);
const pausing = configure(
  '2 workers, the new binary cannot run on 1 of them, the plan pauses after a failure',
  'w1:garbage w2',
  {
    rules: { pausesOnFailure: true },
    faults: 0,
  },
);
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
const pinned = configure('1 worker that the policy pins to its old version', 'w1=');
const heldController = configure('1 controller that is held, 1 worker', 'c1^ w1', {
  rules: { leavesOutHeld: true },
  faults: 0,
});
const triedOnce = configure(
  '1 worker, the new binary cannot run, the policy allows 1 attempt',
  'w1:garbage',
  {
    rules: { retry: { attempts: 1, backoffMs: 1000 } },
    times: A_MOMENT_LATER,
    faults: 0,
  },
);

const beforePlan = configure('1 worker with a Job before the plan', 'w1', {
  rules: { hooks: ['beforePlan'] },
  faults: 0,
});
const afterPlan = configure('1 worker with a Job after the plan', 'w1', {
  rules: { hooks: ['afterPlan'] },
  faults: 0,
});
/** The plan has the version that already runs, so that nothing changes except in the roll-back to the version before. */
const goesBack = configure('1 controller, 1 worker, the completed plan is rolled back', 'c1 w1', {
  wayBack: 'once it has ended',
  startsUpgraded: true,
  leaders: 'one',
  faults: 0,
});
const turnedWhileDrained = configure(
  '1 upgraded controller, 1 worker, the plan is rolled back when the worker reports ApplyingUpdate',
  'c1 w1',
  {
    startsAtWorkers: true,
    wayBack: 'at any moment',
    turnsBack: { node: 'w1', phase: 'ApplyingUpdate', by: 'replacement' },
    leaders: 'one',
    faults: 0,
  },
);
const failsAgain = configure(
  '2 workers, 1 of them has failed, the leader rolls the other one back, 1 fault',
  'w1 w2:garbage',
  {
    rules: { rollsBackOnFailure: true },
    startsUpgraded: true,
    leaders: 'one',
    times: A_MOMENT_LATER,
  },
);

const takenOver = configure(
  "1 worker, taken over from k0s's own leader, the id of the plan is edited",
  'w1',
  {
    takenOver: true,
    controls: ['editId'],
    faults: 0,
  },
);

const unaware = { leader: leaders.ignoresForeignWork };
const random = { leader: leaders.randomChoiceAfterLostWrite };

export const MISTAKES: readonly Mistake[] = [
  mistake(
    'the leader trusts its cache and does not read the plan again before it writes',
    twoCommands,
    { leader: leaders.onStaleView },
    'no-signal-for-what-is-done',
  ),
  mistake(
    'the leader sends a signal before the plan records the intent',
    mixed,
    { leader: leaders.signalBeforeIntent },
    'intent-before-signal',
  ),
  mistake(
    'the leader chooses any target, and continues although no answer confirms the record',
    controllers,
    random,
    'signals-within-slots',
  ),
  mistake(
    'the leader chooses any target, and continues although no answer confirms the record',
    controllers,
    random,
    'one-controller-in-motion',
  ),
  mistake(
    'the leader chooses any target, and continues although no answer confirms the record',
    workers,
    random,
    'concurrent-workers',
  ),
  mistake(
    'the leader starts workers without a limit',
    workers,
    { leader: leaders.withoutLimit },
    'concurrent-workers',
  ),
  mistake(
    "the leader compares a signal of k0s's own leader only with the id of the plan",
    takenOver,
    { leader: leaders.knowsOnlyTheId },
    'one-signal-per-attempt',
  ),
  mistake(
    'the leader asks every waiting node to download before its turn',
    ahead,
    { leader: leaders.asksEveryone },
    'ahead-within-slots',
  ),
  mistake(
    'the leader starts workers before all controllers are done',
    mixed,
    { leader: leaders.stagesInAnyOrder },
    'controllers-before-workers',
  ),
  mistake(
    'the leader ignores the work that nodes still do for a replaced plan',
    replaced,
    unaware,
    'signals-within-slots',
  ),
  mistake(
    'the leader treats a node that reports Restart as done',
    controllers,
    { leader: leaders.doneTooEarly },
    'done-runs-it',
  ),
  mistake(
    'the leader ends a plan with allowed failures as Completed',
    mayFail,
    { leader: leaders.forgetsFailures },
    'completed-is-done',
  ),
  mistake(
    'the leader never sends a signal',
    single,
    { leader: leaders.neverSignals },
    EVERY_RUN_ENDS,
  ),
  mistake(
    'the agent skips the trial run of the new binary',
    garbage,
    { afterStep: hosts.noTrialRun },
    'runnable-binary',
  ),
  mistake(
    'the agent does not keep the previous binary',
    single,
    { afterStep: hosts.previousIsNotKept },
    'way-back',
  ),
  mistake(
    'the agent downloads a binary again although the file is already staged',
    single,
    { afterStep: hosts.downloadsAnew },
    'downloaded-once',
  ),
  mistake(
    'the agent stops the service during a roll-back although the new binary never ran',
    single,
    { afterStep: hosts.rollsBackRoughly },
    'rolled-back-rests',
  ),
  mistake(
    'the leader cordons a node and continues without a drain',
    single,
    { leader: leaders.drainsNobody },
    'emptied-before-swap',
  ),
  mistake(
    'the agent reports a finished drain without evicting any pod',
    alone,
    { afterStep: hosts.evictsNobody },
    'emptied-before-swap',
  ),
  mistake(
    "the agent does not check whether k0s's own agent runs",
    besideKnown,
    { ownAgentFacts: hosts.asksNobody },
    'one-agent-acts',
  ),
  mistake(
    "the agent downloads before its turn although k0s's own agent may run",
    besideDoubtful,
    { placeToFetch: hosts.fetchesBeside },
    'one-agent-acts',
  ),
  mistake(
    'the leader also removes cordons that somebody else set',
    closed,
    { leader: leaders.liftsAnyCordon },
    'closed-by-others',
  ),
  mistake(
    'the leader removes its cordon only together with an answer to the agent',
    aborted,
    { leader: leaders.neverTidies },
    'no-cordon-left',
  ),
  mistake(
    'the leader ends an aborted plan without cancelling the signals',
    aborted,
    { leader: leaders.abandons },
    'nothing-half-done',
  ),
  mistake(
    'the leader uncordons a node as soon as the node reports Restart',
    single,
    { leader: leaders.liftsTooEarly },
    'closed-while-swapped',
  ),
  mistake(
    'the leader starts all waves at the same time',
    inWaves,
    { leader: leaders.knowsNoWaves },
    'waves-in-turn',
  ),
  mistake(
    'the leader starts a wave without waiting for the approval',
    unapproved,
    { leader: leaders.asksForNoApproval },
    'approved-before-start',
  ),
  mistake(
    'the leader allows any number of failures',
    firstFails,
    { leader: leaders.allowsAnyFailure },
    'failures-stop-waves',
  ),
  mistake(
    'the leader ends a plan that must pause after a failure',
    pausing,
    { leader: leaders.endsAtFailure },
    'pauses-on-failure',
  ),
  mistake(
    'a leader that sees no Job creates a Job with another name',
    before,
    { leader: leaders.namesJobsAnew },
    'one-job-per-attempt',
  ),
  mistake(
    'the leader does not wait for the end of a Job',
    before,
    { leader: leaders.awaitsNoJob },
    'job-before-drain',
  ),
  mistake(
    'the leader treats a running Job as succeeded',
    between,
    { leader: leaders.awaitsNoJob },
    'job-before-work',
  ),
  mistake(
    'the leader ignores the hooks of the policy',
    between,
    { leader: leaders.runsNoHooks },
    'job-before-work',
  ),
  mistake(
    'the leader ignores the hooks of the policy',
    after,
    { leader: leaders.runsNoHooks },
    'job-before-done',
  ),
  mistake('the leader ignores holds', held, { leader: leaders.seesNoHolds }, 'held-never-starts'),
  mistake(
    'the leader ignores the pins of the policy',
    pinned,
    { leader: leaders.readsNoPins },
    'pinned-never-starts',
  ),
  mistake(
    'the leader continues without a held controller',
    heldController,
    { leader: leaders.leavesOutControllers },
    'no-worker-past-a-controller',
  ),
  mistake(
    'the leader makes one attempt more than the policy allows',
    triedOnce,
    { leader: leaders.triesOnceMore },
    'attempts-within-policy',
  ),
  mistake(
    'the leader does not wait for the end of a Job',
    beforePlan,
    { leader: leaders.awaitsNoJob },
    'job-before-plan',
  ),
  mistake(
    'a leader that sees no Job creates a Job with another name',
    beforePlan,
    { leader: leaders.namesJobsAnew },
    'one-job-per-plan',
  ),
  mistake(
    'the leader creates the Job after the plan when the plan begins',
    afterPlan,
    { leader: back.runsHooksAfterPlanFirst },
    'end-before-job',
  ),
  mistake(
    'the leader rolls the controllers back before the workers',
    goesBack,
    { leader: back.controllersGoBackFirst },
    'workers-back-first',
  ),
  mistake(
    'the leader rolls the controllers back before the workers',
    goesBack,
    { leader: back.controllersGoBackFirst },
    'no-worker-newer',
  ),
  mistake(
    'the leader ignores a completed worker that the roll-back plan does not list',
    turnedWhileDrained,
    { leader: back.seesItsOwnWorkersOnly },
    'no-worker-newer',
  ),
  mistake(
    'the leader records a target of a roll-back as done as soon as the target starts',
    goesBack,
    { leader: back.backTooEarly },
    'back-runs-it',
  ),
  mistake(
    'the leader rolls back a failed roll-back',
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
