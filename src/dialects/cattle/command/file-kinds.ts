/** Judges the Plans of Rancher for `refit validate`. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlanKind } from '../../../api/schemas.ts';
import type { FileKind, Judgement } from '../../../cli/contract/file-kind.ts';
import { fieldFindings } from '../plan/field-problems.ts';
import { resolveLatest, unknownDigestPaths } from '../plan/latest.ts';
import { rivalsAmong } from '../plan/rivals.ts';

export const rancherFiles: readonly FileKind[] = [
  {
    form: 'object',
    holds: 'plans',
    kind: cattlePlanKind,
    judge: judgeCattlePlan,
    conflicts: rivalsAmong,
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
