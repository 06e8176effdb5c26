/** Judges the Plans of Rancher for `refit validate`. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlanKind } from '../../../api/schemas.ts';
import type { FileKind, Judgement } from '../../../cli/contract/file-kind.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { imageProblems } from '../../../engine/reasons/images.ts';
import { endlessWaitsAmong } from '../plan/awaited-plan.ts';
import { fieldFindings } from '../plan/field-problems.ts';
import { resolveLatest, unknownDigestPaths } from '../plan/latest.ts';
import { imagesOf } from '../plan/resolve-cattle-plan.ts';
import { rivalsAmong } from '../plan/rivals.ts';

export const rancherFiles: readonly FileKind[] = [
  {
    form: 'object',
    holds: 'plans',
    kind: cattlePlanKind,
    judge: judgeCattlePlan,
    conflicts: rivalsAmong,
    amongAll: endlessWaitsAmong,
    refusedBy: undigestedImages,
  },
];

function judgeCattlePlan(plan: CattlePlan): Judgement {
  const { name, namespace = 'default' } = plan.metadata;
  const title = `Plan ${namespace}/${name} can be carried out`;
  const { nodeSelector, concurrency } = plan.spec ?? {};
  const fields = fieldFindings(plan);
  const { problems } = resolveLatest(plan, undefined);
  // A channel that gave no answer is not a problem here, because only the controller sends requests to the channel.
  const own = problems
    .filter(({ code }) => code !== 'ChannelUnanswered')
    .map(({ message }) => message)
    .filter((message) => !fields.problems.includes(message));
  const nobody = 'so the Plan selects no node and is Complete at once';
  const warnings = [
    ...(nodeSelector ? [] : [`spec.nodeSelector: is missing, ${nobody}; use {} for all nodes`]),
    ...((concurrency ?? 0) > 0
      ? []
      : [`spec.concurrency: is ${concurrency ?? 'missing'}, ${nobody}; use 1`]),
    ...fields.warnings,
    ...unknownDigestPaths(plan).map(
      (path) =>
        `metadata.annotations[upgrade.cattle.io/digest]: ${JSON.stringify(path)} names no field of the Plan, so no change starts it again; use for example spec.upgrade`,
    ),
  ];
  return { title, problems: [...own, ...fields.problems], warnings };
}

/**
 * Returns what a policy that requires digests refuses about the Plan. A channel answers with a version, which becomes the
 * tag of the image, so the Plan of a channel never gets a digest.
 */
function undigestedImages(plan: CattlePlan, policy: RolloutPolicy): string[] {
  if (policy.requireImageDigest !== true) return [];
  const { channel = '', version = '' } = plan.spec ?? {};
  const problems = imageProblems({ images: imagesOf(plan) }, policy);
  if (channel === '' || version !== '')
    return problems.map(({ message }) => `no node would start: ${message}`);
  const why =
    problems.length > 0
      ? 'a channel gives the image a tag and no digest, so no node would start'
      : 'the digest says what is installed, so each new version of the channel would install the same image again';
  return [
    `spec.channel and spec.payloads.requireImageDigest of UpgradePolicy ${policy.name} exclude each other: ${why}; instead of the channel, set spec.version, and name the image with its digest`,
  ];
}
