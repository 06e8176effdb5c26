/** Declares the messages of Cluster API's in-place update hooks, `hooks.runtime.cluster.x-k8s.io/v1alpha1`. */
import { z } from 'zod';
import type { KubeObject } from '../../kube/resources.ts';

export const HOOK_GROUP = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';

export type HookName = 'Discovery' | 'CanUpdateMachine' | 'CanUpdateMachineSet' | 'UpdateMachine';

/** Accepts any object in the body of a hook. Such objects have no uid, resourceVersion or status. */
const withName = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string().min(1) }),
});
const objectSchema = withName as unknown as z.ZodType<HookObject>;

export interface HookObject extends KubeObject {
  readonly spec?: unknown;
}

const settings = z.record(z.string(), z.string()).nullish();
const machineTriple = z.object({
  machine: objectSchema,
  infrastructureMachine: objectSchema,
  bootstrapConfig: objectSchema.nullish(),
});
const setTriple = z.object({
  machineSet: objectSchema,
  infrastructureMachineTemplate: objectSchema,
  bootstrapConfigTemplate: objectSchema.nullish(),
});

export const canUpdateMachineRequest = z.object({
  settings,
  current: machineTriple,
  desired: machineTriple,
});
export const canUpdateMachineSetRequest = z.object({
  settings,
  current: setTriple,
  desired: setTriple,
});
export const updateMachineRequest = z.object({ settings, desired: machineTriple });

export type UpdateMachineRequest = z.infer<typeof updateMachineRequest>;
export type Settings = Readonly<Record<string, string>>;

/** The body of a hook has two or three objects, each under its key. */
export type Triple = Readonly<Record<string, HookObject | null | undefined>>;

/** A change of one object. `patch` is the document in base64. */
export interface Patch {
  readonly patchType: 'JSONPatch' | 'JSONMergePatch';
  readonly patch: string;
}

export interface HookResponse {
  readonly apiVersion: typeof HOOK_GROUP;
  readonly kind: string;
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
}

export interface UpdateMachineResponse extends HookResponse {
  /**
   * A whole number of seconds, at least 0, because callers treat a negative number as the end of the update. With
   * `Success`, 0 means that the update is done.
   */
  readonly retryAfterSeconds: number;
}

export type PatchedObject = keyof z.infer<typeof machineTriple> | keyof z.infer<typeof setTriple>;

/** The patches of a response. The key names the object that a patch changes. */
export type Patches = Readonly<Partial<Record<`${PatchedObject}Patch`, Patch>>>;

/** What an updater can change in place. */
export interface Claim extends Patches {
  /**
   * False if the Machine stays available during the update: Cluster API then needs no other Machine in its place. A missing
   * field means true. Releases of Cluster API that do not know the field ignore it.
   */
  readonly affectsAvailability?: boolean | null | undefined;
}

export type CanUpdateResponse = HookResponse & Claim;
