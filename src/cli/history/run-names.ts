/**
 * Defines the names of the runs of a plan for users. A user chooses the id of a run, and two runs may have the same id,
 * for example if the same file was applied twice. The name of such a run also contains the time of its start:
 * `<id>@<start>`.
 */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { qualifiedRunId, runIdIn } from '../../engine/model/runs.ts';

type Named = Pick<NodeRolloutRun, 'id' | 'started'>;

/** Returns the name `<id>@<start>`, which no other run has. */
export function startedRunName({ id, started }: Named): string {
  return `${id}@${started}`;
}

/** Returns the id of the run, or the name with its start if another run of the history has the same id. */
export function runNameIn(history: readonly Named[], run: Named): string {
  const isShared = history.filter(({ id }) => id === run.id).length > 1;
  return isShared ? startedRunName(run) : run.id;
}

/**
 * Returns true if `name` is one of the names of the run. A Plan that rolls this run back uses the name `<uid of the
 * plan>/<id>`, because that name can be made without the history.
 */
export function isNamedRun(
  run: Named & Pick<NodeRolloutRun, 'planUid'>,
  name: string | undefined,
): boolean {
  return name === run.id || name === startedRunName(run) || name === qualifiedRunId(run);
}

/**
 * Returns `<id>` for a run with the name `<uid of the plan>/<id>`. Returns the whole name if several runs of the
 * history have that id.
 */
export function rolledBackRunName(history: readonly Named[], named: string): string {
  const own = runIdIn(named);
  const isShared = history.filter(({ id }) => id === own).length > 1;
  return isShared ? named : own;
}
