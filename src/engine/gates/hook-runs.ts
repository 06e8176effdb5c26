/** Names the run of a hook for one target or one plan, so that every leader gives the same attempt the same name. */

import { createHash } from 'node:crypto';
import type { Hook, HookMoment, HookRun } from '../../hooks/rules.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { runOf } from '../model/decisions-of-people.ts';
import type { TargetFacts } from '../model/facts.ts';
import { type Stage, shownRole, type Target } from '../model/rollout.ts';
import type { OutsideFacts, PlanFacts, Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { titleOfHook } from '../reasons/hook.ts';
import {
  factsOf,
  nodeNameOf,
  reportOf,
  versionAsked,
  type Waiting,
  type WithFacts,
  wait,
} from './types.ts';

/** The parts of a snapshot that name the runs of hooks. */
interface Named extends Pick<Snapshot, 'rollout'> {
  readonly plan: Pick<PlanFacts, 'controls'>;
}

interface Of {
  readonly snapshot: Named & WithFacts;
  readonly stage: Stage;
  readonly target: Target;
}

/**
 * The number of characters of the hash in the name of a run. The name of a run is also the name of a Job, which may have at most 63
 * characters.
 */
const HASH_CHARACTERS = 20;

/** Returns the run of the hook for the present attempt of the target. */
export function hookRunOf({ snapshot, stage, target }: Of, hook: Hook): HookRun {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const { source, id, run = 0 } = rollout;
  const facts = factsOf(snapshot, target);
  const attempt = attemptOf(target, controls.retries.get(target.name));
  const node = nodeNameOf(target, facts);
  const identity = [source.uid, id, run, stage.id, target.key, hook.name, hook.when, attempt];
  return {
    id: nameOf(hook, identity),
    hook,
    node,
    variables: {
      REFIT_NODE: node,
      REFIT_TARGET: target.name,
      REFIT_ROLE: shownRole(stage),
      REFIT_FROM_VERSION: fromVersionOf(facts, hook),
      REFIT_TO_VERSION: versionAsked(facts, stage),
      REFIT_PLAN: source.name,
      REFIT_PLAN_NAMESPACE: source.namespace ?? '',
      REFIT_PLAN_KIND: source.kind,
      REFIT_ATTEMPT: attempt,
      REFIT_HOOK: hook.name,
    },
  };
}

/** Returns the runs of the hooks of this moment for the whole plan, in the order of the policy. */
export function planHookRuns(
  { rollout, plan: { controls } }: Named,
  { hooks = [] }: Pick<RolloutPolicy, 'hooks'>,
  ...moments: readonly HookMoment[]
): HookRun[] {
  const { source, id, run = 0, stages } = rollout;
  const attempt = controls.hooksRetried ?? '';
  const versions = stages.map(({ version }) => version).filter((version) => version !== '');
  return hooks
    .filter(({ when }) => moments.includes(when))
    .map((hook) => ({
      id: nameOf(hook, [source.uid, id, run, hook.name, hook.when, attempt]),
      hook,
      variables: {
        REFIT_TO_VERSION: [...new Set(versions)].join(', '),
        REFIT_PLAN: source.name,
        REFIT_PLAN_NAMESPACE: source.namespace ?? '',
        REFIT_PLAN_KIND: source.kind,
        REFIT_RUN: runOf(rollout),
        REFIT_ATTEMPT: attempt === '' ? source.created : attempt,
        REFIT_HOOK: hook.name,
      },
    }));
}

/**
 * Returns the names of the hooks of the whole plan whose last run has failed, and whose failure the policy does not ignore. These hooks can
 * be tried again.
 */
export function failedPlanHooks(
  snapshot: Named & { readonly outside: Pick<OutsideFacts, 'hooks'> },
  policy: Pick<RolloutPolicy, 'hooks'>,
): string[] {
  const moment = snapshot.rollout.phase === 'done' ? 'afterPlan' : 'beforePlan';
  return planHookRuns(snapshot, policy, moment).flatMap(({ id, hook }) => {
    const result = snapshot.outside.hooks?.find((each) => each.id === id);
    return result?.state === 'failed' && hook.ignoresFailure !== true ? [hook.name] : [];
  });
}

function nameOf({ name }: Hook, identity: readonly unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(identity)).digest('hex');
  return `refit-${name}-${hash.slice(0, HASH_CHARACTERS)}`;
}

/**
 * Returns the time that names the attempt. If a node that has already succeeded is retried, its target keeps the time
 * of its signal. So this function returns the time of the request to retry if that time is later.
 */
function attemptOf({ since }: Target, retriedAt: number | undefined): string {
  if (retriedAt === undefined || !(retriedAt > Date.parse(since))) return since;
  return rfc3339(retriedAt);
}

/** Returns the version before the upgrade; empty if it is unknown. After the upgrade, only a record on the node or the report of the node has that version. */
function fromVersionOf(facts: TargetFacts, { when }: Hook): string {
  const { version = '', earlierVersion } = facts;
  if (when !== 'afterVerified') return version;
  return earlierVersion ?? reportOf(facts)?.from ?? '';
}

/**
 * Returns the wait for a hook. `target` is the name of the target; undefined if the hook is for the whole plan. `said`
 * is a clause about the run.
 */
export function awaitedHook(
  policy: Pick<RolloutPolicy, 'name'>,
  hook: Pick<Hook, 'name' | 'timeoutMs'>,
  target: string | undefined,
  said: string,
): Waiting {
  const what = target === undefined ? 'before the plan starts' : `for ${target}`;
  const ends = `the hook has succeeded, or its deadline of ${formatDuration(hook.timeoutMs)} has passed`;
  return wait('HookRunning', `${titleOfHook(hook, policy)} must succeed ${what}: ${said}`, ends);
}
