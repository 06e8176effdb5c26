/** Owns the controller of one dialect: which changes wake it, and the reconciler behind its queue. */
import type { KubeClient } from '../kube/client.ts';
import { createInformer, type Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/object-key.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Controller } from '../runtime/controller.ts';
import { fromMapping, fromObject, type Source } from '../runtime/sources.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/log.ts';
import type { Dialect, Endpoint, Watched } from './dialect.ts';
import type { EndpointHealth, Policy } from './model.ts';
import type { Announcement } from './narrate.ts';
import { OwnWrites } from './own-writes.ts';
import { createReconciler } from './reconciler.ts';
import { viewsOf } from './world.ts';

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
  const { namespace, fieldSelector } = dialect;
  const plans = createInformer(reader, dialect.plans, { logger: log, namespace, fieldSelector });
  const isPlan = (object: KubeObject): boolean => dialect.isPlan?.(object) ?? true;
  const watched = dialect.watched.map((each) => ({
    ...each,
    // Plans that are targets, too, have one view: of two, each would be stale at another time.
    informer:
      each.resource === dialect.plans
        ? plans
        : createInformer(reader, each.resource, { logger: log, namespace: each.namespace, transform: each.keep }),
  }));
  const reconcile = createReconciler({
    ...parts,
    dialect,
    client: writer,
    ownWrites: new OwnWrites(),
    plans,
    views: viewsOf(watched.map(({ resource, informer }) => [resource, informer])),
  });
  return {
    name: dialect.name,
    sources: [fromObject(plans, { when: isPlan }), ...watched.map((each) => allPlans(each, plans, isPlan))],
    reconcile,
    concurrency: CONCURRENCY,
    timeoutMs: TIMEOUT_MS,
  };
}

/** A change that can matter wakes every plan there is: they are few, and their decision is cheap. */
function allPlans(
  watched: Watched & { readonly informer: Informer },
  plans: Informer,
  isPlan: (object: KubeObject) => boolean,
): Source {
  return fromMapping(watched.informer, () => plans.list().filter(isPlan).map(keyOf), {
    when: (object, previous) => previous === undefined || watched.matters(previous, object),
  });
}
