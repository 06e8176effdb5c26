/** Divides one Machine's changes among several updaters: each in turn takes the changes that it can make. */
import type { CanUpdateAnswer, HookObject, Patches, Triple } from '../../src/api/capi/hooks.ts';
import { applyPatches } from '../../src/dialects/capi/can-update.ts';
import { changesBetween, isSameField, MACHINE_SHAPE, nameOf } from '../../src/dialects/capi/compared-fields.ts';
import { differences, valueAt, withChange } from '../../src/dialects/capi/json-diff.ts';
import { messageOf } from '../../src/util/errors.ts';
import type { Json } from '../../src/util/json.ts';

/** An updater that can make some changes; `canUpdate` must have no side effect. */
export interface Candidate {
  readonly name: string;
  canUpdate(current: Triple, desired: Triple): Promise<CanUpdateAnswer>;
}

export interface UpdaterStep {
  readonly updater: string;
  /** Names of changes, such as `machine.spec.version`. */
  readonly claimed: readonly string[];
}

export interface Composition {
  /** In order. */
  readonly steps: readonly UpdaterStep[];
  /** Changes that no updater takes: if there are any, nothing may start. */
  readonly uncovered: readonly string[];
  /** Updaters with an invalid answer, which counts as taking no change. */
  readonly rejected: readonly { readonly updater: string; readonly reason: string }[];
}

/** Asks one updater after the other, each with the Machine as the earlier ones leave it, until no change is left. */
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
  /** The objects with only these changes. */
  readonly reached: Triple;
}

/** The changes that an answer takes, or a message if the answer is invalid. */
export function claimOf(current: Triple, desired: Triple, answer: CanUpdateAnswer): Claim | string {
  if (answer.status !== 'Success') return answer.message ?? 'Failure without a message';
  const patched = patchedBy(current, answer);
  if (typeof patched === 'string') return patched;
  const astray = strayed(current, patched, desired);
  if (astray.length > 0) return `its patches set other values than desired for ${astray.join(', ')}`;
  const left = new Set(changedNames(patched, desired));
  const claimed = changedNames(current, desired).filter((name) => !left.has(name));
  return { claimed, reached: restrict(current, desired, claimed) };
}

/** Makes only the named changes from `current` to `desired`. */
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
 * The desired objects for one step: with the changes of all steps up to it, but without those of later updaters. The last
 * step gets `desired` itself.
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
    return `its patches cannot be applied: ${messageOf(error)}`;
  }
}

/** Names of fields that the patches change to other values than desired, also in fields that are not compared. */
function strayed(current: Triple, patched: Triple, desired: Triple): string[] {
  const { parts, root } = MACHINE_SHAPE;
  return parts.flatMap((part) => {
    const specOf = (triple: Triple): Json | undefined => valueAt(triple[part.object], root);
    return differences(specOf(current), specOf(patched))
      .filter(({ path, to }) => !isSameField(part, valueAt(specOf(desired), path), to))
      .map(({ path, from, to }) => nameOf({ part, path, from, to }));
  });
}
