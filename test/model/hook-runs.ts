/** The runs of hooks: what the API server knows of their Jobs, and what leaders know. */
import type { HookMoment, HookResult, HookRun, HookState } from '../../src/hooks/rules.ts';
import { NOW } from './cluster.ts';

/** Jobs of hooks for the whole plan are kept with those of the first node. */
export const PLACE_OF_PLAN_JOBS = 0;

/** A Job on the API server, for one node or for the plan. */
export interface HookJob {
  /** The name of the Job: a second one with the same name is refused. */
  readonly id: string;
  readonly when: HookMoment;
  /** The attempt that it was created for. */
  readonly attempt: string;
  readonly state: HookState;
}

export function jobOf({ id, hook, variables }: HookRun): HookJob {
  const attempt = variables['REFIT_ATTEMPT'] ?? '';
  return { id, when: hook.when, attempt, state: 'running' };
}

/** With the Job, unless there is one with its name. */
export function withJob(jobs: readonly HookJob[], job: HookJob): readonly HookJob[] {
  return jobs.some(({ id }) => id === job.id) ? jobs : [...jobs, job];
}

/** The Jobs after one that runs has ended, once for each of them and each end. */
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

/** What a process has found out that looked at these Jobs. */
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
