/** Shows what each control writes on a plan, what it prints, and what it refuses. A second call changes nothing. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { CORDON_ANNOTATION } from '../../drain/cordon-marks.ts';
import {
  ABORT_ANNOTATION,
  PAUSE_ANNOTATION,
  RETRY_ANNOTATION,
} from '../../engine/model/controls.ts';
import type { Node } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { HOLD_ANNOTATION } from '../../signal/holds.ts';
import { RefitError } from '../../util/errors.ts';
import { inspect, shownAt } from '../status/observe.ts';
import type { Control, PlanChange } from './control.ts';
import { abort, pause, pauseBecause, resume } from './pause-abort.ts';
import { retry } from './retry.ts';

const NOW = T0 + 10 * MINUTE;
const NAMES = ['w1', 'w2', 'w3', 'w4'];
const workers = { ...listed(...NAMES), limits: { concurrent: 3 } };
const ATTEMPT = later(MINUTE);

interface Situation {
  readonly state?: string;
  /** The states of the targets, by name. A target without an entry is pending. */
  readonly states?: Readonly<Record<string, string>>;
  /** The states of the targets of a second command, by name. If undefined, the plan has only one command. */
  readonly further?: Readonly<Record<string, string>>;
  /** Reports of nodes by name. A node without an entry reports nothing. */
  readonly says?: Readonly<Record<string, string>>;
  /** The owner of each cordon, by the name of its node: the uid of a plan, or '' if the owner is unknown. */
  readonly cordons?: Readonly<Record<string, string>>;
  /** Name of a node that reports a failed roll-back. */
  readonly broken?: string;
  /** Name of a target that has no Node. */
  readonly gone?: string;
  /** Name of a node that somebody holds. */
  readonly held?: string;
  readonly controls?: Readonly<Record<string, string>>;
  readonly isPolicyPaused?: boolean;
}

function nodeOf(name: string, { says = {}, cordons = {}, broken, held }: Situation): Node {
  const said = says[name];
  const owner = cordons[name];
  const node =
    owner === undefined ? buildNode(name) : { ...buildNode(name), spec: { unschedulable: true } };
  const mine = owner ? { [CORDON_ANNOTATION]: `${owner}/${ATTEMPT}` } : {};
  const hold = name === held ? { [HOLD_ANNOTATION]: JSON.stringify({ by: 'ann' }) } : {};
  const owned = { ...node, metadata: { ...node.metadata, annotations: { ...mine, ...hold } } };
  if (said === undefined) return owned;
  const status = said === '' ? {} : { status: said, timestamp: later(2 * MINUTE) };
  const report = broken === name ? encodeReport({ created: ATTEMPT, rolledBack: false }) : {};
  return signalled(owned, { created: ATTEMPT, ...status }, report);
}

async function give(control: Control, situation: Situation): Promise<PlanChange | string> {
  const {
    state = 'SchedulableWait',
    states = {},
    further,
    controls,
    isPolicyPaused = false,
  } = situation;
  const all = Object.fromEntries(NAMES.map((name) => [name, states[name] ?? 'SignalPending']));
  const command = { k0supdate: buildUpdate({ targets: { workers } }) };
  const status = statusOf(state, [], recorded(all, later(3 * MINUTE)));
  const second = further && {
    id: 1,
    state,
    k0supdate: { workers: recorded(further, later(3 * MINUTE)) },
  };
  const bare = second
    ? buildPlan(
        { commands: [command, command] },
        { ...status, commands: [...status.commands, second] },
      )
    : buildPlan({ commands: [command] }, status);
  const plan: Plan = {
    ...bare,
    metadata: { ...bare.metadata, ...(controls ? { annotations: controls } : {}) },
  };
  const world = buildWorld(
    [],
    NAMES.filter((name) => name !== situation.gone).map((name) => nodeOf(name, situation)),
  );
  const parts = buildViewParts(
    {},
    isPolicyPaused ? [buildUpgradePolicy('nightly', { paused: true })] : [],
  );
  const inspection = await inspect({ dialect: autopilot, world }, plan, parts, NOW);
  try {
    return control({ ...inspection, view: shownAt(inspection, NOW) }, NOW);
  } catch (error) {
    if (error instanceof RefitError && error.code === 'REFIT_CONTROL') return error.message;
    throw error;
  }
}

const PLAN = 'Plan autopilot (id1)';
const MOVING: Situation = { states: { w1: 'SignalSent' }, says: { w1: 'Restart' } };
const PAUSED = { [PAUSE_ANNOTATION]: 'true' };
const ABORTED = { [ABORT_ANNOTATION]: 'wrong' };
const OVER: Situation = {
  state: 'Completed',
  states: Object.fromEntries(NAMES.map((name) => [name, 'SignalCompleted'])),
};
const FINISHING = 'In progress, will finish: w1 Restart (8 min).';
const FIX =
  'Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run: refit retry w1';
const UNTIL = 'No new node starts until `refit resume`.';

test.each<[string, Control, Situation, PlanChange | string]>([
  [
    'pause',
    pause,
    MOVING,
    {
      annotations: { [PAUSE_ANNOTATION]: later(10 * MINUTE) },
      said: [`${PLAN} is paused.`, FINISHING, UNTIL],
    },
  ],
  [
    'pause, again',
    pause,
    { ...MOVING, controls: PAUSED },
    { said: [`${PLAN} is already paused.`, FINISHING, UNTIL] },
  ],
  [
    'pause with a reason',
    pauseBecause(' the database is moved\n'),
    MOVING,
    {
      annotations: { [PAUSE_ANNOTATION]: `${later(10 * MINUTE)} the database is moved` },
      said: [`${PLAN} is paused: the database is moved.`, FINISHING, UNTIL],
    },
  ],
  [
    'pause again, with the same reason',
    pauseBecause('why it is'),
    { ...MOVING, controls: { [PAUSE_ANNOTATION]: 'why it is' } },
    { said: [`${PLAN} is already paused: why it is.`, FINISHING, UNTIL] },
  ],
  [
    'pause again, with another reason',
    pauseBecause('now this'),
    { ...MOVING, controls: { [PAUSE_ANNOTATION]: `${later(0)} why` } },
    {
      annotations: { [PAUSE_ANNOTATION]: `${later(0)} now this` },
      said: [`${PLAN} is paused: now this.`, FINISHING, UNTIL],
    },
  ],
  ['pause what is over', pause, OVER, `${PLAN} is done: nothing is left to pause`],
  [
    'pause what was aborted, with a node in progress',
    pause,
    { ...MOVING, controls: ABORTED },
    `${PLAN} was aborted (wrong): nothing is left to pause`,
  ],
  [
    'resume',
    resume,
    { controls: PAUSED },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [`${PLAN} continues.`, 'Next: w1, w2, w3.'],
    },
  ],
  [
    'resume what is not paused',
    resume,
    {},
    { said: [`${PLAN} is not paused.`, 'Next: w1, w2, w3.'] },
  ],
  [
    'resume what its policy pauses, too',
    resume,
    { controls: PAUSED, isPolicyPaused: true },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [
        `${PLAN} continues.`,
        `Next: w1, w2, w3, when UpgradePolicy nightly is no longer paused (kubectl patch upgradepolicy nightly --type=merge -p '{"spec":{"paused":false}}').`,
      ],
    },
  ],
  [
    'resume while all slots are taken',
    resume,
    { states: { w1: 'SignalSent', w2: 'SignalSent', w3: 'SignalSent' }, controls: PAUSED },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [`${PLAN} continues.`, 'Next: w4, when a node in progress is done.'],
    },
  ],
  [
    'resume what has failed: what starts it again',
    resume,
    { state: 'ApplyFailed', states: { w1: 'SignalApplyFailed' }, controls: PAUSED },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [
        `${PLAN} has failed: no node starts.`,
        `${FIX}. If the release is bad: run refit upgrade VERSION, which replaces this Plan.`,
      ],
    },
  ],
  [
    'resume what is about to end, with nodes that will not start',
    resume,
    { states: { w1: 'SignalApplyFailed', w2: 'SignalSent' }, controls: PAUSED },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [
        `${PLAN} continues.`,
        'Now no node starts.',
        `${FIX}. If the release is bad: run refit abort, and refit upgrade VERSION once the Plan has ended.`,
      ],
    },
  ],
  [
    'resume what has only a held node left',
    resume,
    {
      states: { w1: 'SignalCompleted', w2: 'SignalCompleted', w3: 'SignalCompleted' },
      held: 'w4',
      controls: PAUSED,
    },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [`${PLAN} continues.`, 'w4 is held by ann (ends with refit unhold w4).'],
    },
  ],
  [
    'resume what has only a node left that was deleted',
    resume,
    {
      states: { w1: 'SignalCompleted', w2: 'SignalCompleted', w3: 'SignalCompleted' },
      gone: 'w4',
      controls: PAUSED,
    },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [`${PLAN} continues.`, 'Now no node starts: w4 does not exist as a worker.'],
    },
  ],
  ['resume what is over', resume, OVER, `${PLAN} is done: nothing is left to resume`],
  [
    'resume what is over and was paused: the pause is taken off',
    resume,
    { ...OVER, controls: PAUSED },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [`${PLAN} is done: no node is left to start.`],
    },
  ],
  [
    'resume what has failed and is not paused',
    resume,
    { state: 'ApplyFailed', states: { w1: 'SignalApplyFailed' } },
    `${PLAN} has failed: nothing is left to resume`,
  ],
  [
    'resume what was aborted',
    resume,
    { controls: ABORTED },
    `${PLAN} was aborted (wrong) and cannot be resumed; to start again: delete the Plan and apply it again`,
  ],
])('what pause and resume write and say: %s', async (_name, control, situation, change) => {
  expect(await give(control, situation)).toEqual(change);
});

const ENDS = 'The plan ends as failed when no node is in progress any more.';
const BUSY: Situation = {
  states: { w1: 'SignalSent', w2: 'SignalSent', w3: 'SignalSent' },
  says: { w1: 'Downloading', w2: 'Cordoning', w3: 'Restart' },
  cordons: { w2: 'plan-uid' },
};

test.each<[string, Situation, PlanChange | string]>([
  [
    'nodes that have not started are released and uncordoned; the others finish',
    BUSY,
    {
      annotations: { [ABORT_ANNOTATION]: 'wrong release' },
      said: [
        `${PLAN} is aborted: wrong release.`,
        'The leader cancels the signal of: w1, w2.',
        'The leader uncordons: w2.',
        'In progress, will finish: w3 Restart (8 min).',
        ENDS,
      ],
    },
  ],
  [
    "somebody else's cordon, and that of another plan, are not lifted",
    { ...BUSY, cordons: { w1: '', w2: 'another-uid' } },
    {
      annotations: { [ABORT_ANNOTATION]: 'wrong release' },
      said: [
        `${PLAN} is aborted: wrong release.`,
        'The leader cancels the signal of: w1, w2.',
        'In progress, will finish: w3 Restart (8 min).',
        ENDS,
      ],
    },
  ],
  [
    'one that is recorded and not signalled yet is not begun',
    { states: { w1: 'SignalSent' } },
    {
      annotations: { [ABORT_ANNOTATION]: 'wrong release' },
      said: [
        `${PLAN} is aborted: wrong release.`,
        'No node is in progress.',
        'The plan ends as failed.',
      ],
    },
  ],
  [
    'again, with another reason: the first one counts',
    { ...MOVING, controls: ABORTED },
    { said: [`${PLAN} is already being aborted (wrong).`, FINISHING, ENDS] },
  ],
  [
    'once it is over',
    { state: 'ApplyFailed', controls: ABORTED },
    { said: [`${PLAN} was already aborted (wrong) and has ended.`] },
  ],
  ['what was over before', OVER, `${PLAN} is done: nothing is left to abort`],
])('abort: %s', async (_name, situation, change) => {
  expect(await give(abort('wrong release'), situation)).toEqual(change);
});

const FAILED: Situation = {
  state: 'ApplyFailed',
  states: { w1: 'SignalApplyFailed' },
  says: { w1: 'FailedDownload' },
};
const AGAIN = `w1 of ${PLAN} will be tried again.`;
const TURN =
  'It starts when the nodes before it have started, its gates pass and the failure budget allows it.';
/** The time at which the failure was recorded. */
const AT = later(3 * MINUTE);

test.each<[string, string, Situation, PlanChange | string]>([
  [
    'a node that failed',
    'w1',
    FAILED,
    { annotations: { [RETRY_ANNOTATION]: `w1@${AT}` }, said: [AGAIN, TURN] },
  ],
  [
    'a node that has a retry already',
    'w1',
    { ...FAILED, controls: { [RETRY_ANNOTATION]: `w1@${AT}` } },
    { said: ['w1 already has a retry.', TURN] },
  ],
  [
    'a node that failed once more, beside the retry of another node',
    'w1',
    { ...FAILED, controls: { [RETRY_ANNOTATION]: `w1@${later(0)},w2@${later(0)}` } },
    { annotations: { [RETRY_ANNOTATION]: `w2@${later(0)},w1@${AT}` }, said: [AGAIN, TURN] },
  ],
  [
    'a node of a paused plan in which another node has failed',
    'w1',
    { ...FAILED, states: { w1: 'SignalApplyFailed', w2: 'SignalApplyFailed' }, controls: PAUSED },
    {
      annotations: { [RETRY_ANNOTATION]: `w1@${AT}` },
      said: [
        AGAIN,
        TURN,
        'Still failed: w2.',
        'The plan is paused: no node starts until it is resumed.',
      ],
    },
  ],
  [
    'whose agent is still at work',
    'w1',
    { ...FAILED, says: { w1: 'Restart' } },
    {
      annotations: { [RETRY_ANNOTATION]: `w1@${AT}` },
      said: [AGAIN, 'Its agent is still at work: the retry starts when the agent has finished.'],
    },
  ],
  [
    'one that a later command has brought further',
    'w1',
    { ...FAILED, state: 'Completed', further: { w1: 'SignalCompleted' } },
    `a later command of ${PLAN} has brought w1 to its version since it failed`,
  ],
  ['one that waits', 'w2', FAILED, `w2 of ${PLAN} has not failed: it is pending`],
  ['one that is under way', 'w1', MOVING, `w1 of ${PLAN} has not failed: it is at Restart`],
  ['one that is done', 'w1', OVER, `w1 of ${PLAN} has not failed: it is done`],
  [
    'one whose failure nobody has recorded',
    'w1',
    { ...FAILED, state: 'SchedulableWait', states: { w1: 'SignalSent' } },
    `w1 of ${PLAN} failed, but the leader has not recorded it yet: run this again in a few seconds`,
  ],
  [
    'one whose roll-back did not work, so that it keeps its slot',
    'w1',
    { ...FAILED, state: 'SchedulableWait', states: { w1: 'SignalSent' }, broken: 'w1' },
    `w1 of ${PLAN} failed, and its roll-back did not work: its service may still restart, so the node keeps its slot. Fix the node. Retry the node when it is not Ready or when its deadline has passed`,
  ],
  [
    'one that is gone',
    'w1',
    { ...FAILED, says: {}, gone: 'w1' },
    'there is no node w1; retry it when it is back',
  ],
  [
    'a plan whose policy has no hooks',
    'autopilot',
    FAILED,
    'autopilot is a plan, and its policy has no hook for the whole plan that could run again; for a failed node: refit retry NODE --plan autopilot',
  ],
  ['one that is none of its targets', 'w9', FAILED, `w9 is not a target of ${PLAN}`],
  [
    'one of a plan that was aborted',
    'w1',
    { ...FAILED, controls: ABORTED },
    `${PLAN} was aborted, so no node of it can be retried; to start again: delete the Plan and apply it again`,
  ],
])('retry %s', async (_name, node, situation, change) => {
  expect(await give(retry(node), situation)).toEqual(change);
});
