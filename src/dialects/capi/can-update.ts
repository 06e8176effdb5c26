/** Answers CanUpdateMachine and CanUpdateMachineSet: returns the changes that Refit can make as patches. */
import { type CanUpdateResponse, HOOK_GROUP, type Patches, type Settings, type Triple } from '../../api/capi/hooks.ts';
import type { Json } from '../../util/json.ts';
import { parseVersion } from '../../util/version.ts';
import { changesBetween, nameOf, type PartChange, type Shape } from './compared-fields.ts';
import { valueAt, withChange } from './json-diff.ts';
import { applyPatch, writePatch } from './patch.ts';

export interface CanRequest {
  readonly settings?: Settings | null | undefined;
  readonly current: Triple;
  readonly desired: Triple;
}

/** `kind` such as `CanUpdateMachine`. */
export function answerCan(kind: string, shape: Shape, request: CanRequest): CanUpdateResponse {
  const { settings, current, desired } = request;
  const head = { apiVersion: HOOK_GROUP, kind: `${kind}Response`, status: 'Success' } as const;
  if (isDisabled(settings))
    return { ...head, message: 'in-place updates are disabled by the setting disableInPlaceUpdates' };
  const changes = changesBetween(shape, current, desired);
  const claimed = changes.filter(isOurs);
  const rest = changes.filter((change) => !isOurs(change)).map(nameOf);
  const message = `covers ${listed(claimed.map(nameOf))}; leaves ${listed(rest)}`;
  if (claimed.length === 0 || (rest.length > 0 && settings?.['partial'] === 'deny')) return { ...head, message };
  const patches = patchesFor(shape, current, claimed);
  checkOwn(shape, request, patches, rest);
  return { ...head, message, ...patches };
}

/** A setting of Cluster API's reference extension. */
export function isDisabled(settings: Settings | null | undefined): boolean {
  return settings?.['disableInPlaceUpdates'] === 'true';
}

/** Applies a response's patches as callers do: only below the shape's root. */
export function applyPatches(shape: Shape, current: Triple, patches: Patches): Triple {
  return shape.parts.reduce<Triple>((triple, { object: key, patch: patchKey }) => {
    const [object, patch] = [triple[key], patches[patchKey]];
    if (!object || !patch) return triple;
    return { ...triple, [key]: graft(object as unknown as Json, applyPatch(object as unknown as Json, patch), shape) };
  }, current);
}

function graft(before: Json, after: Json, { root }: Shape): Triple[string] {
  const to = valueAt(after, root);
  return (to === undefined ? before : withChange(before, { path: root, to })) as unknown as Triple[string];
}

function isOurs(change: PartChange): boolean {
  return nameOf(change) === 'machine.spec.version' && typeof change.to === 'string' && !!parseVersion(change.to);
}

function patchesFor(shape: Shape, current: Triple, claimed: readonly PartChange[]): Patches {
  const entries = shape.parts.flatMap((part) => {
    const own = claimed.filter((change) => change.part === part);
    const changes = own.map((change) => ({ ...change, path: [...shape.root, ...change.path] }));
    return own.length === 0 ? [] : [[part.patch, writePatch(current[part.object], changes)] as const];
  });
  return Object.fromEntries(entries);
}

/** Checks our own patches as the caller does: after a wrong claim, the caller replaces the machine. */
function checkOwn(shape: Shape, { current, desired }: CanRequest, patches: Patches, rest: readonly string[]): void {
  const left = changesBetween(shape, applyPatches(shape, current, patches), desired).map(nameOf);
  if (left.join() !== rest.join())
    throw new Error(`internal error: the patches leave ${listed(left)} instead of ${listed(rest)}`);
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.join(', ');
}
