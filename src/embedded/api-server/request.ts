/** Owns what a request means: verb, resource, name and options, read from method, path and query. */
import { badRequest, cause, invalid } from './failure.ts';

/** Where a path points to; `plural` is empty for the list of a group's resources. */
export interface Target {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Media type without parameters, '' where none was sent. */
  readonly contentType: string;
  readonly accept: string;
  readonly userAgent: string;
  readonly body: string;
}

/** Reads `/api/v1/…` and `/apis/GROUP/VERSION/…`; undefined for every other path. */
export function parseTarget(path: string): Target | undefined {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const root = parts.shift();
  const group = root === 'api' ? '' : root === 'apis' ? parts.shift() : undefined;
  const version = parts.shift();
  if (group === undefined || version === undefined) return undefined;
  let namespace: string | undefined;
  // `/namespaces/x` alone, and its subresources, address the Namespace itself.
  if (parts[0] === 'namespaces' && parts.length > 2 && !['status', 'finalize'].includes(parts[2] ?? '')) {
    namespace = parts[1];
    parts.splice(0, 2);
  }
  const [plural = '', name, subresource, ...rest] = parts;
  if (rest.length > 0) return undefined;
  return { group, version, plural, namespace, name, subresource };
}

/** Absent, `false` and `0` are false, everything else is true: the rule of Go's query decoder. */
export function flag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== 'false' && value !== '0';
}

/** The verb of the audit log and of RBAC. */
export function verbOf({ method, query }: Pick<ApiRequest, 'method' | 'query'>, name: string | undefined): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (flag(query, 'watch')) return 'watch';
      return name === undefined ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete';
    default:
      return method.toLowerCase();
  }
}

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly manager: string;
  readonly strict: boolean;
  /** Whether unknown members are worth a warning to the client. */
  readonly warn: boolean;
}

const VALIDATIONS = ['Ignore', 'Strict', 'Warn'];

/** `optionsKind` is how the server calls these options in a refusal: CreateOptions, UpdateOptions, PatchOptions. */
export function writeOptions({ query, userAgent }: ApiRequest, optionsKind: string): WriteOptions {
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const validation = query.get('fieldValidation') ?? '';
  const manager = query.get('fieldManager') ?? '';
  const causes = [];
  if (dryRun.some((value) => value !== 'All')) causes.push(cause.notSupported('dryRun', dryRun, ['All']));
  if (validation !== '' && !VALIDATIONS.includes(validation)) {
    causes.push(cause.notSupported('fieldValidation', validation, VALIDATIONS));
  }
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: optionsKind, plural: '' }, '', causes);
  return {
    dryRun: dryRun.length > 0,
    manager: manager === '' ? (userAgent.split('/')[0] ?? '') || 'unknown' : manager,
    strict: validation === 'Strict',
    warn: validation !== 'Ignore',
  };
}

/** A whole number from the query, `undefined` where it is absent or empty. */
export function integer(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null || value === '') return undefined;
  if (!/^[+-]?\d+$/.test(value)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  return Number(value);
}
