/** Defines what the check of operators knows about each operator, and how it reads objects that anybody may have written. */
import {
  type KubeObject,
  keyAt,
  keyOf,
  namespaced,
  type ObjectMeta,
  type PodDisruptionBudget,
  type Resource,
} from '../../kube/resources.ts';
import { isRecord } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import type { Asking } from '../asking.ts';
import type { FoundBy } from '../finding.ts';

/** An object of an operator. Its definition, and so the type of each field, is that of whoever installed it. */
export interface Custom extends KubeObject {
  readonly value?: unknown;
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** An object whose spec and status are objects, or absent and then empty here. */
export interface Judged {
  readonly metadata: ObjectMeta;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status: Readonly<Record<string, unknown>>;
}

/** What is wrong with an object. */
export type Problem = Omit<FoundBy, 'object'>;

export type Judge = (object: Judged) => Problem | undefined;

export interface Operator {
  /** The name at the beginning of a sentence, such as `CloudNativePG`. */
  readonly name: string;
  readonly resource: Resource<Custom>;
  /** What its objects are called in the singular, such as `volume`. */
  readonly noun: string;
  /** What the operator does when a node is cordoned, as a clause after its name and the number of its objects. */
  readonly expect: string;
  /** Resolves with the judge of its objects, after what else decides about them was read. There is at least one object. */
  readonly judgeOf: (
    asking: Pick<Asking, 'list' | 'get'>,
    objects: readonly Custom[],
  ) => Promise<Judge>;
  /**
   * Returns a function that returns true for a budget that the operator keeps for one of these objects, and whose pods it
   * moves when their node is cordoned. The objects are undefined if they could not be read.
   */
  readonly keeps?: (
    objects: readonly Custom[] | undefined,
  ) => (budget: PodDisruptionBudget) => boolean;
}

export function of(apiVersion: string, kind: string): Resource<Custom> {
  return namespaced<Custom>(apiVersion, kind);
}

/** The annotations that decide about an object. */
const KEPT_ANNOTATIONS = ['cnpg.io/hibernation'];

/** Keeps what the checks read of an object. */
export function slim({ metadata, spec, status }: Custom): Custom {
  const { name, namespace, annotations } = metadata;
  const kept = KEPT_ANNOTATIONS.flatMap((key) => {
    const value = isRecord(annotations) ? ownMember(annotations, key) : undefined;
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }),
    },
    ...(spec !== undefined && { spec }),
    ...(status !== undefined && { status }),
  };
}

/** Returns a function that returns true for a budget that one of the objects owns. */
export function isOwnedBy(
  { group, kind }: Resource,
  objects: readonly Custom[] | undefined,
): (budget: PodDisruptionBudget) => boolean {
  const names = objects && new Set(objects.map(keyOf));
  return ({ metadata: { namespace, ownerReferences = [] } }) =>
    ownerReferences.some(
      (owner) =>
        owner.kind === kind &&
        owner.apiVersion.startsWith(`${group}/`) &&
        names?.has(keyAt(owner.name, namespace)) !== false,
    );
}

/** Returns the value of the label that the pods of the budget must have; undefined if they need no such label. */
export function selectedLabel({ spec }: PodDisruptionBudget, label: string): string | undefined {
  return ownMember(spec?.selector?.matchLabels, label);
}

/** Returns the finding that a question about the object has no answer. */
export function unclear(message: string): Problem {
  return { state: 'unknown', message };
}

/** Returns true for a number of instances. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
