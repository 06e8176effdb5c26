/** The errors of the API server: one constructor for each Status, in the words of kube-apiserver. */
import type { Status } from '../../src/kube/resources.ts';

/** One fault of an object, as listed in the details of a Status. */
export interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

/** Thrown by handlers; the server turns it into the answer. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: Status & { code: number; metadata: Record<string, string> };

  constructor(code: number, reason: string, message: string, details?: Status['details']) {
    super(message);
    const about = { ...(reason !== '' && { reason }), ...(details && { details }) };
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...about,
      code,
    };
  }
}

/** The names that a refusal uses for a kind of object, or for the options of a request. */
export interface Named {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
}

type Details = NonNullable<Status['details']>;

const aboutOne = (type: string, group: string, name: string): Details => ({
  ...(name !== '' && { name }),
  ...(group !== '' && { group }),
  kind: type,
});

const qualified = (type: string, group: string): string =>
  group === '' ? type : `${type}.${group}`;

/** A refusal that names one object of the resource, as most refusals do. */
function refusal(
  code: number,
  reason: string,
  { plural, group }: Named,
  name: string,
  text: (what: string) => string,
): ApiFailure {
  const message = text(`${qualified(plural, group)} "${name}"`);
  return new ApiFailure(code, reason, message, aboutOne(plural, group, name));
}

export const badRequest = (message: string): ApiFailure =>
  new ApiFailure(400, 'BadRequest', message);

/** Returns the refusal for a function that this server does not implement. It must not invent an answer. */
export const notImplemented = (what: string): ApiFailure =>
  new ApiFailure(501, 'NotImplemented', `the in-memory API server does not implement ${what}`);

export const notFound = (kind: Named, name: string): ApiFailure =>
  refusal(404, 'NotFound', kind, name, (what) => `${what} not found`);

/** Returns the 404 for an unknown resource of a known group. Paths of unknown groups get plain text instead. */
export const noSuchResource = (): ApiFailure =>
  new ApiFailure(404, 'NotFound', 'the server could not find the requested resource', {});

export const methodNotAllowed = (): ApiFailure =>
  new ApiFailure(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {},
  );

/** `prefix` goes before the sentence. The server uses it to say that the object is being deleted. */
export const alreadyExists = (kind: Named, name: string, prefix = ''): ApiFailure =>
  refusal(409, 'AlreadyExists', kind, name, (what) => `${prefix}${what} already exists`);

export const conflict = (kind: Named, name: string, why: string): ApiFailure =>
  refusal(
    409,
    'Conflict',
    kind,
    name,
    (what) => `Operation cannot be fulfilled on ${what}: ${why}`,
  );

export function forbidden(kind: Named, name: string, why: string, causes?: Cause[]): ApiFailure {
  const failure = refusal(403, 'Forbidden', kind, name, (what) => `${what} is forbidden: ${why}`);
  if (causes) Object.assign(failure.status.details ?? {}, { causes });
  return failure;
}

/** Returns the error 422 with every cause. The message names equal causes only once. */
export function invalid(
  { kind, group }: Named,
  name: string,
  causes: readonly Cause[],
): ApiFailure {
  const each = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  const list = each.length === 1 ? each[0] : `[${each.join(', ')}]`;
  const message = `${qualified(kind, group)} "${name}" is invalid: ${list}`;
  return new ApiFailure(422, 'Invalid', message, {
    ...aboutOne(kind, group, name),
    causes: [...causes],
  });
}

/** Refuses the options of a request. `kind` is the name of these options in the server, such as CreateOptions. */
export const invalidOptions = (kind: string, causes: readonly Cause[]): ApiFailure =>
  invalid({ group: 'meta.k8s.io', kind, plural: '' }, '', causes);

/** Returns the error 410: the server no longer has the history before the requested revision. */
export const expired = (message: string): ApiFailure => new ApiFailure(410, 'Expired', message);

const causeOf =
  (reason: string, text: string) =>
  (field: string, detail = ''): Cause => ({
    reason,
    message: detail === '' ? text : `${text}: ${detail}`,
    field,
  });

/** Functions that make causes, each with the reason and the wording of its type. */
export const cause = {
  required: causeOf('FieldValueRequired', 'Required value'),
  forbidden: causeOf('FieldValueForbidden', 'Forbidden'),
  invalid: (field: string, value: unknown, detail: string): Cause =>
    causeOf('FieldValueInvalid', `Invalid value: ${shown(value)}`)(field, detail),
  /** An invalid value that is too long to be shown. */
  invalidWithoutValue: causeOf('FieldValueInvalid', 'Invalid value'),
  wrongType: (field: string, value: unknown, detail: string): Cause =>
    causeOf('FieldValueTypeInvalid', `Invalid value: ${shown(value)}`)(field, detail),
  duplicate: (field: string, value: unknown, detail = ''): Cause =>
    causeOf('FieldValueDuplicate', `Duplicate value: ${shown(value)}${detail}`)(field),
  notSupported: (field: string, value: unknown, supported: readonly string[]): Cause =>
    causeOf('FieldValueNotSupported', `Unsupported value: ${shown(value)}`)(
      field,
      `supported values: ${supported.map(shown).join(', ')}`,
    ),
  tooLong: (field: string, limit: number): Cause =>
    causeOf('FieldValueTooLong', 'Too long')(
      field,
      `may not be more than ${limit} ${limit === 1 ? 'byte' : 'bytes'}`,
    ),
  tooMany: (field: string, found: number, limit: number): Cause =>
    causeOf('FieldValueTooMany', `Too many: ${found}`)(
      field,
      `must have at most ${limit} ${limit === 1 ? 'item' : 'items'}`,
    ),
};

/** Formats a value as Go prints it in a refusal: as JSON, and undefined as null. */
const shown = (value: unknown): string => JSON.stringify(value) ?? 'null';
