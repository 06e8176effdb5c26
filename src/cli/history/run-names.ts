/**
 * Names the runs of a plan for people. A user chooses the id of a run, and two runs may have the same one, such as after the same file
 * was applied twice. The name of such a run also has the time of its start: `<id>@<start>`.
 */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';

type Named = Pick<NodeRolloutRun, 'id' | 'started'>;

/** Returns the name that only this run has. */
export function startedRunName({ id, started }: Named): string {
  return `${id}@${started}`;
}

/** Returns the id of the run, or the name with its start if another run of the history has the same id. */
export function runNameIn(history: readonly Named[], run: Named): string {
  const isShared = history.filter(({ id }) => id === run.id).length > 1;
  return isShared ? startedRunName(run) : run.id;
}

/** Returns true if `name` is one of the two names of the run. */
export function isNamedRun(run: Named, name: string | undefined): boolean {
  return name === run.id || name === startedRunName(run);
}
