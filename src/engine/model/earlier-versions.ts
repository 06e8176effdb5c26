/**
 * The versions that nodes ran before a run of a plan. The leader recorded them in the NodeRollout. A Plan that rolls a
 * run back names that run in an annotation. Anybody who may write the Plan can write the annotation, so only the record
 * in the NodeRollout proves the earlier versions.
 */
import type { KubeObject } from '../../kube/resources.ts';
import { isText, recordsIn } from '../../util/json.ts';
import { isSameMinor, parseVersion } from '../../util/version.ts';
import { mayBePartOf } from '../../versions/release-parts.ts';
import { answerOf, isAwaited } from './asked.ts';
import type { EarlierRun, VersionBefore } from './earlier-runs.ts';
import type { TargetFacts } from './facts.ts';
import {
  type Role,
  type Rollout,
  type Stage,
  stagesBefore,
  type Target,
  withKubernetesVersion,
} from './rollout.ts';
import { qualifiedRunId } from './runs.ts';
import type { PlanFacts } from './snapshot.ts';

/** The annotation on a Plan that rolls a run back. Its value is `<uid of the plan>/<id of the run>`. */
export const ROLLS_BACK_ANNOTATION = 'upgrade.refit.dev/rolls-back';

/**
 * The annotation with the version to which a Plan rolls a run back. It tells whether the roll-back still counts on a Plan
 * that can get another version at any time.
 */
export const ROLLS_BACK_TO_ANNOTATION = 'upgrade.refit.dev/rolls-back-to';

/** The annotation that says, for people, who rolled back, and why. */
export const ROLLS_BACK_REASON_ANNOTATION = 'upgrade.refit.dev/rolls-back-reason';

/** Returns the run that the Plan rolls back, according to its annotation; undefined if the annotation names no run. */
export function rolledBackBy({ metadata }: KubeObject): string | undefined {
  const named = metadata.annotations?.[ROLLS_BACK_ANNOTATION];
  return named === undefined || named === '' ? undefined : named;
}

/**
 * Returns the text that says who rolls the run back, and why; undefined if the Plan does not say so. The text is only
 * for people.
 */
export function rollBackReasonOn({ metadata }: KubeObject): string | undefined {
  const said = metadata.annotations?.[ROLLS_BACK_REASON_ANNOTATION];
  return said === undefined || said === '' ? undefined : said;
}

/**
 * Returns the runs in this history that contain the versions that nodes ran before the run. `history` is the unchecked
 * value from the API server.
 */
export function earlierRunsIn(history: unknown): EarlierRun[] {
  return recordsIn(history).flatMap(({ id, planUid, before }) => {
    const entries = recordsIn(before).flatMap(entryOf);
    if (!isText(id) || !isText(planUid) || entries.length === 0) return [];
    return [{ run: qualifiedRunId({ planUid, id }), before: entries }];
  });
}

function entryOf(entry: Record<string, unknown>): VersionBefore[] {
  const { role, version, nodes, others } = entry;
  if (role !== 'controller' && role !== 'worker') return [];
  const named = Array.isArray(nodes) ? nodes.filter(isText) : [];
  return [{ role, ...(isText(version) ? { version } : {}), nodes: named, others: others === true }];
}

/**
 * Returns the version that the node ran before the run; undefined if the record does not contain it. An entry for all
 * other nodes counts only if `isMember` is true, because the entry does not say which nodes belonged to the run.
 */
export function versionBefore(
  { before }: Pick<EarlierRun, 'before'>,
  role: Role,
  name: string,
  isMember: boolean,
): string | undefined {
  const own = before.filter((entry) => entry.role === role);
  const named = own.find(({ nodes }) => nodes.includes(name));
  if (named !== undefined) return named.version;
  return isMember ? own.find(({ others }) => others)?.version : undefined;
}

interface Asking {
  readonly rollout: Pick<Rollout, 'rollsBack'>;
  readonly plan: Pick<PlanFacts, 'decisions'>;
}

/** Returns true while the plan says that it rolls a run back, and the leader has not read yet which versions nodes ran before that run. */
export function asksForEarlierVersions({ rollout, plan: { decisions } }: Asking): boolean {
  return rollout.rollsBack !== undefined && isAwaited(decisions);
}

interface Proof {
  readonly rollout: Pick<Rollout, 'rollsBack' | 'stages' | 'source'>;
  readonly plan: Pick<PlanFacts, 'decisions'>;
}

/**
 * Returns true if the record proves that the target goes back to exactly the version that it ran before. A controller goes back only
 * within its minor version, and only after all workers of the plan.
 */
export function goesBack(
  { rollout, plan: { decisions } }: Proof,
  stage: Stage,
  { name }: Pick<Target, 'name'>,
  { version: current, signalledBy }: Pick<TargetFacts, 'version' | 'signalledBy'>,
): boolean {
  const { rollsBack, source } = rollout;
  const run = answerOf(decisions)?.earlierRuns?.find((each) => each.run === rollsBack);
  if (rollsBack === undefined || run === undefined) return false;
  // The leader writes the uid of the plan to each node that it signals. If this plan has already signalled the node in
  // a failed attempt, the node has the uid of this plan.
  const isMember = signalledBy === rollsBack.split('/')[0] || signalledBy === source.uid;
  const before = versionBefore(run, stage.role, name, isMember);
  const { version } = withKubernetesVersion(stage);
  if (before === undefined || !mayBePartOf(before, version)) return false;
  if (stage.role === 'worker') return true;
  const from = parseVersion(current);
  const to = parseVersion(version);
  return (
    from !== undefined && to !== undefined && isSameMinor(from, to) && comesLast(rollout, stage)
  );
}

/** Returns true if neither this stage nor a later stage has a worker of the plan. */
function comesLast(rollout: Pick<Rollout, 'stages'>, stage: Stage): boolean {
  const earlier = new Set(stagesBefore(rollout, stage).map(({ id }) => id));
  return rollout.stages.every(
    ({ id, role, targets }) => role !== 'worker' || targets.length === 0 || earlier.has(id),
  );
}
