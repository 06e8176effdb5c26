/** Shows what each order writes on a plan, what it says, and what it refuses; giving it again changes nothing. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/builders/policies.ts';
import { later, MINUTE, T0 } from '../../../test/builders/times.ts';
import { buildLooking, recorded, signalled, statusOf } from '../../../test/builders/views.ts';
import { buildWorld } from '../../../test/builders/worlds.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { autopilot } from '../../dialects/autopilot/dialect.ts';
import { CORDON_ANNOTATION } from '../../drain/marks.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION, RETRY_ANNOTATION } from '../../engine/model/controls.ts';
import type { Node } from '../../kube/types.ts';
import { RefitError } from '../../util/errors.ts';
import { inspect, viewAt } from '../status/observe.ts';
import { abort } from './abort.ts';
import type { Decide, Order } from './control.ts';
import { pause, resume } from './pause.ts';
import { retry } from './retry.ts';

const NOW = T0 + 10 * MINUTE;
const NAMES = ['w1', 'w2', 'w3', 'w4'];
const workers = { ...listed(...NAMES), limits: { concurrent: 3 } };
const ATTEMPT = later(MINUTE);

interface Situation {
  readonly state?: string;
  /** By name; the others are pending. */
  readonly states?: Readonly<Record<string, string>>;
  /** By name, of a second command; there is none where absent. */
  readonly further?: Readonly<Record<string, string>>;
  /** What nodes say; nothing where absent. */
  readonly says?: Readonly<Record<string, string>>;
  /** Who cordoned them: uid of a plan, or '' for nobody we know. */
  readonly cordons?: Readonly<Record<string, string>>;
  /** Without a Node. */
  readonly gone?: string;
  readonly controls?: Readonly<Record<string, string>>;
  readonly isPolicyPaused?: boolean;
}

function nodeOf(name: string, { says = {}, cordons = {} }: Situation): Node {
  const [said, owner] = [says[name], cordons[name]];
  const node = owner === undefined ? buildNode(name) : { ...buildNode(name), spec: { unschedulable: true } };
  const mine = owner ? { [CORDON_ANNOTATION]: `${owner}/${ATTEMPT}` } : {};
  const owned = { ...node, metadata: { ...node.metadata, annotations: mine } };
  if (said === undefined) return owned;
  const status = said === '' ? {} : { status: said, timestamp: later(2 * MINUTE) };
  return signalled(owned, { created: ATTEMPT, ...status });
}

async function give(decide: Decide, situation: Situation): Promise<Order | string> {
  const { state = 'SchedulableWait', states = {}, further, controls, isPolicyPaused = false } = situation;
  const all = Object.fromEntries(NAMES.map((name) => [name, states[name] ?? 'SignalPending']));
  const command = { k0supdate: buildUpdate({ targets: { workers } }) };
  const status = statusOf(state, [], recorded(all, later(3 * MINUTE)));
  const second = further && { id: 1, state, k0supdate: { workers: recorded(further, later(3 * MINUTE)) } };
  const bare = second
    ? buildPlan({ commands: [command, command] }, { ...status, commands: [...status.commands, second] })
    : buildPlan({ commands: [command] }, status);
  const plan: Plan = { ...bare, metadata: { ...bare.metadata, ...(controls ? { annotations: controls } : {}) } };
  const world = buildWorld(
    [],
    NAMES.filter((name) => name !== situation.gone).map((name) => nodeOf(name, situation)),
  );
  const looking = buildLooking({}, isPolicyPaused ? [buildUpgradePolicy('nightly', { paused: true })] : []);
  const inspection = await inspect(autopilot, plan, world, looking, NOW);
  try {
    return decide({ ...inspection, view: viewAt(inspection, NOW) }, NOW);
  } catch (error) {
    if (error instanceof RefitError && error.code === 'REFIT_ORDER') return error.message;
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
const FINISHING = 'Under way, and finishing: w1 is at Restart (for 8 min).';
const UNTIL = 'Nothing new starts until `refit resume`.';

test.each<[string, Decide, Situation, Order | string]>([
  [
    'pause',
    pause,
    MOVING,
    { annotations: { [PAUSE_ANNOTATION]: later(10 * MINUTE) }, said: [`${PLAN} is paused.`, FINISHING, UNTIL] },
  ],
  ['pause, again', pause, { ...MOVING, controls: PAUSED }, { said: [`${PLAN} is paused already.`, FINISHING, UNTIL] }],
  ['pause what is over', pause, OVER, `${PLAN} is done: nothing is left to pause`],
  [
    'resume',
    resume,
    { controls: PAUSED },
    { annotations: { [PAUSE_ANNOTATION]: null }, said: [`${PLAN} goes on.`, 'Next: w1, w2, w3.'] },
  ],
  ['resume what is not paused', resume, {}, { said: [`${PLAN} is not paused.`, 'Next: w1, w2, w3.'] }],
  [
    'resume what its policy pauses, too',
    resume,
    { controls: PAUSED, isPolicyPaused: true },
    {
      annotations: { [PAUSE_ANNOTATION]: null },
      said: [
        `${PLAN} goes on.`,
        'UpgradePolicy nightly is paused too: nothing starts until spec.paused of it is false.',
        'Next: w1, w2, w3.',
      ],
    },
  ],
  ['resume what is over', resume, OVER, { said: [`${PLAN} is done: nothing is left to start.`] }],
  [
    'resume what was aborted',
    resume,
    { controls: ABORTED },
    `${PLAN} was aborted (wrong), which no resume takes back: delete the plan, and apply it again`,
  ],
])('%s', async (_name, decide, situation, order) => {
  expect(await give(decide, situation)).toEqual(order);
});

const ENDS = 'The plan ends as failed once nothing is under way any more.';
const BUSY: Situation = {
  states: { w1: 'SignalSent', w2: 'SignalSent', w3: 'SignalSent' },
  says: { w1: 'Downloading', w2: 'Cordoning', w3: 'Restart' },
  cordons: { w2: 'plan-uid' },
};

test.each<[string, Situation, Order | string]>([
  [
    'what is not begun on its node is taken back, and its cordon; the rest finishes',
    BUSY,
    {
      annotations: { [ABORT_ANNOTATION]: 'wrong release' },
      said: [
        `${PLAN} is aborted: wrong release.`,
        'Taken back: the signal of w1, w2.',
        'Lifted: the cordon of w2.',
        'Under way, and finishing: w3 is at Restart (for 8 min).',
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
        'Taken back: the signal of w1, w2.',
        'Under way, and finishing: w3 is at Restart (for 8 min).',
        ENDS,
      ],
    },
  ],
  [
    'one that is recorded and not signalled yet is not begun',
    { states: { w1: 'SignalSent' } },
    {
      annotations: { [ABORT_ANNOTATION]: 'wrong release' },
      said: [`${PLAN} is aborted: wrong release.`, 'Nothing is under way.', 'The plan ends as failed.'],
    },
  ],
  [
    'again, with another reason: the first one counts',
    { ...MOVING, controls: ABORTED },
    { said: [`${PLAN} is being aborted already (wrong).`, FINISHING, ENDS] },
  ],
  [
    'once it is over',
    { state: 'ApplyFailed', controls: ABORTED },
    { said: [`${PLAN} was aborted already (wrong), and is over.`] },
  ],
  ['what was over before', OVER, `${PLAN} is done: nothing is left to abort`],
])('abort: %s', async (_name, situation, order) => {
  expect(await give(abort('wrong release'), situation)).toEqual(order);
});

const FAILED: Situation = { state: 'ApplyFailed', states: { w1: 'SignalApplyFailed' }, says: { w1: 'FailedDownload' } };
const AGAIN = `w1 of ${PLAN} is tried again.`;
const TURN = 'It waits for its turn and its gates like any other.';
/** When the failure was recorded. */
const AT = later(3 * MINUTE);

test.each<[string, string, Situation, Order | string]>([
  ['a node that failed', 'w1', FAILED, { annotations: { [RETRY_ANNOTATION]: `w1@${AT}` }, said: [AGAIN, TURN] }],
  [
    'again',
    'w1',
    { ...FAILED, controls: { [RETRY_ANNOTATION]: `w1@${AT}` } },
    { said: ['w1 is to be tried again already.', TURN] },
  ],
  [
    'after it failed once more, and beside the retry of another one',
    'w1',
    { ...FAILED, controls: { [RETRY_ANNOTATION]: `w1@${later(0)},w2@${later(0)}` } },
    { annotations: { [RETRY_ANNOTATION]: `w2@${later(0)},w1@${AT}` }, said: [AGAIN, TURN] },
  ],
  [
    'while another one has failed, and the plan is paused',
    'w1',
    { ...FAILED, states: { w1: 'SignalApplyFailed', w2: 'SignalApplyFailed' }, controls: PAUSED },
    {
      annotations: { [RETRY_ANNOTATION]: `w1@${AT}` },
      said: [AGAIN, TURN, 'Still failed: w2.', 'The plan is paused: nothing starts until that is taken back.'],
    },
  ],
  [
    'whose agent is still at work',
    'w1',
    { ...FAILED, says: { w1: 'Restart' } },
    {
      annotations: { [RETRY_ANNOTATION]: `w1@${AT}` },
      said: [AGAIN, 'Its agent is still at work: it goes again once that has come to its end.'],
    },
  ],
  [
    'one that a later command has brought further',
    'w1',
    { ...FAILED, state: 'Completed', further: { w1: 'SignalCompleted' } },
    `a later command of ${PLAN} has brought w1 further since it failed`,
  ],
  ['one that waits', 'w2', FAILED, `w2 of ${PLAN} has not failed: it is pending`],
  ['one that is under way', 'w1', MOVING, `w1 of ${PLAN} has not failed: it is at Restart`],
  ['one that is done', 'w1', OVER, `w1 of ${PLAN} has not failed: it is done`],
  [
    'one whose failure nobody has recorded',
    'w1',
    { ...FAILED, state: 'SchedulableWait', states: { w1: 'SignalSent' } },
    `w1 of ${PLAN} has not failed: it is about to be recorded as failed, ask again then`,
  ],
  [
    'one that is gone',
    'w1',
    { ...FAILED, says: {}, gone: 'w1' },
    'w1 is gone: there is no such node; order it once w1 is back',
  ],
  ['one that is none of its targets', 'w9', FAILED, `${PLAN} has no w9 among its targets`],
  [
    'one of a plan that was aborted',
    'w1',
    { ...FAILED, controls: ABORTED },
    `${PLAN} was aborted, so no node of it goes on: delete the plan, and apply it again`,
  ],
])('retry %s', async (_name, node, situation, order) => {
  expect(await give(retry(node), situation)).toEqual(order);
});
