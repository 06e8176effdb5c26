/** Owns which parts of the objects in a hook's body count: where each stands, how its changes are named, and what is ignored. */
import type { HookObject, PatchKey, Triple } from '../../api/capi/hooks.ts';
import { isRecord, type Json, sameJson } from '../../util/json.ts';
import { type Change, differences, valueAt } from './json-diff.ts';

interface Part {
  /** Begins the name of each of its changes. */
  readonly name: 'machine' | 'infraMachine' | 'bootstrap';
  /** Its key in `current` and `desired`, and in the response. */
  readonly object: string;
  readonly patch: PatchKey;
  /** True for objects that the caller decodes into types: an empty value is no value there. */
  readonly typed: boolean;
}

/** What one kind of hook compares; only below `root` is anything compared, and taken over from a patch. */
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

/** Fields of a Machine's spec that callers leave out of their comparison, too: they are propagated or never change. */
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

/** A change with the part it belongs to; `path` begins below the shape's root. */
export interface PartChange extends Change {
  readonly part: Part;
}

/** In a fixed order: by part, then by path. */
export function changesBetween(shape: Shape, current: Triple, desired: Triple): PartChange[] {
  return shape.parts.flatMap((part) =>
    differences(compared(shape, part, current[part.object]), compared(shape, part, desired[part.object])).map(
      (change) => ({ ...change, part }),
    ),
  );
}

/** `machine.spec.version`, `bootstrap.spec.files`: the same for Machines and for the templates of MachineSets. */
export function nameOf({ part, path }: PartChange): string {
  return [part.name, 'spec', ...path].join('.');
}

/** Whether two values of a field are one to the caller. */
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
