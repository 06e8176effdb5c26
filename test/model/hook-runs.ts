/** The runs of hooks: the state of their Jobs on the API server, and what leaders know of it. */
import type { HookMoment, HookResult, HookRun, HookState } from '../../src/hooks/rules.ts';
import type { HookRunner } from '../../src/hooks/runner.ts';
import { NOW } from './cluster.ts';

/** The index of the node whose state also stores the Jobs of the hooks for the whole plan. It is the first node. */
export const PLACE_OF_PLAN_JOBS = 0;

/** A Job on the API server, for one node or for the plan. */
export interface HookJob {
  /** The name of the Job: a second one with the same name is refused. */
  readonly id: string;
  readonly when: HookMoment;
  /** The attempt for which the Job was created. */
  readonly attempt: string;
  readonly state: HookState;
}

export function jobOf({ id, hook, variables }: HookRun): HookJob {
  const attempt = variables['REFIT_ATTEMPT'] ?? '';
  return { id, when: hook.when, attempt, state: 'running' };
}

/** Adds the Job, unless a Job with its name exists. */
export function withJob(jobs: readonly HookJob[], job: HookJob): readonly HookJob[] {
  return jobs.some(({ id }) => id === job.id) ? jobs : [...jobs, job];
}

/**
 * Returns the possible next states of the Jobs: for each running Job, one state after its success and one after its
 * failure.
 */
export function endsOf(jobs: readonly HookJob[]) {
  return jobs.flatMap((job, index) =>
    job.state === 'running'
      ? (['succeeded', 'failed'] as const).map((state) => ({
          when: job.when,
          state,
          jobs: jobs.with(index, { ...job, state }),
        }))
      : [],
  );
}

/** Returns what a process knows after it has read these Jobs. */
export function resultsOf(jobs: readonly HookJob[]): readonly HookResult[] {
  return jobs.map(({ id, state }) => ({
    id,
    hook: '',
    target: '',
    state,
    message: '',
    since: NOW,
  }));
}

/** A leader creates the Job of a hook for this Node. */
export interface HookDeed {
  readonly kind: 'hook';
  readonly job: HookJob;
  readonly node: string;
}

/** Lists the Jobs of hooks that the leader creates. The API server refuses a second Job with the same name. */
export function recordingHooks(
  hookJobs: readonly HookJob[],
  deeds: Pick<HookDeed[], 'push'>,
): HookRunner {
  const present = new Set(hookJobs.map(({ id }) => id));
  const create = (run: HookRun): void => {
    if (present.has(run.id)) return;
    present.add(run.id);
    deeds.push({ kind: 'hook', job: jobOf(run), node: run.node ?? '' });
  };
  return {
    follow: (_plan, due) => due.forEach(create),
    forget: () => undefined,
    resultsOf: () => resultsOf(hookJobs),
    onChange: () => () => undefined,
    run: async () => await Promise.resolve(),
  };
}
