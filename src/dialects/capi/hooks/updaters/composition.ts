/**
 * Divides the changes of one Machine among several updaters. Each updater, in order, takes the changes that it can
 * make.
 */
import { createPatch } from 'rfc6902';
import type { Claim, HookObject, Patches, Triple } from '../../../../api/capi/hooks.ts';
import type { Updater } from '../../../../api/refit/updater-set.ts';
import { messageOf } from '../../../../util/errors.ts';
import { type Json, sameJson } from '../../../../util/json.ts';
import {
  type CanRequest,
  changesBetween,
  differences,
  isEmpty,
  nameOf,
  type PartChange,
  type Shape,
  valueAt,
} from '../can-update.ts';
import { applyPatches, brief, placed } from './hook-patch.ts';

/**
 * Asks an updater which changes it can make. The updater answers with patches. The call has no side effects. Rejects if
 * there is no valid answer.
 */
export type AskCan = (updater: Updater, current: Triple, desired: Triple) => Promise<Claim>;

interface Step {
  readonly updater: string;
  readonly changes: readonly string[];
  /** True if the updater says that the Machine stays available. */
  readonly staysAvailable: boolean;
}

export interface Composition {
  /** The updaters in the order in which they are called, each with its changes, such as `machine.spec.version`. */
  readonly steps: readonly Step[];
  readonly uncovered: readonly string[];
  /** The updaters that gave no valid answer. They take no changes. */
  readonly unanswered: readonly { readonly updater: string; readonly reason: string }[];
  readonly reached: Triple;
}

/**
 * Asks each updater in order until no change remains. The objects in each request already contain the changes of the
 * earlier updaters.
 */
export async function compose(
  shape: Shape,
  request: CanRequest,
  updaters: readonly Updater[],
  ask: AskCan,
) {
  const { current, desired } = request;
  const steps: Step[] = [];
  const unanswered: Composition['unanswered'][number][] = [];
  let reached = current;
  for (const updater of updaters) {
    if (changesBetween(shape, reached, desired).length === 0) break;
    const { name } = updater;
    try {
      const claim = await ask(updater, reached, desired);
      const changes = claimed(shape, reached, desired, claim);
      if (changes.length === 0) continue;
      const staysAvailable = claim.affectsAvailability === false;
      steps.push({ updater: name, changes: changes.map(nameOf), staysAvailable });
      for (const change of changes) reached = withChange(shape, reached, desired, change);
    } catch (error) {
      unanswered.push({ updater: name, reason: brief(messageOf(error)) });
    }
  }
  return {
    steps,
    uncovered: changesBetween(shape, reached, desired).map(nameOf),
    unanswered,
    reached,
  };
}

/**
 * Returns the changes that the patches make. Throws if the patches change other fields, or set a value other than the
 * desired value.
 */
function claimed(shape: Shape, current: Triple, desired: Triple, patches: Patches): PartChange[] {
  const patched = applyPatches(shape, current, patches);
  const stray = strayIn(shape, current, patched, desired);
  // The message names only a few of the changes, because their names may be long, and thousands of
  // them would fill the memory.
  const names = stray.slice(0, 5).map(nameOf).join(', ');
  if (stray.length > 0)
    throw new Error(`its patches set values that differ from the desired ones for ${names}`);
  const left = new Set(changesBetween(shape, patched, desired).map(nameOf));
  return changesBetween(shape, current, desired).filter((change) => !left.has(nameOf(change)));
}

/**
 * Returns the patched values that differ from the desired values. They include values in fields that are otherwise not
 * compared.
 */
function strayIn(
  { parts, root }: Shape,
  current: Triple,
  patched: Triple,
  desired: Triple,
): PartChange[] {
  return parts.flatMap((part) => {
    const below = (triple: Triple): Json | undefined => valueAt(triple[part.object], root);
    return differences(below(current), below(patched))
      .filter(({ path, to }) => {
        const wanted = valueAt(below(desired), path);
        return (
          !sameJson(wanted, to) && !(part.name === 'machine' && isEmpty(wanted) && isEmpty(to))
        );
      })
      .map((change) => ({ ...change, part }));
  });
}

export function patchesTo(shape: Shape, current: Triple, reached: Triple): Patches {
  const entries = shape.parts.flatMap(({ object }) => {
    const rootOf = (triple: Triple) => placed({}, shape.root, valueAt(triple[object], shape.root));
    const operations = createPatch(rootOf(current), rootOf(reached));
    if (operations.length === 0) return [];
    const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
    return [[`${object}Patch`, { patchType: 'JSONPatch', patch }] as const];
  });
  return Object.fromEntries(entries);
}

export function withChange(
  shape: Shape,
  triple: Triple,
  desired: Triple,
  { part, path, to }: PartChange,
): Triple {
  const object = triple[part.object] ?? desired[part.object];
  return {
    ...triple,
    [part.object]: placed(object, [...shape.root, ...path], to) as unknown as HookObject,
  };
}
