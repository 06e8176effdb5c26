/** Reads `spec.hooks` of an UpgradePolicy. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import {
  type Hook,
  type HookMoment,
  isOfPlan,
  type JobAction,
  type WebhookAction,
} from '../../hooks/rules.ts';
import { formatDuration, parseDuration } from '../../util/duration.ts';

type HooksSpec = NonNullable<UpgradePolicySpec['hooks']>;

const MOMENTS: Readonly<Record<HooksSpec[number]['when'], HookMoment>> = {
  BeforePlan: 'beforePlan',
  BeforeDrain: 'beforeDrain',
  AfterDrain: 'afterDrain',
  BeforeRestart: 'beforeRestart',
  AfterVerified: 'afterVerified',
  AfterPlan: 'afterPlan',
};
/** The longest time that a policy may give one hook, in milliseconds. */
const LONGEST_MS = 168 * 60 * 60 * 1000;

/**
 * Returns the hooks. Calls `complain` for each name that two hooks have, for each time that is out of bounds, and for hooks after the
 * drain if nodes are not drained.
 */
export function hooksIn(
  spec: HooksSpec,
  complain: (field: string, wanted: string, found: unknown) => void,
  drains: boolean,
): Hook[] {
  const names = new Set<string>();
  return spec.flatMap((hook, index): Hook[] => {
    const { name, when, timeout, onFailure } = hook;
    if (names.has(name)) complain(`hooks[${index}].name`, 'a name that no other hook has', name);
    names.add(name);
    if (when === 'AfterDrain' && !drains)
      complain(
        `hooks[${index}].when`,
        'a moment other than AfterDrain, for example BeforeRestart, because drain.enabled is false',
        when,
      );
    const timeoutMs = parseDuration(timeout);
    if (timeoutMs === undefined || timeoutMs > LONGEST_MS)
      complain(
        `hooks[${index}].timeout`,
        `a time above zero and up to ${formatDuration(LONGEST_MS)}, such as 10m`,
        timeout,
      );
    const action = actionIn(hook);
    if (action === undefined) {
      const found = hook.job === undefined ? 'neither' : 'both';
      complain(`hooks[${index}]`, 'a hook with either job or webhook', found);
      return [];
    }
    if (isOfPlan(MOMENTS[when]) && hook.job?.pinToNode === true)
      complain(
        `hooks[${index}].job.pinToNode`,
        `false, because a hook with when: ${when} runs for the whole plan, not for one node`,
        true,
      );
    const longestMs = Math.min(timeoutMs ?? LONGEST_MS, LONGEST_MS);
    const ignoring = onFailure === 'Ignore' ? { ignoresFailure: true } : {};
    return [{ name, when: MOMENTS[when], action, timeoutMs: longestMs, ...ignoring }];
  });
}

/** Returns what the hook does; undefined if the hook has no action or two actions. */
function actionIn({ job, webhook }: HooksSpec[number]): JobAction | WebhookAction | undefined {
  if (job && !webhook) return jobIn(job);
  return webhook && !job ? { kind: 'webhook', ...webhook } : undefined;
}

function jobIn({
  namespace,
  template,
  pinToNode,
  retries,
}: NonNullable<HooksSpec[number]['job']>): JobAction {
  return { kind: 'job', namespace, template, pinToNode: pinToNode ?? false, retries: retries ?? 0 };
}
