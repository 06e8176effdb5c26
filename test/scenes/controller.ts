/** Starts the controller of a dialect in a scene, with all parts that the shipped process has. */

import {
  type ControllerProcessOptions,
  prepareControllerProcess,
} from '../../src/composition/controller-process.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { clientOver } from '../../src/kube/transport/http-client.ts';
import { silentLogger } from '../../src/util/log.ts';
import { seededRandom } from '../faults/random.ts';
import { notifierInto, withWritesInto } from './leader-journal.ts';
import type { Actor } from './stage.ts';

// The controller loads these modules when it needs them, which would take real time of a scene.
await import('../../src/engine/policy/choose-policy.ts');
await import('../../src/engine/policy/policy-controller.ts');

type Own = Pick<ControllerProcessOptions, 'component' | 'dialects' | 'lease' | 'policies'>;

/** Returns what the dialects know about a cluster before an upgrade; undefined for Machines, each of which has a plan. */
async function readinessOf({ dialects }: Own) {
  const isOfMachines = Array.isArray(dialects) && dialects.some(({ name }) => name === 'capi');
  if (isOfMachines) return undefined;
  return await Promise.all(MODULES.map(async (each) => await each.readiness()));
}

/**
 * Returns the controller. `readyz` returns the status with which the API server at an address answers; by default, each
 * API server is ready.
 */
export function controllerOf(own: Own, readyz: (address: string) => number = () => 200): Actor {
  return async ({ server, clock, journal }) => {
    const stop = new AbortController();
    const controller = await prepareControllerProcess(
      {
        policyEffects: Object.fromEntries(
          MODULES.map(({ name, policyEffects }) => [name, policyEffects]),
        ),
        readiness: await readinessOf(own),
        ...own,
        config: { server: server.url, user: {}, namespace: 'refit-system', files: [] },
        client: clientOver(withWritesInto(journal, server.caller, clock)),
        notifier: notifierInto(journal),
        askThrough: () => async (address) => await Promise.resolve(readyz(address)),
        clock,
        random: seededRandom(1),
        log: silentLogger,
      },
      stop.signal,
    );
    const running = controller.run(stop.signal);
    return {
      stop: async () => {
        stop.abort();
        await running;
      },
    };
  };
}
