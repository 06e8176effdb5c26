/** Invariants of the hooks for a whole plan. */
import type { HookMoment } from '../../src/hooks/rules.ts';
import type { Glance } from './glance.ts';
import type { HookJob } from './hook-runs.ts';
import type { StatedInvariant } from './stated-invariant.ts';

export const ABOUT_PLAN_HOOKS: readonly StatedInvariant[] = [
  {
    name: 'job-before-plan',
    sentence: 'No node of a plan starts before the Job `beforePlan` of this run has succeeded.',
    upheldBy:
      '`src/engine/gates/plan-hooks.ts`: the last gate of `BEFORE_TARGET` waits for this Job',
    alsoSeenBy: '`test/testenv/hooks-plan.test.ts`',
    holds: (glance, { rules }) =>
      rules.hooks?.includes('beforePlan') !== true ||
      jobsAt(glance, 'beforePlan').some(({ state }) => state === 'succeeded') ||
      (glance.nodes.every(({ signal }) => signal?.planId !== glance.run) &&
        glance.recorded.every(({ state }) => state === 'SignalPending')),
  },
  {
    name: 'one-job-per-plan',
    sentence:
      'Each hook of a whole plan gets one Job for each run, and one more Job for each request to run the hook again. This is also true if there are several leaders.',
    upheldBy: '`src/engine/gates/hook-runs.ts`: every leader gives the Job of a run the same name',
    alsoSeenBy: '`test/testenv/hooks-plan.test.ts`',
    holds: (glance) =>
      (['beforePlan', 'afterPlan'] as const).every((when) => {
        const attempts = jobsAt(glance, when).map(({ attempt }) => attempt);
        return new Set(attempts).size === attempts.length;
      }),
  },
  {
    name: 'end-before-job',
    sentence:
      'No Job `afterPlan` exists before the plan is recorded as `Completed`. The plan stays `Completed`, whether this Job succeeds or fails.',
    upheldBy:
      '`src/engine/turn/hooks-after-plan.ts`: Refit creates this Job only after the end of the plan is recorded, and a recorded end is final',
    alsoSeenBy: '`test/testenv/hooks-plan.test.ts`',
    holds: (glance) => glance.state === 'Completed' || jobsAt(glance, 'afterPlan').length === 0,
  },
];

/** True where the plan starts nothing until somebody runs its hook again. */
export function waitsForPlanHook(glance: Glance): boolean {
  return jobsAt(glance, 'beforePlan').at(-1)?.state === 'failed';
}

function jobsAt({ nodes }: Glance, when: HookMoment): HookJob[] {
  return nodes.flatMap(({ hookJobs }) => hookJobs.filter((job) => job.when === when));
}
