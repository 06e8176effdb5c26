/** The contract of a kind: what the generic handlers need to serve it. */
import type { Cause } from '../failure.ts';
import type { Schema } from '../schema/schema.ts';
import type { ApiObject } from '../store.ts';
import type { Column } from '../table/column.ts';

/** A resource that the server serves. Built-in kinds come from a list, custom kinds from CustomResourceDefinitions. */
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
  /**
   * True if no CRD defines the kind. Then the items of its lists have no `apiVersion` and no `kind`, and it accepts
   * strategic merge patches.
   */
  readonly builtin: boolean;
  /** The schema that the OpenAPI documents publish for a custom kind. The schemas of built-in kinds are in a file. */
  readonly schema?: Schema;
  /**
   * The columns of the tables of a custom kind. Empty for built-in kinds, whose columns are in
   * table/builtin-columns.ts.
   */
  readonly columns: readonly Column[];
  readonly hasStatus: boolean;
  /** True if a PUT with a name that does not exist creates the object. */
  readonly createOnUpdate: boolean;
  /** True if a PUT without resourceVersion overwrites the stored object. */
  readonly unconditionalUpdate: boolean;
  /** The rule for names: DNS names with dots, DNS labels without dots, or nearly any text that can be part of a path. */
  readonly naming: 'subdomain' | 'label' | 'path';
  /** The members that the object of a bookmark has in addition to its metadata. */
  readonly blank: Readonly<Record<string, unknown>>;
  /**
   * The fields that field selectors may name, in addition to `metadata.name` and `metadata.namespace`, each with a
   * function that reads its value.
   */
  readonly fields: Readonly<Record<string, (object: ApiObject) => string>>;

  /**
   * Makes an object from a decoded body: checks types, drops unknown members (and adds their paths to `unknown`), and
   * sets defaults. Throws ShapeError if a type is wrong.
   */
  read(body: Record<string, unknown>, unknown: string[]): ApiObject;
  /** Sets what the server decides before an object is created, or before its main part is replaced. */
  prepare(object: ApiObject, old: ApiObject | undefined): void;
  /** Restores the members that an update of the status must not change. */
  prepareStatus(object: ApiObject, old: ApiObject): void;
  /** Returns the faults of the object outside its metadata. */
  validate(object: ApiObject, old: ApiObject | undefined): Cause[];
  /**
   * Present if a deletion takes two steps: marks an object whose contents must be deleted first. `now` is a
   * `metav1.Time`.
   */
  readonly beginDeletion?: (object: ApiObject, now: string) => void;
}

/** The `apiVersion` of the kind's objects. */
export const groupVersion = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;
