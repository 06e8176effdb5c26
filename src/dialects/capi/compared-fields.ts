/** Compares the objects in a hook's body: which fields count, and how their changes are named. */
import type { HookObject, PatchKey, Triple } from '../../api/capi/hooks.ts';
import { isRecord, type Json, sameJson } from '../../util/json.ts';
import { type Change, differences, valueAt } from './json-diff.ts';

interface Part {
  /** Prefix of the names of its changes. */
  readonly name: 'machine' | 'infraMachine' | 'bootstrap';
  /** Key in `current` and `desired`. */
  readonly object: string;
  readonly patch: PatchKey;
  /** True for objects that the caller decodes into types: there, empty means absent. */
  readonly typed: boolean;
}

/** What one kind of hook compares. Fields outside of `root` are neither compared nor patched. */
export interface Shape {
  readonly parts: readonly Part[];
  readonly root: readonly string[];
}

export const MACHINE_SHAPE: Shape = {
  root: ['spec'],
  parts: [
    { name: 'machine', object: 'machine', patch: 'machinePatch', typed: true },
    { name: 'infraMachine', object: 'infrastructureMachine', patch: 'infrastructureMachinePatch', typed: false },
    { name: 'bootstrap', object: 'bootstrapConfig', patch: 'bootstrapConfigPatch', typed: false },
  ],
};

export const SET_SHAPE: Shape = {
  root: ['spec', 'template', 'spec'],
  parts: [
    { name: 'machine', object: 'machineSet', patch: 'machineSetPatch', typed: true },
    {
      name: 'infraMachine',
      object: 'infrastructureMachineTemplate',
      patch: 'infrastructureMachineTemplatePatch',
      typed: false,
    },
    { name: 'bootstrap', object: 'bootstrapConfigTemplate', patch: 'bootstrapConfigTemplatePatch', typed: false },
  ],
};

/** Fields of a Machine's spec that callers do not compare either: they are propagated or immutable. */
const IGNORED = new Set([
  'clusterName',
  'bootstrap',
  'infrastructureRef',
  'providerID',
  'minReadySeconds',
  'readinessGates',
  'deletion',
  'taints',
]);

/** `path` starts below the shape's root. */
export interface PartChange extends Change {
  readonly part: Part;
}

/** Sorted by part, then by path. */
export function changesBetween(shape: Shape, current: Triple, desired: Triple): PartChange[] {
  return shape.parts.flatMap((part) =>
    differences(compared(shape, part, current[part.object]), compared(shape, part, desired[part.object])).map(
      (change) => ({ ...change, part }),
    ),
  );
}

/** Such as `machine.spec.version`; the same for Machines and for the templates of MachineSets. */
export function nameOf({ part, path }: PartChange): string {
  return [part.name, 'spec', ...path].join('.');
}

/** True if the caller treats both values as equal. */
export function isSameField({ typed }: Part, a: Json | undefined, b: Json | undefined): boolean {
  return sameJson(a, b) || (typed && isEmpty(a) && isEmpty(b));
}

function compared({ root }: Shape, part: Part, object: HookObject | null | undefined): Json | undefined {
  const value = valueAt(object, root);
  if (!part.typed || !isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key, field]) => !IGNORED.has(key) && !isEmpty(field)));
}

function isEmpty(value: Json | undefined): boolean {
  return (
    value === undefined ||
    value === null ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}
