/** Finds out to which plan, run and attempt a signal belongs, whoever sent it. */
import type { Role, Rollout, Source, Stage } from '../../engine/model/rollout.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { SignalData } from '../../signal/annotations.ts';
import { ROLLOUT_ANNOTATION } from '../../signal/names.ts';
import { kindOf } from './stage-command.ts';

/** The part of a plan that its signals contain or that its record proves. */
export interface SignallingPlan {
  readonly source: Pick<Source, 'uid' | 'created' | 'isEdited'>;
  readonly id: string;
  /** The id that the plan has now, if it was edited. A leader of another product uses this id. */
  readonly editedId?: string | undefined;
  /** What the plan records of its targets. */
  readonly stages: readonly RecordedStage[];
}
type RecordedStage = Pick<Stage, 'command' | 'procedure' | 'role' | 'targets'>;

/** A run of a plan. */
interface SignallingRun extends SignallingPlan {
  readonly run?: number | undefined;
}
type Sent = Pick<SignalData, 'created' | 'planId' | 'command'>;

/** Returns true if the signal on the object of this role belongs to this run of the plan. */
export function belongs(
  object: KubeObject,
  signal: Sent,
  rollout: SignallingRun,
  role: Role,
): boolean {
  // A signal from a leader of another product names no run. It belongs to the first run, which has no number.
  return (
    isOfPlan(object, signal, rollout, role) && originOf(object, signal)?.run === textOfRun(rollout)
  );
}

/** Returns true if the signal on the object of this role belongs to any run of the plan. */
export function isOfPlan(
  object: KubeObject,
  signal: Sent,
  plan: SignallingPlan,
  role: Role,
): boolean {
  const origin = originOf(object, signal);
  // A signal of Refit contains the uid of the Plan, so a reused or edited plan id makes no difference. The `since` of
  // the target is not compared: a leader with an outdated cache may have recorded a newer intent, and a node in
  // progress must not start again.
  if (origin) return origin.uid === plan.source.uid;
  // A signal from k0s's own leader contains no uid, but the id that the plan had at that time.
  if (!(Date.parse(signal.created) >= Date.parse(plan.source.created))) return false;
  if (signal.planId === plan.id || signal.planId === plan.editedId) return true;
  return isOfRecordedAttempt(object.metadata.name, signal, plan, role);
}

/**
 * Returns true if the plan has been edited since it was created, and records an attempt to which the signal belongs,
 * although the signal contains another plan id. The id may be what was edited, and one attempt must not get two
 * signals.
 *
 * The id of a plan that was never edited is the id of all its signals. So the signals of a deleted plan never count for
 * the plan that replaces it, even if the clock of the leader that sent them was fast.
 */
function isOfRecordedAttempt(
  name: string,
  { created, command }: Sent,
  { source, stages }: SignallingPlan,
  role: Role,
): boolean {
  if (source.isEdited !== true) return false;
  const target = stages
    .filter(
      (stage) =>
        stage.role === role && stage.command === command.id && kindOf(stage) === command.kind,
    )
    .flatMap(({ targets }) => targets)
    .find((each) => each.name === name);
  if (target === undefined) return false;
  // k0s's own leader sends a signal before it records the attempt, and may stop between the two. So a signal that is
  // newer than the record of a pending target is an attempt that no leader has recorded yet. An older signal belongs to
  // an attempt before a retry.
  return target.state !== 'pending' || Date.parse(created) >= Date.parse(target.since);
}

/**
 * Returns the plan and run that ROLLOUT_ANNOTATION names for the signal; undefined if it is absent or belongs to
 * another signal.
 */
export function originOf({ metadata }: KubeObject, { created }: Pick<Sent, 'created'>) {
  const origin = metadata.annotations?.[ROLLOUT_ANNOTATION];
  if (origin?.endsWith(`/${created}`) !== true) return undefined;
  const [uid, run] = origin.slice(0, -created.length - 1).split('/');
  return { uid, run };
}

export function originText(rollout: Pick<Rollout, 'source' | 'run'>, created: string): string {
  return [rollout.source.uid, textOfRun(rollout) ?? [], created].flat().join('/');
}

function textOfRun({ run }: Pick<Rollout, 'run'>): string | undefined {
  return run === undefined ? undefined : String(run);
}
