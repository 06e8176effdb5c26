/** The invariants of Cluster API's Machines: what docs/internals/safety.md says, worded for the plan of an owner. */
import { kubeletVersionOf, type Node } from '../../../src/kube/resources.ts';
import type { AskedInvariant } from '../planted-world.ts';
import { type CapiConfiguration, NEW_VERSION } from './capi-objects.ts';
import { type CapiGlance, openSignalOn, plansAmong, recordOn } from './capi-state.ts';

type CapiInvariant = AskedInvariant<CapiGlance, CapiConfiguration>;

/** An invariant that a single write of a leader can break. */
function ofWrites(name: string): CapiInvariant {
  return { name, atRest: false, holds: ({ broken }) => !broken.includes(name) };
}

const isUpgraded = (node: Node): boolean => kubeletVersionOf(node) === NEW_VERSION;

export const CAPI_INVARIANTS: readonly CapiInvariant[] = [
  {
    name: 'signals-within-slots',
    atRest: false,
    holds: ({ nodes }, { role }) =>
      role === 'worker' ||
      [...nodes.values()].filter((node) => openSignalOn(node) !== undefined).length <= 1,
  },
  ofWrites('only-chosen-starts'),
  ofWrites('intent-before-signal'),
  ofWrites('one-signal-per-attempt'),
  ofWrites('drained-before-work'),
  ofWrites('paused-never-starts'),
  ofWrites('waves-in-turn'),
  ofWrites('approved-before-start'),
  ofWrites('failures-stop-starts'),
  {
    name: 'done-runs-it',
    atRest: false,
    holds: ({ nodes }) =>
      [...nodes.values()].every((node) => recordOn(node)?.state !== 'done' || isUpgraded(node)),
  },
  {
    name: 'completed-is-done',
    atRest: false,
    holds: ({ nodes }, { hasOwner }) =>
      plansAmong(nodes.values()).every(
        (lead) =>
          recordOn(lead)?.phase !== 'done' ||
          (hasOwner ? [...nodes.values()] : [lead]).every(isUpgraded),
      ),
  },
  {
    name: 'cordon-of-others-kept',
    atRest: false,
    holds: ({ nodes, past }) =>
      past.every(({ name, keptClosed }) => {
        const node = nodes.get(name);
        return !keptClosed || node === undefined || node.spec?.unschedulable === true;
      }),
  },
  {
    name: 'no-cordon-left',
    atRest: true,
    holds: ({ nodes, past }) =>
      past.every(
        ({ name, keptClosed }) => keptClosed || nodes.get(name)?.spec?.unschedulable !== true,
      ),
  },
];
