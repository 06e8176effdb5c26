/**
 * Provides what `refit rollback` needs for plans of every dialect: the choice of the plan and the run, the question to
 * the user, and a write that is repeated if it conflicts with a write of the leader.
 */
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { placeOf } from '../../engine/contract/node-rollout-place.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { failedChecks } from '../../engine/reasons/health-check.ts';
import { causeIn } from '../../engine/report/shown-failures.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { ifFound, isConflict } from '../../kube/status-error.ts';
import { failing, RefitError, unlessError } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { listed } from '../../util/phrases.ts';
import { isConfirmed } from '../confirm.ts';
import { isNamedRun, runNameIn, startedRunName } from '../history/run-names.ts';
import { type Inspection, inspect } from '../status/observe.ts';
import type { Session, SessionParts } from '../status/status-session.ts';
import { type ControlFlags, say } from './control-command.ts';

export interface RollBackFlags extends ControlFlags {
  readonly run?: string;
  /** The downloads, each in the form `<platform>=<value>`. */
  readonly url?: readonly string[];
  readonly sha256?: readonly string[];
  readonly image?: string;
  /** The nodes that stay at their version, although the run upgraded them. */
  readonly skipNode?: readonly string[];
  readonly reason?: string;
  readonly output?: 'text' | 'yaml';
  readonly yes?: boolean;
}

/** The flags of a roll-back that writes a Plan. The reason is stored in the Plan. */
export type ReasonedFlags = RollBackFlags & { readonly reason: string };

/**
 * The maximum number of attempts to write the plan. The leader often writes to the plan, so several writes may
 * conflict.
 */
const MAX_TRIES = 10;
const SEE_RUNS = 'see the runs with `refit history`';
const refuse = failing('REFIT_CONTROL');

/** Throws REFIT_CONTROL unless the plan has ended. */
export function refuseOpenPlan({
  snapshot: {
    rollout,
    plan: { controls },
  },
}: Inspection): void {
  if (isFinal(rollout)) return;
  refuse(
    controls.abort === undefined
      ? 'the plan still runs: end it first with refit abort'
      : 'the plan was aborted, and nodes of it are still in progress: run this again when they have finished',
  );
}

/** Resolves with the run that the user named. If the user named no run, resolves with the last run of the plan. */
export async function runOf(
  session: Session,
  { dialect, plan }: Inspection,
  flags: Pick<RollBackFlags, 'run'>,
) {
  const history = (await recordOf(session, dialect, plan))?.status?.history ?? [];
  const { uid } = plan.metadata;
  return { history, run: chosenRun(history, flags, ({ planUid }) => planUid === uid) };
}

/** Resolves with the NodeRollout of a plan; undefined if the plan has no NodeRollout. The plan may have been deleted. */
export async function recordOf(
  { client, abort }: Pick<Session, 'client' | 'abort'>,
  dialect: Dialect,
  plan: KubeObject,
): Promise<NodeRollout | undefined> {
  const place = placeOf(dialect, plan);
  return (
    place &&
    (await ifFound(client.get(nodeRollouts, place.name, { namespace: place.namespace, abort })))
  );
}

/**
 * Returns the run that the user named. Without a name, returns the last run for which `isMeant` returns true. Throws
 * REFIT_CONTROL if there is no such run, or if several runs match the name.
 */
export function chosenRun(
  history: readonly NodeRolloutRun[],
  flags: Pick<RollBackFlags, 'run'>,
  isMeant: (run: NodeRolloutRun) => boolean,
): NodeRolloutRun {
  const ids = history.map((each) => runNameIn(history, each));
  const [run, ...others] =
    flags.run === undefined
      ? history.filter(isMeant).slice(0, 1)
      : history.filter((each) => isNamedRun(each, flags.run));
  if (others.length > 0) {
    const names = history.filter((each) => isNamedRun(each, flags.run)).map(startedRunName);
    throw new RefitError(
      'REFIT_CONTROL',
      `the NodeRollout has ${names.length} runs with the id ${flags.run}; choose one of them with --run: ${listed(names, names.length)}`,
      { hint: SEE_RUNS },
    );
  }
  if (run === undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `the history of the NodeRollout has no run ${flags.run ?? 'of this plan'}; it has ${listed(ids, ids.length) || 'none'}`,
      {
        hint:
          flags.run === undefined
            ? `${SEE_RUNS}; if the plan has just ended, run this again in a minute, because the leader writes the NodeRollout after the plan`
            : SEE_RUNS,
      },
    );
  return run;
}

/** Returns the names of the checks of the policy because of which nodes of the run failed. */
export function checksOf(
  { failures = [] }: Pick<NodeRolloutRun, 'failures'>,
  policy: Pick<RolloutPolicy, 'name' | 'health'>,
): string[] {
  return failedChecks(
    failures.flatMap((failure) => causeIn(failure) ?? []),
    policy,
  );
}

/** Asks the user whether to roll back, unless `--yes` is given. Resolves with true if the user agrees. */
export async function isWanted({ yes }: RollBackFlags, parts: SessionParts): Promise<boolean> {
  const { abort } = parts;
  const asked = { unasked: 'there is no terminal to ask: pass --yes', abort };
  if (yes === true || (await isConfirmed('Go back?', asked))) return true;
  say(parts, ['Nothing was written.']);
  return false;
}

/**
 * Calls `write` with the resourceVersion of the plan. If the write conflicts with another write, such as a write of the
 * leader, reads the plan and calls `write` again. Rejects with REFIT_CONTROL if another user has changed the plan since
 * then, or if the plan runs again.
 */
export async function writeUnlessChanged(
  { client, abort, viewParts }: Session,
  seen: Inspection,
  now: number,
  write: (resourceVersion: string | undefined) => Promise<unknown>,
): Promise<void> {
  const { dialect, plan } = seen;
  const { name, namespace, uid } = plan.metadata;
  let present = plan;
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const written = write(present.metadata.resourceVersion).then(() => true);
    if ((await unlessError(isConflict)(written)) === true) return;
    present = await client.get(dialect.plans, name, { namespace, abort });
    if (present.metadata.uid !== uid || !sameJson(specOf(present), specOf(plan)))
      refuse('the plan was changed meanwhile, so it was not written: run this again');
    refuseOpenPlan(await inspect(seen, present, viewParts, now));
  }
  refuse('the plan changed during each attempt, so it was not written: run this again');
}

function specOf(plan: object): unknown {
  return 'spec' in plan ? plan.spec : undefined;
}
