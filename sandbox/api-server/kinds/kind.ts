/** The contract of a kind: what the generic handlers need to serve it. */
import type { Cause } from '../failure.ts';
import type { Schema } from '../schema/schema.ts';
import type { ApiObject } from '../store.ts';
import type { Column } from '../table/column.ts';

/** One for each resource that is served; built-in kinds come from a list, custom ones from definitions. */
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
  /** Defined by no CRD: its list items carry no `apiVersion` and `kind`, and it takes strategic merge patches. */
  readonly builtin: boolean;
  /** What the OpenAPI documents publish of a custom kind; the schemas of built-in kinds are recorded. */
  readonly schema?: Schema;
  /** Of the tables of a custom kind; empty for built-in kinds, which table/builtin-columns.ts describes. */
  readonly columns: readonly Column[];
  readonly hasStatus: boolean;
  /** A PUT on a name that does not exist creates the object. */
  readonly createOnUpdate: boolean;
  /** A PUT without resourceVersion overwrites whatever is there. */
  readonly unconditionalUpdate: boolean;
  /** The grammar of names: DNS with dots, without, or nearly anything that fits into a path. */
  readonly naming: 'subdomain' | 'label' | 'path';
  /** Members that a bookmark's object carries beside its metadata. */
  readonly blank: Readonly<Record<string, unknown>>;
  /** Values of the fields that field selectors may name, beside `metadata.name` and `metadata.namespace`. */
  readonly fields: Readonly<Record<string, (object: ApiObject) => string>>;

  /**
   * Makes an object of a decoded body: types checked, unknown members dropped (and named in `unknown`), defaults set.
   * Throws ShapeError where the types are wrong.
   */
  read(body: Record<string, unknown>, unknown: string[]): ApiObject;
  /** Sets what the server decides before an object is created, or before its main part is replaced. */
  prepare(object: ApiObject, old: ApiObject | undefined): void;
  /** Puts back what an update of the status must not touch. */
  prepareStatus(object: ApiObject, old: ApiObject): void;
  /** What is wrong with the object beside its metadata. */
  validate(object: ApiObject, old: ApiObject | undefined): Cause[];
  /** Present where deletion takes two steps: marks the object that is to be emptied first; `now` as a `metav1.Time`. */
  readonly beginDeletion?: (object: ApiObject, now: string) => void;
}

/** The `apiVersion` of the kind's objects. */
export const groupVersion = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;
