/**
 * A controller process of the lab: election, manager, drains and the engine, combined in the same way as in `refit
 * controller`.
 */
import { drainPreviewer } from '../../../src/drain/drain-preview.ts';
import { createDrains } from '../../../src/drain/running-drains.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import { policyOfPlan } from '../../../src/engine/policy/choose-policy.ts';
import { DEFAULT_POLICY } from '../../../src/engine/policy/rollout-policy.ts';
import { type RolloutParts, rolloutController } from '../../../src/engine/rollout-controller.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createElection, timesOf } from '../../../src/kube/election/election.ts';
import { guardedClient } from '../../../src/kube/election/write-guard.ts';
import { type EventRecorder, eventRecorder } from '../../../src/kube/event-recorder.ts';
import type { Informer } from '../../../src/kube/watch/informer.ts';
import { createManager } from '../../../src/runtime/manager.ts';
import type { Controller } from '../../../src/runtime/run-controller.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../src/signal/names.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { silentLogger as log } from '../../../src/util/log.ts';

export interface LabControllerParts {
  readonly dialect: Dialect;
  readonly client: KubeClient;
  readonly identity: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** True if the API server at this address is ready. */
  readonly isReady: (address: string) => boolean;
  /** The most workers that may fail; the default of the product if undefined. */
  readonly maxFailures?: number | undefined;
  /** Additional controllers, which run together with the controller of the dialect. */
  readonly controllers?: (tools: LabTools, plans: Informer) => readonly Controller[];
}

export type LabTools = Pick<RolloutParts, 'writer' | 'clock' | 'log'> & {
  readonly events: EventRecorder;
};

const LEASE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };
const LEASE_DURATION_MS = 15_000;

/** Works until `stop` aborts. */
export async function runLabController(
  parts: LabControllerParts,
  stop: AbortSignal,
): Promise<void> {
  const {
    dialect,
    client,
    identity,
    clock,
    random,
    isReady,
    maxFailures = DEFAULT_POLICY.maxFailures,
  } = parts;
  const election = createElection({
    client,
    ...LEASE,
    ...timesOf(LEASE_DURATION_MS),
    identity,
    labels: (holder) => ({ [CENTRAL_CORDONING_LABEL]: holder }),
    clock,
    random,
    log,
  });
  const writer = guardedClient(client, election);
  const manager = createManager({ election, clock, random, log });
  const events = eventRecorder({ client, component: 'refit-controller', clock, log });
  manager.addRunnable(events);
  const drains = createDrains({ client: writer, clock, random, log });
  manager.addRunnable({ name: 'drains', run: async (term) => await drains.run(term) }, 'leading');
  const controller = rolloutController(dialect, {
    reader: client,
    writer,
    policyFor: (plan) => policyOfPlan(dialect, [], plan, { ...DEFAULT_POLICY, maxFailures }),
    drains,
    prober: {
      askControlPlane: async (endpoints) =>
        await Promise.resolve(
          endpoints.map(({ name, host = '' }) => ({ name, ready: isReady(host) })),
        ),
      previewDrains: (abort = stop) => drainPreviewer(client, abort),
    },
    clock,
    log,
    recordEvent: (object, { type, reason }) =>
      events.record(object, { type, reason: reason.code, message: reason.message }),
  });
  manager.addController(controller);
  const tools = { writer, events, clock, log };
  for (const each of parts.controllers?.(tools, controller.plans) ?? [])
    manager.addController(each);
  await manager.run(stop);
}
