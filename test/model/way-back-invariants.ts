/** Invariants of roll-backs, and of the versions of controllers and workers during upgrades and roll-backs. */

import type { Glance, NodeGlance } from './glance.ts';
import { isInMotion } from './host.ts';
import type { StatedInvariant } from './stated-invariant.ts';

/** The only run that may be rolled back. */
const FIRST_RUN = 'plan-1/run-1';

export const ABOUT_WAYS_BACK: readonly StatedInvariant[] = [
  {
    name: 'no-worker-newer',
    sentence: 'No worker ever runs a newer version than the API server of any controller.',
    upheldBy:
      '`src/engine/model/rollout.ts`: controllers go first; on the way back, `src/engine/gates/workers-first.ts` and `src/engine/gates/foreign-work.ts` ensure this',
    alsoSeenBy: '`test/testenv/rollback.test.ts`',
    holds: ({ nodes }) => {
      const servers = ofRole(nodes, 'controller').map(versionOf);
      return ofRole(nodes, 'worker').every((worker) =>
        servers.every((server) => versionOf(worker) <= server),
      );
    },
  },
  {
    name: 'workers-back-first',
    sentence:
      'During a roll-back, no controller starts or is in motion before every worker of the plan is recorded as done.',
    upheldBy: '`src/engine/gates/workers-first.ts`',
    holds: (glance) =>
      glance.rollsBack === undefined ||
      workersAreBack(glance) ||
      ofRole(glance.nodes, 'controller').every(
        (node) =>
          !isInMotion(node.host) &&
          node.signal?.planId !== glance.run &&
          ['', 'SignalPending'].includes(recordOf(glance, node)),
      ),
  },
  {
    name: 'back-runs-it',
    sentence:
      'If a target of a roll-back is recorded as done, it runs exactly the earlier version.',
    upheldBy:
      '`src/agent/next-step.ts`: another process must show the version; `src/engine/model/earlier-versions.ts`',
    holds: ({ rollsBack, recorded, nodes, versions }) =>
      rollsBack === undefined ||
      recorded
        .filter(({ state }) => state === 'SignalCompleted')
        .every(({ name, command }) =>
          nodes.every(
            ({ spec, host }) => spec.name !== name || host.service?.file === versions[command],
          ),
        ),
  },
  {
    name: 'rolled-back-once',
    sentence:
      'With `onFailure: RollBack`, a failed run is rolled back once, even if there are several leaders. A roll-back is never rolled back.',
    upheldBy:
      '`src/engine/assess/roll-back.ts`; `src/engine/execute/restart.ts`: Refit makes one write, with the resourceVersion of the decision',
    // An edit of the id by a person changes the generation too, and no roll-back is explored together with it.
    holds: ({ rollsBack, generation }, { controls }) =>
      generation === 1 ||
      controls.includes('editId') ||
      (generation === 2 && rollsBack === FIRST_RUN),
  },
];

function ofRole(nodes: readonly NodeGlance[], role: string): NodeGlance[] {
  return nodes.filter(({ spec }) => spec.role === role);
}

/**
 * Returns the version that the service runs. If no process runs, returns the version of the file that the supervisor
 * starts next.
 */
function versionOf({ host: { service, target } }: NodeGlance): string {
  return service?.file ?? target ?? '';
}

function recordOf({ recorded }: Glance, { spec }: NodeGlance): string {
  return recorded.find(({ name }) => name === spec.name)?.state ?? '';
}

function workersAreBack(glance: Glance): boolean {
  return ofRole(glance.nodes, 'worker').every((node) =>
    ['', 'SignalCompleted'].includes(recordOf(glance, node)),
  );
}
