/** Owns the controller that keeps the status of UpgradePolicies true. Nothing is decided by it: plans read the specs themselves. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { keyOf } from '../../kube/object-key.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import type { Controller } from '../../runtime/controller.ts';
import { fromMapping, generationChanged, type Predicate } from '../../runtime/sources.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { PlanRef } from './choose-policy.ts';
import { withStatus } from './policy-status.ts';

export interface PolicyParts {
  /** Writes only while this process leads. */
  readonly writer: KubeClient;
  readonly clock: Clock;
  readonly policies: Informer<UpgradePolicy>;
  /** The plans that this process carries out, by dialect. */
  readonly plans: Readonly<Record<string, Informer>>;
  /** False for an object of a plan's kind that is no plan. */
  isPlan(dialect: string, object: KubeObject): boolean;
}

const TIMEOUT_MS = 60_000;

export function policyController(parts: PolicyParts): Controller {
  const { policies } = parts;
  // Policies bind plans all the same.
  let isDenied = false;
  const all = (): string[] => policies.list().map(keyOf);
  const cameOrWent =
    (dialect: string): Predicate<KubeObject> =>
    (object, previous) =>
      previous === undefined || parts.isPlan(dialect, object) !== parts.isPlan(dialect, previous);
  return {
    name: 'policies',
    sources: [
      // One more or less changes for which plans the others count.
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
  const surroundings = { policies: policies.list(), dialects: Object.keys(parts.plans), plans: plansOf(parts) };
  const told = withStatus(policy, surroundings, clock.now());
  if (told === policy) return;
  try {
    await writer.replace(upgradePolicies, told, { subresource: 'status', abort });
  } catch (error) {
    // Nobody is left to be told. A conflict is tried again: nothing else might tell that another status was written.
    if (!isNotFound(error)) throw error;
  }
}

function plansOf(parts: PolicyParts): PlanRef[] {
  return Object.entries(parts.plans).flatMap(([dialect, informer]) =>
    informer
      .list()
      .filter((object) => parts.isPlan(dialect, object))
      .map(({ metadata: { namespace, name } }) => ({ dialect, namespace, name })),
  );
}
