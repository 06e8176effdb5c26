/** Owns the contract of a kind: what the generic handlers must know to serve it. */
import type { Cause } from './failure.ts';
import type { ApiObject } from './store.ts';

export interface Kind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Defined by no CRD. Their list items carry no `apiVersion` and `kind`, and they take strategic merge patches. */
  readonly builtin: boolean;
  readonly hasStatus: boolean;
  /** A PUT on a name that does not exist creates the object. */
  readonly createOnUpdate: boolean;
  /** A PUT without resourceVersion overwrites whatever is there. */
  readonly unconditionalUpdate: boolean;
  /** `subdomain` (dots allowed) or `label`: the two grammars of names, and `path` for those that take nearly anything. */
  readonly naming: 'subdomain' | 'label' | 'path';
  /** Members that a bookmark's object carries beside its metadata. */
  readonly blank: Readonly<Record<string, unknown>>;

  /**
   * Makes an object of a decoded body: types checked, unknown members dropped (and named in `unknown`), defaults set.
   * Throws ShapeError where the types are wrong.
   */
  read(body: Record<string, unknown>, unknown: string[]): ApiObject;
  /** Sets what the server decides before an object is created, or before its main part is replaced. */
  prepare(object: ApiObject, old: ApiObject | undefined): void;
  /** Puts back what an update of the status must not touch. */
  prepareStatus(object: ApiObject, old: ApiObject): void;
  validate(object: ApiObject, old: ApiObject | undefined): Cause[];
  /** Present where deletion takes two steps: marks the object that is to be emptied first. */
  readonly beginDeletion?: (object: ApiObject) => void;
  /** Values of the fields that field selectors may name, beside `metadata.name` and `metadata.namespace`. */
  readonly fields: Readonly<Record<string, (object: ApiObject) => string>>;
}

export const groupVersion = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;
