/** The controller that writes the status of UpgradePolicies. Decisions read only their specs. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { keyOf } from '../../kube/object-key.ts';
import { ifFound, isForbidden } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { type Controller, fromMapping, generationChanged, type Predicate } from '../../runtime/controller.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { PlanRef } from './choose-policy.ts';
import { withStatus } from './policy-status.ts';

export interface PolicyParts {
  /** Writes only while this process leads. */
  readonly writer: KubeClient;
  readonly clock: Clock;
  readonly policies: Informer<UpgradePolicy>;
  /** The plans of this process, by dialect. */
  readonly plans: Readonly<Record<string, Informer>>;
  /** False for an object of a plan's kind that is no plan. */
  isPlan(dialect: string, object: KubeObject): boolean;
}

const TIMEOUT_MS = 60_000;

export function policyController(parts: PolicyParts): Controller {
  const { policies } = parts;
  // Without the right to write a status, policies still apply.
  let isDenied = false;
  const all = (): string[] => policies.list().map(keyOf);
  const cameOrWent =
    (dialect: string): Predicate<KubeObject> =>
    (object, previous) =>
      previous === undefined || parts.isPlan(dialect, object) !== parts.isPlan(dialect, previous);
  return {
    name: 'policies',
    sources: [
      // Each policy can change which plans the others cover.
      fromMapping(policies, all, generationChanged),
      ...Object.entries(parts.plans).map(([dialect, informer]) => fromMapping(informer, all, cameOrWent(dialect))),
    ],
    reconcile: async (key, { abort, logger }) => {
      if (isDenied) return;
      try {
        await report(parts, key, abort);
      } catch (error) {
        if (!isForbidden(error)) throw error;
        isDenied = true;
        logger.warn('the status of UpgradePolicies is off', { problem: messageOf(error) });
      }
    },
    concurrency: 1,
    timeoutMs: TIMEOUT_MS,
  };
}

async function report(parts: PolicyParts, key: string, abort: AbortSignal): Promise<void> {
  const { policies, writer, clock } = parts;
  const policy = policies.get(key);
  if (!policy) return;
  const cluster = { policies: policies.list(), dialects: Object.keys(parts.plans), plans: plansOf(parts) };
  const updated = withStatus(policy, cluster, clock.now());
  if (updated === policy) return;
  // The policy may be gone. A conflict is retried: no event may follow.
  await ifFound(writer.replace(upgradePolicies, updated, { subresource: 'status', abort }));
}

function plansOf(parts: PolicyParts): PlanRef[] {
  return Object.entries(parts.plans).flatMap(([dialect, informer]) =>
    informer
      .list()
      .filter((object) => parts.isPlan(dialect, object))
      .map(({ metadata: { namespace, name } }) => ({ dialect, namespace, name })),
  );
}
