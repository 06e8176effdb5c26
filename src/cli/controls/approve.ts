/** Implements `refit approve PLAN --wave` and `refit accept`: writes what a person decided about a run into its NodeRollout. */

import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { type Place, placeOf } from '../../engine/contract/node-rollout-place.ts';
import { answered } from '../../engine/model/asked.ts';
import {
  acceptanceOf,
  acceptancesIn,
  approvalOf,
  approvalsIn,
  type DecisionsOfPeople,
  runOf,
} from '../../engine/model/decisions-of-people.ts';
import { isFinal, targetsIn } from '../../engine/model/rollout.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { wavesOf } from '../../engine/schedule/waves.ts';
import { isConflict, isNotFound } from '../../kube/status-error.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError, unlessError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { type Inspection, shownAt } from '../status/observe.ts';
import { refOf } from '../status/plan-names.ts';
import { inSession, type Session, type SessionParts } from '../status/status-session.ts';
import { stateOf, titleOf } from '../status/text.ts';
import { askUserName } from '../user-name.ts';
import {
  type ControlFlags,
  choosePlan,
  inspectPlans,
  say,
  withLeaderNotes,
} from './control-command.ts';
import { dryRunLines } from './dry-run.ts';

interface DecisionFlags extends ControlFlags {
  readonly reason?: string;
}
export interface ApproveWaveFlags extends DecisionFlags {
  /** The number of the wave; the first wave is 1. */
  readonly wave: number;
}
export interface AcceptFlags extends DecisionFlags {
  /** The name of the health check. */
  readonly check: string;
}

type Spec = NodeRollout['spec'];
type Entry = Readonly<Record<'by' | 'at' | 'run', string>> & { readonly reason?: string };

/** A decision of a user that a command writes about one plan. */
interface Decision {
  /** Throws REFIT_CONTROL if the decision makes no sense for the plan. */
  check(plan: Inspection): void;
  /** Returns true if the NodeRollout has the decision already. */
  isIn(spec: Partial<Spec>, plan: Inspection, now: number): boolean;
  /** Returns the changed list of the spec. The entry replaces an earlier one about the same wave or check; all other entries stay. */
  write(spec: Partial<Spec>, entry: Entry): Partial<Spec>;
  /** The decision as words that follow the title of the plan in a sentence. */
  readonly words: string;
}

/**
 * The maximum number of attempts to write a decision. The leader often writes to the NodeRollout, so several writes may
 * conflict.
 */
const MAX_TRIES = 10;

/** Approves a wave of the plan that the user named. Resolves even if it was approved before. */
export async function approveWave(flags: ApproveWaveFlags, parts: SessionParts): Promise<void> {
  const { wave } = flags;
  await decide(flags, parts, {
    words: `wave ${wave} is approved`,
    check: (plan) => assertNeedsApproval(plan, wave),
    isIn: ({ approvals }, { snapshot }) =>
      approvalOf({ approvals: approvalsIn(approvals) }, snapshot.rollout, wave) !== undefined,
    write: ({ approvals = [] }, entry) => ({
      approvals: [...approvals.filter((each) => each.wave !== wave), { wave, ...entry }],
    }),
  });
}

/** Accepts that a health check fails. Resolves even if that was accepted before. */
export async function accept(flags: AcceptFlags, parts: SessionParts): Promise<void> {
  const { check } = flags;
  await decide(flags, parts, {
    words: `the health check ${check} may fail`,
    check: (plan) => assertIsCheck(plan, check),
    isIn: ({ accepted }, { snapshot }, now) =>
      acceptanceOf({ accepted: acceptancesIn(accepted) }, runOf(snapshot.rollout), check, now) !==
      undefined,
    write: ({ accepted = [] }, entry) => ({
      accepted: [...accepted.filter((each) => each.check !== check), { check, ...entry }],
    }),
  });
}

async function decide(flags: DecisionFlags, parts: SessionParts, decision: Decision) {
  const { clock } = parts;
  await inSession(flags, parts, 'refit-control', async (session) => {
    const now = clock.now();
    const plan = await planFor(session, flags.plan, now);
    decision.check(plan);
    const by = await askUserName(session);
    const said = [
      ...(await record(session, plan, decision, { flags, by, now })),
      ...dryRunLines(flags),
    ];
    say(parts, await withLeaderNotes(said, session, shownAt(plan, now), now));
  });
}

/**
 * Resolves with the plan that the user named. Rejects with REFIT_CONTROL if the plan has nothing left to decide. A plan
 * that failed has: once a failed node is tried again, the same run continues, and the decision counts for it.
 */
async function planFor(session: Session, named: string | undefined, now: number) {
  const plan = choosePlan(await inspectPlans(session, named, now), named);
  const { snapshot } = plan;
  const view = shownAt(plan, now);
  const { abort } = snapshot.plan.controls;
  const state = abort === undefined ? stateOf(view) : `was aborted (${abort})`;
  const isOver = isFinal(snapshot.rollout) && !maybeContinued(plan);
  if (abort !== undefined || isOver)
    throw new RefitError('REFIT_CONTROL', `${titleOf(view)} ${state}: nothing is left to decide`);
  return plan;
}

/** Returns true if the plan has ended with failed nodes, and `refit retry` for one of them continues the same run. */
function maybeContinued({ texts, snapshot: { rollout } }: Inspection): boolean {
  const hasFailed = rollout.phase === 'failed' && targetsIn(rollout, 'failed').length > 0;
  return hasFailed && texts.advice.retry !== undefined;
}

interface Circumstances {
  readonly flags: DecisionFlags;
  readonly by: string;
  readonly now: number;
}

/** Writes the decision unless the NodeRollout has it. Resolves with the sentences to print. */
async function record(
  { client, abort }: Session,
  plan: Inspection,
  decision: Decision,
  { flags: { dryRun, reason }, by, now }: Circumstances,
): Promise<string[]> {
  const title = titleOf(shownAt(plan, now));
  const place = placeFor(plan, title);
  const { namespace, name } = place;
  const why = reason?.trim() || undefined;
  const { rollout } = plan.snapshot;
  const entry = { by, at: rfc3339(now), run: runOf(rollout), ...(why ? { reason: why } : {}) };
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const object = await read(client.get(nodeRollouts, name, { namespace, abort }), place);
    const { spec, metadata } = object;
    // Nothing is written while the NodeRollout still describes a former plan with the same name. The leader will remove
    // the decisions about the former plan, and would remove this entry as well.
    if (spec.plan.uid !== rollout.source.uid)
      throw new RefitError(
        'REFIT_CONTROL',
        `the NodeRollout ${namespace}/${name} still describes an earlier plan with this name: run this again when the leader has seen the new plan`,
      );
    if (decision.isIn(spec, plan, now))
      return [`${title}: ${decision.words} already.`, ...effects(plan, spec, now)];
    const change = decision.write(spec, entry);
    const said = [
      `${title}: ${decision.words}, by ${by}${why === undefined ? '' : `: ${why}`}.`,
      ...effects(plan, { ...spec, ...change }, now),
    ];
    if (dryRun === 'client') return said;
    const patch = { metadata: { resourceVersion: metadata.resourceVersion }, spec: change };
    const options = { type: 'merge', dryRun: dryRun === 'server', namespace, abort } as const;
    const writing = client.patch(nodeRollouts, name, patch, options);
    if ((await unlessError(isConflict)(writing)) !== undefined) return said;
  }
  throw new RefitError(
    'REFIT_CONTROL',
    `the NodeRollout ${namespace}/${name} changed during each attempt, so nothing was written: run this again`,
  );
}

function placeFor({ dialect, plan }: Inspection, title: string): Place {
  const place = placeOf(dialect, plan);
  if (place !== undefined) return place;
  throw new RefitError(
    'REFIT_CONTROL',
    `${title} has no NodeRollout, so the decision cannot be recorded`,
  );
}

async function read(reading: Promise<NodeRollout>, { namespace, name }: Place) {
  const object = await unlessError(isNotFound)(reading);
  if (object !== undefined) return object;
  throw new RefitError('REFIT_CONTROL', `there is no NodeRollout ${namespace}/${name}`, {
    hint: 'the leader of the plan creates it; if the cluster lacks the kind NodeRollout, apply the definitions that `refit install controller` prints',
  });
}

/** Returns what the plan does next with these decisions. */
function effects(plan: Inspection, spec: Partial<Spec>, now: number): string[] {
  const decisions: DecisionsOfPeople = {
    plan: refOf(plan),
    place: '',
    exists: true,
    approvals: approvalsIn(spec.approvals),
    accepted: acceptancesIn(spec.accepted),
  };
  const { rollout } = plan.snapshot;
  if (isFinal(rollout)) {
    const [first] = targetsIn(rollout, 'failed');
    return first === undefined
      ? []
      : [
          `The plan has failed, and starts no node by itself. To continue it: refit retry ${first.name}`,
        ];
  }
  const known = { ...plan.snapshot.plan, decisions: answered(decisions) };
  const snapshot = { ...plan.snapshot, plan: known };
  const { next } = shownAt({ ...plan, snapshot }, now);
  return next.length > 0 ? [`Next: ${listed(next)}.`] : [];
}

/** Throws REFIT_CONTROL if there is no such wave, or if it needs no approval. */
export function assertNeedsApproval(
  { snapshot, policy }: Pick<Inspection, 'snapshot' | 'policy'>,
  wave: number,
): void {
  const of = ofPolicy(policy);
  if (policy.waves === undefined)
    throw new RefitError('REFIT_CONTROL', `the plan has no waves, because ${of} has none`);
  const waves = wavesIn(snapshot, policy);
  const sentence = waves.map((needs, at) => `${at + 1}${needs ? ' (needs approval)' : ''}`);
  if (wave > waves.length)
    throw new RefitError(
      'REFIT_CONTROL',
      `--wave is ${wave}, but the waves of ${of} are ${listed(sentence, waves.length)}`,
    );
  if (waves[wave - 1] !== true)
    throw new RefitError(
      'REFIT_CONTROL',
      `wave ${wave} needs no approval; the waves of ${of} are ${listed(sentence, waves.length)}`,
    );
  const isEmpty = snapshot.rollout.stages.every(
    (stage) => (wavesOf({ snapshot, policy }, stage)?.members[wave - 1] ?? []).length === 0,
  );
  if (isEmpty)
    throw new RefitError(
      'REFIT_CONTROL',
      `wave ${wave} of ${of} has no node of this plan, so no node waits for its approval; nodes of the control plane are in no wave`,
    );
}

/**
 * Returns for each wave, in order, whether it needs approval. If nodes that no rule selects form a wave, it is the last
 * wave.
 */
function wavesIn(snapshot: Snapshot, policy: RolloutPolicy): boolean[] {
  const { waves = [] } = policy;
  const counts = snapshot.rollout.stages.map(
    (stage) => wavesOf({ snapshot, policy }, stage)?.members.length ?? 0,
  );
  const count = Math.max(waves.length, ...counts);
  return Array.from({ length: count }, (_, index) => waves[index]?.needsApproval === true);
}

/** Throws REFIT_CONTROL if the policy has no health check with this name. */
export function assertIsCheck({ policy }: Pick<Inspection, 'policy'>, check: string): void {
  const names = (policy.health?.checks ?? []).map(({ name }) => name);
  if (names.includes(check)) return;
  const others = names.length === 0 ? 'it has none' : `it has ${listed(names, names.length)}`;
  throw new RefitError(
    'REFIT_CONTROL',
    `--check is ${JSON.stringify(check)}, which is no health check of ${ofPolicy(policy)}: ${others}`,
  );
}

function ofPolicy({ name }: RolloutPolicy): string {
  return name === undefined ? 'its policy' : `UpgradePolicy ${name}`;
}
