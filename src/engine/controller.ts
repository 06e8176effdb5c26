/** Owns the controller of one dialect: which changes wake it, and the reconciler behind its queue. */

import type { KubeClient } from '../kube/client.ts';
import { createInformer, type Informer } from '../kube/informer.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Controller } from '../runtime/controller.ts';
import { fromMapping, fromObject, type Source } from '../runtime/sources.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/log.ts';
import type { Dialect, Endpoint } from './dialect.ts';
import type { EndpointHealth, Policy, Role } from './model.ts';
import type { Announcement } from './narrate.ts';
import { OwnWrites } from './own-writes.ts';
import { createReconciler } from './reconciler.ts';
import { matters } from './relevance.ts';

export interface CampaignParts {
  /** Reads only: informers follow through it whoever leads. */
  readonly reader: KubeClient;
  /** Writes only while this process leads. */
  readonly writer: KubeClient;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly log: Logger;
  askControlPlane(endpoints: readonly Endpoint[], signal?: AbortSignal): Promise<readonly EndpointHealth[]>;
  announce(plan: KubeObject, announcement: Announcement): void;
}

/** One plan at a time: gates on the health of the cluster mean little where two decide at once. */
const CONCURRENCY = 1;
/** Milliseconds: a reconcile is a few requests, each with a deadline of its own. */
const TIMEOUT_MS = 120_000;

export function campaignController(dialect: Dialect, parts: CampaignParts): Controller {
  const { reader, writer, log } = parts;
  const plans = createInformer(reader, dialect.plans, { logger: log });
  const targets: Readonly<Record<Role, Informer>> = {
    controller: createInformer(reader, dialect.objects.controller, { logger: log }),
    worker: createInformer(reader, dialect.objects.worker, { logger: log }),
  };
  const reconcile = createReconciler({
    ...parts,
    dialect,
    client: writer,
    ownWrites: new OwnWrites(),
    plans,
    views: targets,
  });
  return {
    name: dialect.name,
    sources: [fromObject(plans), ...Object.values(targets).map((informer) => allPlans(informer, plans))],
    reconcile,
    concurrency: CONCURRENCY,
    timeoutMs: TIMEOUT_MS,
  };
}

/** A target that changed in a way that can matter wakes every plan there is: they are few, and their decision is cheap. */
function allPlans(informer: Informer, plans: Informer): Source {
  const planNames = (): string[] => plans.list().map(({ metadata }) => metadata.name);
  return fromMapping(informer, planNames, {
    when: (object, previous) => previous === undefined || matters(previous, object),
  });
}
