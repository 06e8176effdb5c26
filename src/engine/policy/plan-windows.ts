/** Reads the windows that limit one plan in addition to the windows of its UpgradePolicy. */
import { z } from 'zod';
import { upgradePolicySpecSchema } from '../../api/refit/upgrade-policy.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { parseDuration } from '../../util/duration.ts';
import { parseJson } from '../../util/json.ts';
import { because } from '../model/reasons.ts';
import { readWindow } from './read-policy.ts';
import type { RolloutPolicy } from './rollout-policy.ts';

/** The annotation that holds the windows of a plan. Its value is a JSON list like `spec.windows` of an UpgradePolicy. */
export const PLAN_WINDOWS_ANNOTATION = 'upgrade.refit.dev/windows';

/** The annotation that says how long before a window nodes may download. Its value is a duration such as `2h`. */
export const LEAD_TIME_ANNOTATION = 'upgrade.refit.dev/lead-time';

const listSchema = z.object({ windows: upgradePolicySpecSchema.shape.windows });

/** Returns the policy with the plan's own windows. If the annotation cannot be read, the policy has a problem, and nothing starts. */
export function withPlanWindows({ metadata }: KubeObject, policy: RolloutPolicy): RolloutPolicy {
  const text = metadata.annotations?.[PLAN_WINDOWS_ANNOTATION];
  if (text === undefined) return policy;
  const { data } = listSchema.safeParse({ windows: parseJson(text) ?? text });
  const windows = data?.windows?.map((window) => readWindow(window, '', () => undefined));
  const known = windows?.filter((window) => window !== undefined) ?? [];
  const planLeadMs = parseDuration(metadata.annotations?.[LEAD_TIME_ANNOTATION] ?? '');
  if (known.length > 0 && known.length === windows?.length)
    return { ...policy, planWindows: known, ...(planLeadMs && { planLeadMs }) };
  const message = `annotation ${PLAN_WINDOWS_ANNOTATION} is not a list of windows; write it as spec.windows of an UpgradePolicy, or remove it`;
  return { ...policy, problems: [...policy.problems, because('PolicyUnreadable', message)] };
}
