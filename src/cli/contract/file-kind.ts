/** The contract of a kind of files that `refit validate` accepts: what belongs to the kind, and who judges it. */
import type { CustomKind } from '../../api/crd.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import type { KubeObject } from '../../kube/resources.ts';

export interface Judgement {
  /** A clause about a valid object, such as `Plan a can be carried out`. */
  readonly title: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Objects of a kind of the Kubernetes API. */
export interface ObjectFile {
  readonly form: 'object';
  /** The messages about wrong files name the kinds of plans first. */
  readonly holds: 'plans' | 'settings';
  readonly kind: CustomKind;
  /** Judges an object. The object fits the schema of the kind, but some of its invalid fields may have been removed. */
  judge(object: KubeObject): Judgement;
  /** Returns a warning for each earlier object of the same kind in the files that conflicts with the object. */
  conflicts(object: KubeObject, earlier: readonly KubeObject[]): readonly string[];
  /**
   * Returns a warning for each thing about the object that only all objects of its kind in the files show, such as a wait
   * for another object. Kinds without such things lack this member.
   */
  amongAll?(object: KubeObject, all: readonly KubeObject[]): readonly string[];
  /**
   * Returns a warning for each rule of the policy because of which the plan would never start. Kinds without such rules
   * lack this member.
   */
  refusedBy?(plan: KubeObject, policy: RolloutPolicy): readonly string[];
}

/** Whole files that contain no objects of the Kubernetes API, such as the manifest of a command. */
export interface DocumentFile {
  readonly form: 'document';
  /** Returns true if a document of the file shows that the file belongs to this kind. */
  isMeant(document: unknown): boolean;
  /** Judges the file. Throws REFIT_FILE if the file is wrong. */
  judge(text: string, path: string): Judgement;
}

export type FileKind = ObjectFile | DocumentFile;
