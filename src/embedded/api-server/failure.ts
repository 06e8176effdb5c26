/** Owns the refusals of the API server: one constructor for each Status, worded as kube-apiserver words it. */
import type { Status } from '../../kube/types.ts';
import type { Kind } from './kind.ts';

export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

/** Thrown by handlers; the router turns it into the answer. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: Status & { code: number; metadata: Record<string, string> };

  constructor(code: number, reason: string, message: string, details?: Status['details']) {
    super(message);
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason === '' ? {} : { reason }),
      ...(details === undefined ? {} : { details }),
      code,
    };
  }
}

/** What names a kind of object in a refusal; a Kind is one, so are the options of a request. */
export type Named = Pick<Kind, 'group' | 'kind' | 'plural'>;

const details = (type: string, group: string, name: string): NonNullable<Status['details']> => ({
  ...(name === '' ? {} : { name }),
  ...(group === '' ? {} : { group }),
  kind: type,
});

const qualified = (type: string, group: string): string => (group === '' ? type : `${type}.${group}`);

export const badRequest = (message: string): ApiFailure => new ApiFailure(400, 'BadRequest', message);

export const notImplemented = (what: string): ApiFailure =>
  new ApiFailure(501, 'NotImplemented', `the in-memory API server does not implement ${what}`);

export function notFound({ plural, group }: Named, name: string): ApiFailure {
  return new ApiFailure(
    404,
    'NotFound',
    `${qualified(plural, group)} "${name}" not found`,
    details(plural, group, name),
  );
}

export const noSuchResource = (): ApiFailure =>
  new ApiFailure(404, 'NotFound', 'the server could not find the requested resource', {});

export const methodNotAllowed = (): ApiFailure =>
  new ApiFailure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

export function alreadyExists({ plural, group }: Named, name: string): ApiFailure {
  const message = `${qualified(plural, group)} "${name}" already exists`;
  return new ApiFailure(409, 'AlreadyExists', message, details(plural, group, name));
}

export function conflict({ plural, group }: Named, name: string, why: string): ApiFailure {
  const message = `Operation cannot be fulfilled on ${qualified(plural, group)} "${name}": ${why}`;
  return new ApiFailure(409, 'Conflict', message, details(plural, group, name));
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export function invalid({ kind, group }: Named, name: string, causes: readonly Cause[]): ApiFailure {
  const each = causes.map(({ field, message }) => `${field}: ${message}`);
  const list = each.length === 1 ? each[0] : `[${[...new Set(each)].join(', ')}]`;
  const message = `${qualified(kind, group)} "${name}" is invalid: ${list}`;
  return new ApiFailure(422, 'Invalid', message, { ...details(kind, group, name), causes: [...causes] });
}

export function forbidden({ plural, group }: Named, name: string, why: string, cause?: Cause): ApiFailure {
  const message = `${qualified(plural, group)} "${name}" is forbidden: ${why}`;
  return new ApiFailure(403, 'Forbidden', message, {
    ...details(plural, group, name),
    ...(cause === undefined ? {} : { causes: [cause] }),
  });
}

/** The two wordings of one thing: history before this revision is gone. */
export const expired = (message: string): ApiFailure => new ApiFailure(410, 'Expired', message);

export const cause = {
  required: (field: string, detail = ''): Cause => ({
    reason: 'FieldValueRequired',
    message: detail === '' ? 'Required value' : `Required value: ${detail}`,
    field,
  }),
  invalid: (field: string, value: unknown, detail: string): Cause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${shown(value)}: ${detail}`,
    field,
  }),
  notSupported: (field: string, value: unknown, supported: readonly string[]): Cause => ({
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${shown(value)}: supported values: ${supported.map(shown).join(', ')}`,
    field,
  }),
  forbidden: (field: string, detail: string): Cause => ({
    reason: 'FieldValueForbidden',
    message: `Forbidden: ${detail}`,
    field,
  }),
  tooLong: (field: string, limit: number): Cause => ({
    reason: 'FieldValueTooLong',
    message: `Too long: may not be more than ${limit} bytes`,
    field,
  }),
};

/** A value as Go prints it in a refusal: strings quoted, the rest as JSON. */
function shown(value: unknown): string {
  return value === undefined ? 'null' : JSON.stringify(value);
}
