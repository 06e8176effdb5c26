/** Owns who does what of one Machine's change: each updater in order takes what it can, until nothing or something is left. */
import type { CanUpdateAnswer, HookObject, Patches, Triple } from '../../../api/capi/hooks.ts';
import { messageOf } from '../../../util/errors.ts';
import type { Json } from '../../../util/json.ts';
import { applyPatches } from '../can-update.ts';
import { changesBetween, isSameField, MACHINE_SHAPE, nameOf } from '../compared-fields.ts';
import { differences, valueAt, withChange } from '../json-diff.ts';

/** One who can do a part of a change; asking must have no effect. */
export interface Candidate {
  readonly name: string;
  canUpdate(current: Triple, desired: Triple): Promise<CanUpdateAnswer>;
}

export interface UpdaterStep {
  readonly updater: string;
  /** Names of the changes it takes, such as `machine.spec.version`. */
  readonly claimed: readonly string[];
}

export interface Composition {
  /** In the order in which they have to be done. */
  readonly steps: readonly UpdaterStep[];
  /** Names of the changes that nobody takes: while there is one, nothing may be begun. */
  readonly uncovered: readonly string[];
  /** Whose answer was not taken, and why: it counts as if it had claimed nothing. */
  readonly rejected: readonly { readonly updater: string; readonly reason: string }[];
}

/** Asks one after the other, each with the Machine as those before leave it, and only while something is left. */
export async function compose(current: Triple, desired: Triple, claimants: readonly Candidate[]): Promise<Composition> {
  const steps: UpdaterStep[] = [];
  const rejected: { updater: string; reason: string }[] = [];
  let reached = current;
  for (const claimant of claimants) {
    if (changedNames(reached, desired).length === 0) break;
    const answer = await claimant.canUpdate(reached, desired);
    const claim = claimOf(reached, desired, answer);
    if (typeof claim === 'string') rejected.push({ updater: claimant.name, reason: claim });
    else if (claim.claimed.length > 0) {
      steps.push({ updater: claimant.name, claimed: claim.claimed });
      reached = claim.reached;
    }
  }
  return { steps, uncovered: changedNames(reached, desired), rejected };
}

interface Claim {
  readonly claimed: readonly string[];
  /** With these changes made, and no others. */
  readonly reached: Triple;
}

/** What an answer takes of the difference, or a sentence about why it cannot be trusted. */
export function claimOf(current: Triple, desired: Triple, answer: CanUpdateAnswer): Claim | string {
  if (answer.status !== 'Success') return answer.message ?? 'it answers Failure';
  const patched = patchedBy(current, answer);
  if (typeof patched === 'string') return patched;
  const astray = strayed(current, patched, desired);
  if (astray.length > 0) return `its patches set ${astray.join(', ')} to what nobody asked for`;
  const left = new Set(changedNames(patched, desired));
  const claimed = changedNames(current, desired).filter((name) => !left.has(name));
  return { claimed, reached: restrict(current, desired, claimed) };
}

/** `current` with those of the changes towards `desired` made that are named, and everything else as it is. */
export function restrict(current: Triple, desired: Triple, names: readonly string[]): Triple {
  return changesBetween(MACHINE_SHAPE, current, desired)
    .filter((change) => names.includes(nameOf(change)))
    .reduce<Triple>((triple, { part, path, to }) => {
      const object = (triple[part.object] ?? desired[part.object]) as unknown as Json | undefined;
      const changed = withChange(object, { path: [...MACHINE_SHAPE.root, ...path], to });
      return { ...triple, [part.object]: changed as unknown as HookObject };
    }, current);
}

/**
 * What is asked of the updater of one step: what all steps up to it do. What later ones do still has its old value, so
 * that nobody sees work that is not theirs; the last one gets the whole of it.
 */
export function desiredAt(current: Triple, desired: Triple, steps: readonly UpdaterStep[], index: number): Triple {
  if (index >= steps.length - 1) return desired;
  return restrict(
    current,
    desired,
    steps.slice(0, index + 1).flatMap(({ claimed }) => claimed),
  );
}

function changedNames(current: Triple, desired: Triple): string[] {
  return changesBetween(MACHINE_SHAPE, current, desired).map(nameOf);
}

function patchedBy(current: Triple, patches: Patches): Triple | string {
  try {
    return applyPatches(MACHINE_SHAPE, current, patches);
  } catch (error) {
    return `its patches do not fit: ${messageOf(error)}`;
  }
}

/** Every place that the patches changed into something else than what is desired there; ignored fields count, too. */
function strayed(current: Triple, patched: Triple, desired: Triple): string[] {
  const { parts, root } = MACHINE_SHAPE;
  return parts.flatMap((part) => {
    const specOf = (triple: Triple): Json | undefined => valueAt(triple[part.object], root);
    return differences(specOf(current), specOf(patched))
      .filter(({ path, to }) => !isSameField(part, valueAt(specOf(desired), path), to))
      .map(({ path, from, to }) => nameOf({ part, path, from, to }));
  });
}
