/** The invariants of Rancher's Plans: what docs/internals/safety.md says, worded for Jobs and hash labels. */
import { hostnameOf } from '../../../src/dialects/cattle/plan/job.ts';
import { hashOn } from '../../../src/dialects/cattle/plan/names.ts';
import type { AskedInvariant } from '../planted-world.ts';
import type { CattleConfiguration } from './cattle-objects.ts';
import { type CattleGlance, isAtWork, nodeOfJob } from './cattle-state.ts';

const isUnique = (all: readonly string[]): boolean => new Set(all).size === all.length;

function applyingOf({ plan }: CattleGlance): readonly string[] {
  return plan.status?.applying ?? [];
}

export const CATTLE_INVARIANTS: readonly AskedInvariant<CattleGlance, CattleConfiguration>[] = [
  {
    name: 'concurrent-workers',
    atRest: false,
    holds: ({ jobs }, { concurrency }) => jobs.filter(isAtWork).length <= concurrency,
  },
  {
    name: 'intent-before-signal',
    atRest: false,
    holds: (glance) =>
      glance.jobs.filter(isAtWork).every((job) => applyingOf(glance).includes(nodeOfJob(job))),
  },
  {
    name: 'one-signal-per-attempt',
    atRest: false,
    holds: ({ past }) => past.every(({ installed }) => isUnique(installed)),
  },
  {
    name: 'one-job-per-attempt',
    atRest: false,
    holds: ({ past }) => past.every(({ hooked }) => isUnique(hooked)),
  },
  {
    name: 'job-before-drain',
    atRest: false,
    holds: ({ past }) => past.every(({ startedUnhooked }) => !startedUnhooked),
  },
  {
    name: 'drained-before-work',
    atRest: false,
    holds: ({ past }) => past.every(({ startedUndrained }) => !startedUndrained),
  },
  {
    name: 'done-runs-it',
    atRest: false,
    holds: ({ plan, nodes, past }) =>
      past.every(({ name, succeeded }) => {
        const node = nodes.get(name);
        const hash = node && hashOn(node, plan);
        return hash === undefined || succeeded.includes(hash);
      }),
  },
  {
    name: 'cordon-of-others-kept',
    atRest: false,
    holds: ({ nodes, past }) =>
      past.every(
        ({ name, keptClosed }) => !keptClosed || nodes.get(name)?.spec?.unschedulable === true,
      ),
  },
  {
    name: 'no-cordon-left',
    atRest: true,
    holds: (glance) =>
      glance.past.every(({ name, keptClosed }) => {
        const node = glance.nodes.get(name);
        // A failed node keeps its slot and its cordon, as in the original.
        return (
          keptClosed ||
          node?.spec?.unschedulable !== true ||
          applyingOf(glance).includes(hostnameOf(node))
        );
      }),
  },
];
