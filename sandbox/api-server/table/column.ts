/** The contract of a column of a table that the server makes. */
import type { ApiObject } from '../store.ts';

export interface Column {
  readonly name: string;
  readonly type: string;
  /** The format `name` marks the column that contains the name of the object. */
  readonly format: string;
  /** Zero for a column that is always shown. Every other column needs `-o wide`. */
  readonly priority: number;
  /** Returns the value for one object. `now` is in milliseconds since 1970. */
  readonly cell: (object: ApiObject, now: number) => unknown;
}

export const NAME: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  priority: 0,
  // A bookmark has no name.
  cell: ({ metadata }) => metadata.name || '',
};
